// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* O_TMPFILE, renameat2 */
#include "base/file.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h> /* FICLONERANGE */
#endif

/* One write call; Linux caps a single one just under 2^31 bytes anyway. */
#define WRITE_PIECE_BYTES (1u << 30)

#define TEMPORARY_TRIES 1000u

/* Of new files, less what the umask takes away. */
#define MODE_PLAIN 0666
#define MODE_PRIVATE 0600

static bool always_named;

void file_writer_always_named(bool named) {
    always_named = named;
}

static int descriptor(int plus_one) {
    return plus_one - 1;
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool names_a_directory(const char *name) {
    return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

static enum ulp_status open_directory_of(const char *path, int *ret_directory) {
    size_t length = (size_t)(last_part(path) - path);
    char *name = NULL;
    int directory;
    enum ulp_status status = mem_copy_text(length ? path : ".", &name);

    if (status)
        return status;
    if (length)
        name[length] = 0;
    directory = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        status = fail_errno("open directory", name);
    else
        *ret_directory = directory + 1;
    mem_free(name);
    return status;
}

/* Some network file systems cannot sync a directory and say EINVAL; there is nothing more to do. */
int file_sync_directory(int directory) {
    return fsync(directory) && errno != EINVAL && errno != ENOTSUP ? -1 : 0;
}

/* Names that are tried for a file under construction. The leading dot keeps it out of everybody's
 * `*.safetensors`. */
static void next_temporary(struct file_writer *writer) {
    static atomic_uint serial;

    snprintf(writer->temporary, sizeof writer->temporary, ".ulpsync-tmp-%ld-%u", (long)getpid(),
             atomic_fetch_add(&serial, 1));
}

/* A name that is taken was left by a crash, or is in use by another host; the next one will do. */
static bool taken(int result, unsigned *tries) {
    return result < 0 && errno == EEXIST && ++*tries < TEMPORARY_TRIES;
}

/* A file without a name vanishes with the process, however that ends. Where the file system has
 * none of those, or /proc is missing, through which it gets its name later, a hidden name serves.
 * */
static enum ulp_status create_temporary(struct file_writer *writer, mode_t mode) {
    int directory = descriptor(writer->directory), file = -1;
    unsigned tries = 0;

    if (!always_named && !access("/proc/self/fd", X_OK))
        file = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (file < 0) {
        do {
            next_temporary(writer);
            file = openat(directory, writer->temporary,
                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        } while (taken(file, &tries));
    }
    if (file < 0) {
        writer->temporary[0] = 0;
        return fail_errno("create a temporary file beside", writer->path);
    }
    writer->file = file + 1;
    return ULP_OK;
}

static enum ulp_status name_writer(struct file_writer *writer, const char *path, const char *name) {
    enum ulp_status status = mem_copy_text(path, &writer->path);

    return status ? status : mem_copy_text(name, &writer->name);
}

enum ulp_status file_writer_open_in(int directory, const char *name, const char *path,
                                    struct file_writer *ret_writer) {
    struct file_writer writer = {0};
    enum ulp_status status = name_writer(&writer, path, name);

    if (!status) {
        int copy = fcntl(directory, F_DUPFD_CLOEXEC, 0);

        writer.directory = copy + 1;
        if (copy < 0)
            status = fail_errno("open the directory of", path);
    }
    if (!status)
        status = create_temporary(&writer, MODE_PLAIN);
    if (status) {
        file_writer_release(&writer);
        return status;
    }
    *ret_writer = writer;
    return ULP_OK;
}

static enum ulp_status open_writer(const char *path, uint64_t bytes, mode_t mode,
                                   struct file_writer *ret_writer) {
    struct file_writer writer = {0};
    enum ulp_status status;

    if (names_a_directory(last_part(path)))
        return fail(ULP_E_USAGE, "%s names a directory, not a file", quote(path).text);
    if (bytes > INT64_MAX)
        return fail(ULP_E_LIMIT, "%s would exceed what a file can hold", quote(path).text);
    status = name_writer(&writer, path, last_part(path));
    if (!status)
        status = open_directory_of(path, &writer.directory);
    if (!status)
        status = create_temporary(&writer, mode);
    if (!status && ftruncate(descriptor(writer.file), (off_t)bytes))
        status = fail_errno("size", path);
    if (status) {
        file_writer_release(&writer);
        return status;
    }
    *ret_writer = writer;
    return ULP_OK;
}

enum ulp_status file_writer_open(const char *path, uint64_t bytes, struct file_writer *ret_writer) {
    return open_writer(path, bytes, MODE_PLAIN, ret_writer);
}

enum ulp_status file_put(int file, const char *path, uint64_t offset, const void *data,
                         uint64_t bytes) {
    const uint8_t *from = data;

    while (bytes) {
        size_t piece = bytes < WRITE_PIECE_BYTES ? (size_t)bytes : WRITE_PIECE_BYTES;
        ssize_t put = pwrite(file, from, piece, (off_t)offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_errno("write", path);
        from += put;
        offset += (uint64_t)put;
        bytes -= (uint64_t)put;
    }
    return ULP_OK;
}

enum ulp_status file_writer_put(const struct file_writer *writer, uint64_t offset, const void *data,
                                uint64_t bytes) {
    return file_put(descriptor(writer->file), writer->path, offset, data, bytes);
}

/* A range, not FICLONE: if the file has another length by now, this fails, and what was mapped of it
 * is copied. */
bool file_writer_clone(const struct file_writer *writer, int from, uint64_t bytes) {
#ifdef FICLONERANGE
    struct file_clone_range range = {.src_fd = from, .src_length = bytes};

    return bytes && !ioctl(descriptor(writer->file), FICLONERANGE, &range);
#else
    (void)writer, (void)from, (void)bytes;
    return false;
#endif
}

enum ulp_status file_writer_permissions(const struct file_writer *writer, int like) {
    struct stat info;

    if (fstat(like, &info) || fchmod(descriptor(writer->file), info.st_mode & 07777))
        return fail_errno("set the permissions of", writer->path);
    return ULP_OK;
}

/* Gives a file without a name the name `name`, which must be free. */
static int link_nameless(const struct file_writer *writer, const char *name) {
    char self[48];

    snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor(writer->file));
    return linkat(AT_FDCWD, self, descriptor(writer->directory), name, AT_SYMLINK_FOLLOW);
}

/* Not every file system knows renameat2; link and unlink do the same in two steps. */
static int rename_to_free_name(int directory, const char *from, const char *to) {
    if (!renameat2(directory, from, directory, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    return linkat(directory, from, directory, to, 0) ? -1 : unlinkat(directory, from, 0);
}

static int take_name(struct file_writer *writer, enum ulp_commit commit) {
    int directory = descriptor(writer->directory), result = 0;
    const char *name = writer->name;
    unsigned tries = 0;

    if (!writer->temporary[0] && commit == ULP_COMMIT_NEW)
        return link_nameless(writer, name);
    if (!writer->temporary[0]) { /* only a file with a name can replace another */
        do {
            next_temporary(writer);
            result = link_nameless(writer, writer->temporary);
        } while (taken(result, &tries));
    }
    if (!result)
        result = commit == ULP_COMMIT_NEW ? rename_to_free_name(directory, writer->temporary, name)
                                          : renameat(directory, writer->temporary, directory, name);
    if (!result)
        writer->temporary[0] = 0;
    return result;
}

enum ulp_status file_writer_commit(struct file_writer *writer, enum ulp_commit commit) {
    if (fsync(descriptor(writer->file)))
        return fail_errno("sync", writer->path);
    if (take_name(writer, commit))
        return fail_errno("put into place", writer->path);
    if (file_sync_directory(descriptor(writer->directory)))
        return fail_errno("sync the directory of", writer->path);
    log_message(ULP_LOG_DEBUG, "committed %s", quote(writer->path).text);
    return ULP_OK;
}

void file_writer_release(struct file_writer *writer) {
    if (writer->temporary[0])
        unlinkat(descriptor(writer->directory), writer->temporary, 0);
    if (writer->file)
        close(descriptor(writer->file));
    if (writer->directory)
        close(descriptor(writer->directory));
    mem_free(writer->path);
    mem_free(writer->name);
    *writer = (struct file_writer){0};
}

enum ulp_status file_name_is_free(const char *path) {
    struct stat info;

    if (!lstat(path, &info))
        return fail(ULP_E_EXISTS, "%s exists already", quote(path).text);
    return errno == ENOENT ? ULP_OK : fail_errno("look at", path);
}

/* The new directory is an entry of its parent, which has to be synced for it to last. */
enum ulp_status file_sync_parent(const char *path) {
    char *name = NULL;
    int directory = 0;
    enum ulp_status status = mem_copy_text(path, &name);

    for (size_t end = status ? 0 : strlen(name); end > 1 && name[end - 1] == '/'; end--)
        name[end - 1] = 0;
    if (!status)
        status = open_directory_of(name, &directory);
    if (!status && file_sync_directory(descriptor(directory)))
        status = fail_errno("sync the directory of", path);
    if (directory)
        close(descriptor(directory));
    mem_free(name);
    return status;
}

enum ulp_status file_make_directory(const char *path) {
    struct stat info;

    if (!mkdir(path, 0777))
        return file_sync_parent(path);
    if (errno != EEXIST)
        return fail_errno("make directory", path);
    if (stat(path, &info))
        return fail_errno("look at", path);
    if (!S_ISDIR(info.st_mode))
        return fail(ULP_E_FILE_KIND, "%s exists and is not a directory", quote(path).text);
    return ULP_OK;
}

enum ulp_status file_remove(const char *path) {
    return unlink(path) ? fail_errno("remove", path) : file_sync_parent(path);
}

void file_remove_in(const char *directory, const char *name) {
    int open_directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (open_directory < 0)
        return;
    unlinkat(open_directory, name, 0);
    close(open_directory);
}

static enum ulp_status write_whole(const char *path, const void *data, size_t bytes, mode_t mode,
                                   enum ulp_commit commit) {
    struct file_writer writer = {0};
    enum ulp_status status = open_writer(path, 0, mode, &writer);

    if (!status)
        status = file_writer_put(&writer, 0, data, bytes);
    if (!status)
        status = file_writer_commit(&writer, commit);
    file_writer_release(&writer);
    return status;
}

enum ulp_status file_write(const char *path, const void *data, size_t bytes,
                           enum ulp_commit commit) {
    return write_whole(path, data, bytes, MODE_PLAIN, commit);
}

enum ulp_status file_write_private(const char *path, const void *data, size_t bytes) {
    return write_whole(path, data, bytes, MODE_PRIVATE, ULP_COMMIT_NEW);
}
