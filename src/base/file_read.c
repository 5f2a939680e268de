// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE /* flock */
#include "base/file.h"

#include "base/memory.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_PIECE_BYTES 65536u

static const char *kind_name(mode_t mode) {
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static enum ulp_status open_plain(const char *path, enum file_links links, int *ret_file,
                                  uint64_t *ret_bytes) {
    /* O_NONBLOCK: opening a FIFO nobody writes to would otherwise wait for ever. */
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == FILE_REFUSE_LINKS ? O_NOFOLLOW : 0);
    struct stat info;
    int file = open(path, flags);

    if (file < 0)
        return fail_errno("open", path);
    if (fstat(file, &info)) {
        enum ulp_status status = fail_errno("look at", path);

        close(file);
        return status;
    }
    if (!S_ISREG(info.st_mode)) {
        close(file);
        return fail(ULP_E_FILE_KIND, "%s is %s, not a plain file", quote(path).text,
                    kind_name(info.st_mode));
    }
    *ret_file = file;
    *ret_bytes = (uint64_t)info.st_size;
    return ULP_OK;
}

enum ulp_status file_map_open(const char *path, enum file_links links, struct file_map *ret_map) {
    struct file_map map = {0};
    enum ulp_status status = file_map_open_kept(path, links, &map);

    if (status)
        return status;
    close(map.file - 1); /* the mapping holds the file by itself */
    map.file = 0;
    *ret_map = map;
    return ULP_OK;
}

enum ulp_status file_map_open_kept(const char *path, enum file_links links,
                                   struct file_map *ret_map) {
    struct file_map map = {0};
    uint64_t bytes = 0;
    void *place;
    int file = -1;
    enum ulp_status status = open_plain(path, links, &file, &bytes);

    if (status)
        return status;
    if (bytes > SIZE_MAX / 2) {
        status = fail(ULP_E_LIMIT, "%s is larger than this machine can map", quote(path).text);
        goto out;
    }
    map.bytes = (size_t)bytes;
    if (bytes) {
        place = mmap(NULL, map.bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (place == MAP_FAILED) {
            status = fail_errno("map", path);
            goto out;
        }
        map.data = place;
    }
    map.file = file + 1;
    *ret_map = map;
out:
    if (status)
        close(file);
    return status;
}

enum ulp_status file_map_lock(const struct file_map *map, enum file_lock lock, const char *path) {
    if (!flock(map->file - 1, (lock == FILE_LOCK_ALONE ? LOCK_EX : LOCK_SH) | LOCK_NB))
        return ULP_OK;
    if (errno == EWOULDBLOCK)
        return fail(ULP_E_BUSY,
                    lock == FILE_LOCK_ALONE ? "%s is being read or changed by another process"
                                            : "%s is being changed by another process",
                    quote(path).text);
    return errno == ENOLCK || errno == ENOTSUP || errno == EINVAL || errno == ENOSYS
               ? ULP_OK
               : fail_errno("lock", path);
}

bool file_still_named(int file, const char *path) {
    struct stat here, there;

    return !fstat(file, &here) && !lstat(path, &there) && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

void file_map_release(struct file_map *map) {
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->bytes);
    if (map->file)
        close(map->file - 1);
    *map = (struct file_map){0};
}

enum ulp_status file_read(const char *path, enum file_links links, struct buffer *into) {
    uint8_t piece[READ_PIECE_BYTES];
    uint64_t bytes = 0;
    size_t before = into->used;
    int file = -1;
    enum ulp_status status = open_plain(path, links, &file, &bytes);

    if (status)
        return status;
    if (bytes > into->max - into->used) {
        status = fail(ULP_E_LIMIT, "%s has %llu bytes; the limit is %zu", quote(path).text,
                      (unsigned long long)bytes, into->max - into->used);
        goto out;
    }
    for (;;) {
        ssize_t got = read(file, piece, sizeof piece);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = fail_errno("read", path);
        if (got <= 0)
            break;
        status = buffer_append(into, piece, (size_t)got);
        if (status)
            break;
    }
out:
    if (status)
        buffer_cut(into, before);
    close(file);
    return status;
}

static enum ulp_status check_private(int file, const char *path) {
    struct stat info;

    if (fstat(file, &info))
        return fail_errno("look at", path);
    if (info.st_mode & (S_IRWXG | S_IRWXO))
        return fail(ULP_E_PERMISSION,
                    "%s holds a secret, but others than its owner have rights to it (mode %03o): "
                    "chmod 600",
                    quote(path).text, (unsigned)(info.st_mode & 0777));
    return ULP_OK;
}

static enum ulp_status read_exactly(int file, const char *path, uint8_t *data, size_t bytes) {
    while (bytes) {
        ssize_t got = read(file, data, bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno("read", path);
        if (!got)
            return fail(ULP_E_FILE_CHANGED, "%s shrank while it was read", quote(path).text);
        data += got;
        bytes -= (size_t)got;
    }
    return ULP_OK;
}

enum ulp_status file_read_private(const char *path, void *data, size_t room, size_t *ret_bytes) {
    uint64_t bytes = 0;
    int file = -1;
    enum ulp_status status = open_plain(path, FILE_REFUSE_LINKS, &file, &bytes);

    if (status)
        return status;
    status = check_private(file, path);
    if (!status && bytes > room)
        status = fail(ULP_E_LIMIT, "%s has %llu bytes; the limit is %zu", quote(path).text,
                      (unsigned long long)bytes, room);
    if (!status)
        status = read_exactly(file, path, data, (size_t)bytes);
    close(file);
    if (status)
        mem_wipe(data, room);
    else
        *ret_bytes = (size_t)bytes;
    return status;
}
