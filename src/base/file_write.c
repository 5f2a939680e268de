// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include "base/memory.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One write call; Linux caps a single one just under 2^31 bytes anyway. */
#define WRITE_PIECE_BYTES (1u << 30)

#define TEMPORARY_TRIES 1000u

static int descriptor(int plus_one) {
    return plus_one - 1;
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
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

/* A name that is free. The leading dot keeps half-written files out of everybody's `*.safetensors`.
 * One that is taken was left by a crash, or is in use by another host; the next number will do. */
static enum ulp_status create_temporary(struct file_writer *writer) {
    static atomic_uint serial;
    int file = -1;

    for (unsigned tries = 0; file < 0 && tries < TEMPORARY_TRIES; tries++) {
        snprintf(writer->temporary, sizeof writer->temporary, ".ulpsync-tmp-%ld-%u", (long)getpid(),
                 atomic_fetch_add(&serial, 1));
        file = openat(descriptor(writer->directory), writer->temporary,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    if (file < 0) {
        writer->temporary[0] = 0;
        return fail_errno("create a temporary file beside", writer->path);
    }
    writer->file = file + 1;
    return ULP_OK;
}

static bool names_a_directory(const char *name) {
    return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

enum ulp_status file_writer_open(const char *path, uint64_t bytes, struct file_writer *ret_writer) {
    struct file_writer writer = {0};
    enum ulp_status status;

    if (names_a_directory(last_part(path)))
        return fail(ULP_E_USAGE, "%s names a directory, not a file", quote(path).text);
    if (bytes > INT64_MAX)
        return fail(ULP_E_LIMIT, "%s would exceed what a file can hold", quote(path).text);
    status = mem_copy_text(path, &writer.path);
    if (!status)
        status = open_directory_of(path, &writer.directory);
    if (!status)
        status = create_temporary(&writer);
    if (!status && ftruncate(descriptor(writer.file), (off_t)bytes))
        status = fail_errno("size", path);
    if (status) {
        file_writer_release(&writer);
        return status;
    }
    *ret_writer = writer;
    return ULP_OK;
}

enum ulp_status file_writer_put(const struct file_writer *writer, uint64_t offset, const void *data,
                                uint64_t bytes) {
    const uint8_t *from = data;

    while (bytes) {
        size_t piece = bytes < WRITE_PIECE_BYTES ? (size_t)bytes : WRITE_PIECE_BYTES;
        ssize_t put = pwrite(descriptor(writer->file), from, piece, (off_t)offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_errno("write", writer->path);
        from += put;
        offset += (uint64_t)put;
        bytes -= (uint64_t)put;
    }
    return ULP_OK;
}

enum ulp_status file_writer_commit(struct file_writer *writer) {
    int directory = descriptor(writer->directory);

    if (fsync(descriptor(writer->file)))
        return fail_errno("sync", writer->path);
    if (renameat(directory, writer->temporary, directory, last_part(writer->path)))
        return fail_errno("rename a temporary file to", writer->path);
    writer->temporary[0] = 0;
    if (fsync(directory))
        return fail_errno("sync the directory of", writer->path);
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
    *writer = (struct file_writer){0};
}

enum ulp_status file_make_directory(const char *path) {
    struct stat info;

    if (!mkdir(path, 0777))
        return ULP_OK;
    if (errno != EEXIST)
        return fail_errno("make directory", path);
    if (stat(path, &info))
        return fail_errno("look at", path);
    if (!S_ISDIR(info.st_mode))
        return fail(ULP_E_FILE_KIND, "%s exists and is not a directory", quote(path).text);
    return ULP_OK;
}

void file_remove_in(const char *directory, const char *name) {
    int open_directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (open_directory < 0)
        return;
    unlinkat(open_directory, name, 0);
    close(open_directory);
}

enum ulp_status file_replace(const char *path, const void *data, size_t bytes) {
    struct file_writer writer = {0};
    enum ulp_status status = file_writer_open(path, 0, &writer);

    if (!status)
        status = file_writer_put(&writer, 0, data, bytes);
    if (!status)
        status = file_writer_commit(&writer);
    file_writer_release(&writer);
    return status;
}
