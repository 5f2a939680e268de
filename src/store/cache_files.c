// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* O_DIRECTORY, O_NOFOLLOW, flock, st_atim */
#include "store/cache_files.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is read at a time to be hashed. */
#define HASHED_BYTES ((size_t)1 << 18)

/* How often is looked whether somebody else has ended, and when he is given up. A piece of some MB
 * from a store far away takes less. */
#define LOOK_EVERY_NS UINT64_C(2000000)
#define STALLED_AFTER_NS UINT64_C(5000000000)

#define CLAIM_TRIES 8

static int directory_of(const struct cache_files *files) {
    return files->directory - 1;
}

enum ulp_status cache_files_open(const char *path, uint64_t bytes_max,
                                 struct cache_files *ret_files) {
    int directory;
    enum ulp_status status = file_make_directory(path);

    if (status)
        return status;
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return fail_errno("open the cache", path);
    *ret_files = (struct cache_files){directory + 1, bytes_max};
    return ULP_OK;
}

void cache_files_release(struct cache_files *files) {
    if (files->directory)
        close(directory_of(files));
    *files = (struct cache_files){0};
}

/* ---- names ---- */

static bool begins_with_hash(const char *text) {
    return strspn(text, "0123456789abcdef") == CACHE_NAME_LENGTH;
}

const char *cache_name(const char *key) {
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;

    return begins_with_hash(name) && !name[CACHE_NAME_LENGTH] ? name : NULL;
}

struct fill_name {
    char text[CACHE_NAME_LENGTH + 8];
};

static struct fill_name fill_name(const char *name) {
    struct fill_name fill;

    snprintf(fill.text, sizeof fill.text, ".%.*s.fill", CACHE_NAME_LENGTH, name);
    return fill;
}

/* Also the one that it has before. */
static bool is_fill_name(const char *name) {
    return name[0] == '.' && begins_with_hash(name + 1) &&
           !strncmp(name + 1 + CACHE_NAME_LENGTH, ".fill", 5);
}

/* ---- objects ---- */

static int open_plain(const struct cache_files *files, const char *name) {
    struct stat info;
    int file = openat(directory_of(files), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (file >= 0 && (fstat(file, &info) || !S_ISREG(info.st_mode))) {
        close(file);
        errno = EINVAL;
        return -1;
    }
    return file;
}

int cache_find(const struct cache_files *files, const char *name) {
    return open_plain(files, name);
}

void cache_drop(const struct cache_files *files, const char *name) {
    unlinkat(directory_of(files), name, 0);
}

bool cache_hash_is(struct sha256 *hash, const char *name) {
    uint8_t digest[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];

    if (sha256_end(hash, digest))
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return !memcmp(text, name, CACHE_NAME_LENGTH);
}

static enum ulp_status hash_file(int file, struct sha256 *hash, uint8_t *piece) {
    ssize_t got = 1;
    enum ulp_status status = ULP_OK;

    for (off_t at = 0; !status && got; at += got) {
        do
            got = pread(file, piece, HASHED_BYTES, at);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return fail_errno("read", "the cache");
        status = sha256_add(hash, piece, (size_t)got);
    }
    return status;
}

bool cache_is_genuine(int file, const char *name) {
    struct sha256 *hash = NULL;
    uint8_t *piece = NULL;
    bool genuine = false;
    enum ulp_status status = sha256_begin(&hash);

    if (!status)
        status = mem_resize(&piece, HASHED_BYTES, 1);
    if (!status)
        status = hash_file(file, hash, piece);
    if (!status)
        genuine = cache_hash_is(hash, name);
    sha256_free(hash);
    mem_free(piece);
    return genuine;
}

/* ---- who fetches ---- */

static bool is_named(const struct cache_files *files, int file, const char *name) {
    struct stat open_one, named;

    return !fstat(file, &open_one) &&
           !fstatat(directory_of(files), name, &named, AT_SYMLINK_NOFOLLOW) &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Whoever holds the lock of the file with this name may rename or remove it. */
static bool locked_by_us(const struct cache_files *files, int file, const char *fill) {
    return !flock(file, LOCK_EX | LOCK_NB) && is_named(files, file, fill);
}

/* A file that is locked before it gets the name under which others find it: one that is not locked
 * was left by somebody who was killed. -1 and EEXIST if there is one already. */
static int make_locked(const struct cache_files *files, const char *fill) {
    static atomic_uint serial;
    const int directory = directory_of(files);
    char first[CACHE_NAME_LENGTH + 48];
    int file, error = 0;

    snprintf(first, sizeof first, "%s-%ld-%u", fill, (long)getpid(), atomic_fetch_add(&serial, 1));
    file = openat(directory, first, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return -1;
    if (flock(file, LOCK_EX | LOCK_NB) || linkat(directory, first, directory, fill, 0))
        error = errno;
    cache_drop(files, first);
    if (!error)
        return file;
    close(file);
    errno = error;
    return -1;
}

/* Somebody else may end, or clean up, between any two steps; then the next try finds out. */
enum cache_claim cache_claim(const struct cache_files *files, const char *name, int *ret_file) {
    const struct fill_name fill = fill_name(name);

    for (int tries = 0; tries < CLAIM_TRIES; tries++) {
        int file = make_locked(files, fill.text);

        *ret_file = file;
        if (file >= 0)
            return CLAIM_OURS;
        if (errno == EEXIST)
            file = open_plain(files, fill.text);
        if (file < 0 && (errno == ENOENT || errno == EWOULDBLOCK))
            continue;
        if (file < 0)
            break;
        *ret_file = file;
        if (locked_by_us(files, file, fill.text))
            cache_drop(files, fill.text);
        else if (is_named(files, file, fill.text))
            return CLAIM_OTHERS;
        close(file);
    }
    return CLAIM_IMPOSSIBLE;
}

bool cache_wait(const struct cache_files *files, const char *name, int file) {
    const struct fill_name fill = fill_name(name);
    uint64_t since = clock_monotonic_ns();
    off_t bytes = 0;
    bool ended = false, stalled = false;

    while (!ended && !stalled) {
        struct stat info;

        ended = !flock(file, LOCK_SH | LOCK_NB) || !is_named(files, file, fill.text) ||
                fstat(file, &info);
        if (ended)
            break;
        if (info.st_size != bytes) {
            bytes = info.st_size;
            since = clock_monotonic_ns();
        }
        stalled = clock_monotonic_ns() - since > STALLED_AFTER_NS;
        clock_sleep_ns(LOOK_EVERY_NS);
    }
    close(file);
    return ended;
}

void cache_end(const struct cache_files *files, const char *name, int file, bool keep) {
    const struct fill_name fill = fill_name(name);

    if (!keep || renameat(directory_of(files), fill.text, directory_of(files), name))
        cache_drop(files, fill.text);
    close(file);
}

/* ---- room ---- */

struct kept {
    struct timespec read_last;
    uint64_t bytes;
    char name[CACHE_NAME_LENGTH + 1];
};

struct kept_list {
    struct kept *kept;
    size_t count, room;
    uint64_t bytes; /* of all, and of what is being fetched */
};

static int by_age(const void *a, const void *b) {
    const struct timespec *one = &((const struct kept *)a)->read_last,
                          *other = &((const struct kept *)b)->read_last;

    if (one->tv_sec != other->tv_sec)
        return one->tv_sec < other->tv_sec ? -1 : 1;
    return one->tv_nsec < other->tv_nsec ? -1 : one->tv_nsec > other->tv_nsec;
}

/* What somebody left who was killed goes. */
static bool drop_if_left_over(const struct cache_files *files, const char *fill) {
    int file = open_plain(files, fill);
    bool left_over = file >= 0 && locked_by_us(files, file, fill);

    if (left_over)
        cache_drop(files, fill);
    if (file >= 0)
        close(file);
    return left_over;
}

static enum ulp_status add_kept(const struct cache_files *files, const char *name,
                                struct kept_list *list) {
    const bool object = begins_with_hash(name) && !name[CACHE_NAME_LENGTH];
    struct stat info;
    struct kept *kept;
    enum ulp_status status = ULP_OK;

    if ((!object && !is_fill_name(name)) || (!object && drop_if_left_over(files, name)) ||
        fstatat(directory_of(files), name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode))
        return ULP_OK;
    list->bytes += (uint64_t)info.st_size;
    if (!object)
        return ULP_OK;
    if (list->count == list->room)
        status = mem_grow(&list->kept, list->count, sizeof *list->kept, &list->room);
    if (status)
        return status;
    kept = &list->kept[list->count++];
    *kept = (struct kept){info.st_atim, (uint64_t)info.st_size, ""};
    memcpy(kept->name, name, CACHE_NAME_LENGTH + 1);
    return ULP_OK;
}

/* More than LIMIT_CACHE_OBJECTS are not looked at: some of those go, and so the others' turn
 * comes. */
static enum ulp_status list_kept(const struct cache_files *files, struct kept_list *list) {
    int copy = openat(directory_of(files), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    enum ulp_status status = ULP_OK;

    if (!stream) {
        status = fail_errno("list", "the cache");
        if (copy >= 0)
            close(copy);
        return status;
    }
    while (!status && list->count < LIMIT_CACHE_OBJECTS && (entry = readdir(stream)))
        status = add_kept(files, entry->d_name, list);
    closedir(stream);
    return status;
}

bool cache_make_room(const struct cache_files *files, uint64_t bytes) {
    struct kept_list list = {0};
    size_t next = 0, left;
    enum ulp_status status = bytes > files->bytes_max ? ULP_E_NO_SPACE : list_kept(files, &list);

    if (list.count)
        qsort(list.kept, list.count, sizeof *list.kept, by_age);
    left = list.count;
    while (!status && next < list.count &&
           (list.bytes > files->bytes_max - bytes || left == LIMIT_CACHE_OBJECTS)) {
        cache_drop(files, list.kept[next].name);
        list.bytes -= list.kept[next].bytes;
        next++;
        left--;
    }
    mem_free(list.kept);
    return !status && list.bytes <= files->bytes_max - bytes;
}
