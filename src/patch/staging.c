// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE /* posix_fallocate */
#include "patch/staging.h"

#include "base/file.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file is mapped in pieces of this size, or of what is taken at once if that is more: a process
 * may have some 65 000 mappings, and each costs two system calls. */
#define EXTENT_BYTES ((size_t)16 << 20)

struct stretch {
    struct stretch *next;
    void *data;
    size_t mapped; /* bytes; 0 for memory of the heap */
};

struct staging {
    uint64_t budget;
    char *directory;

    struct lock lock; /* guards what follows */
    struct stretch *stretches;
    uint64_t held, spilled;
    int file; /* descriptor + 1 */
    uint64_t file_bytes;
    uint8_t *free; /* what is left of the last extent */
    size_t free_bytes;
};

enum ulp_status staging_new(struct staging_room room, struct staging **ret_staging) {
    struct staging *staging = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *staging, &staging);

    if (status)
        return status;
    staging->budget = room.heap_bytes ? room.heap_bytes : STAGING_BYTES_DEFAULT;
    lock_make(&staging->lock);
    status = mem_copy_text(file_nameless_directory(room.directory), &staging->directory);
    if (status) {
        staging_free(staging);
        return status;
    }
    *ret_staging = staging;
    return ULP_OK;
}

void staging_free(struct staging *staging) {
    if (!staging)
        return;
    while (staging->stretches) {
        struct stretch *stretch = staging->stretches;

        staging->stretches = stretch->next;
        if (stretch->mapped)
            munmap(stretch->data, stretch->mapped);
        else
            mem_free(stretch->data);
        mem_free(stretch);
    }
    if (staging->file)
        close(staging->file - 1);
    lock_destroy(&staging->lock);
    mem_free(staging->directory);
    mem_free(staging);
}

static enum ulp_status open_file(struct staging *staging) {
    int file = -1;
    enum ulp_status status = staging->file ? ULP_OK : file_nameless(staging->directory, &file);

    if (status || staging->file)
        return status;
    staging->file = file + 1;
    log_message(ULP_LOG_INFO, "staging spills to %s", quote(staging->directory).text);
    return ULP_OK;
}

/* Blocks are given to the file right away: a disk that is full says so here, and not as a signal
 * when the memory is touched. */
static enum ulp_status map_more(struct staging *staging, struct stretch *stretch, size_t bytes) {
    const off_t at = (off_t)staging->file_bytes;
    enum ulp_status status = open_file(staging);
    int error;
    void *place;

    if (status)
        return status;
    error = posix_fallocate(staging->file - 1, at, (off_t)bytes);
    if (error) {
        errno = error;
        return fail_errno("make room for staged changes in", staging->directory);
    }
    place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, staging->file - 1, at);
    if (place == MAP_FAILED)
        return fail_errno("map staged changes in", staging->directory);
    stretch->data = place;
    stretch->mapped = bytes;
    staging->file_bytes += bytes;
    return ULP_OK;
}

static void link_stretch(struct staging *staging, struct stretch *stretch) {
    stretch->next = staging->stretches;
    staging->stretches = stretch;
}

static enum ulp_status spill(struct staging *staging, size_t bytes, void **ret_place) {
    const size_t line = 64, rounded = (bytes + line - 1) / line * line;
    const size_t extents = (rounded + EXTENT_BYTES - 1) / EXTENT_BYTES;
    struct stretch *stretch = NULL;
    enum ulp_status status = ULP_OK;

    if (rounded > staging->free_bytes) {
        status = mem_zeroed(1, sizeof *stretch, &stretch);
        if (!status)
            status = map_more(staging, stretch, extents * EXTENT_BYTES);
        if (status) {
            mem_free(stretch);
            return status;
        }
        link_stretch(staging, stretch);
        staging->free = stretch->data;
        staging->free_bytes = stretch->mapped;
    }
    *ret_place = staging->free;
    staging->free += rounded;
    staging->free_bytes -= rounded;
    staging->spilled += rounded;
    return ULP_OK;
}

static enum ulp_status hold(struct staging *staging, size_t bytes, void **ret_place) {
    struct stretch *stretch = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *stretch, &stretch);

    if (!status)
        status = mem_resize(&stretch->data, bytes ? bytes : 1, 1);
    if (status) {
        mem_free(stretch);
        return status;
    }
    link_stretch(staging, stretch);
    staging->held += bytes;
    *ret_place = stretch->data;
    return ULP_OK;
}

enum ulp_status staging_take(struct staging *staging, size_t bytes, void *ret_pointer) {
    void *place = NULL;
    enum ulp_status status;

    if (bytes > SIZE_MAX / 2)
        return fail(ULP_E_NOMEM, "%zu bytes to be staged are more than memory can have", bytes);
    lock_take(&staging->lock);
    if (bytes <= staging->budget && staging->held <= staging->budget - bytes)
        status = hold(staging, bytes, &place);
    else
        status = spill(staging, bytes, &place);
    lock_give(&staging->lock);
    if (!status)
        memcpy(ret_pointer, &place, sizeof place);
    return status;
}

uint64_t staging_held(const struct staging *staging) {
    return staging->held;
}

uint64_t staging_spilled(const struct staging *staging) {
    return staging->spilled;
}
