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
};

enum ulp_status staging_new(uint64_t budget, const char *directory, struct staging **ret_staging) {
    struct staging *staging = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *staging, &staging);

    if (status)
        return status;
    staging->budget = budget;
    lock_make(&staging->lock);
    status = mem_copy_text(file_nameless_directory(directory), &staging->directory);
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

/* Blocks are given to the file right away: a disk that is full says so here, and not as a signal
 * when the memory is touched. */
static enum ulp_status spill(struct staging *staging, struct stretch *stretch, size_t bytes) {
    const size_t page = 65536;
    size_t rounded = (bytes + page - 1) / page * page;
    int file = staging->file - 1, error;
    enum ulp_status status;
    void *place;

    if (file < 0) {
        status = file_nameless(staging->directory, &file);
        if (status)
            return status;
        staging->file = file + 1;
        log_message(ULP_LOG_INFO, "staging spills to %s", quote(staging->directory).text);
    }
    error = posix_fallocate(file, (off_t)staging->spilled, (off_t)rounded);
    if (error) {
        errno = error;
        return fail_errno("make room for staged changes in", staging->directory);
    }
    place = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)staging->spilled);
    if (place == MAP_FAILED)
        return fail_errno("map staged changes in", staging->directory);
    stretch->data = place;
    stretch->mapped = rounded;
    staging->spilled += rounded;
    return ULP_OK;
}

static enum ulp_status hold(struct staging *staging, struct stretch *stretch, size_t bytes) {
    enum ulp_status status = mem_resize(&stretch->data, bytes ? bytes : 1, 1);

    if (!status)
        staging->held += bytes;
    return status;
}

enum ulp_status staging_take(struct staging *staging, size_t bytes, void *ret_pointer) {
    struct stretch *stretch = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *stretch, &stretch);

    if (status)
        return status;
    lock_take(&staging->lock);
    if (bytes <= staging->budget && staging->held <= staging->budget - bytes)
        status = hold(staging, stretch, bytes);
    else
        status = spill(staging, stretch, bytes);
    if (!status) {
        stretch->next = staging->stretches;
        staging->stretches = stretch;
        memcpy(ret_pointer, &stretch->data, sizeof stretch->data);
    }
    lock_give(&staging->lock);
    if (status)
        mem_free(stretch);
    return status;
}

uint64_t staging_held(const struct staging *staging) {
    return staging->held;
}

uint64_t staging_spilled(const struct staging *staging) {
    return staging->spilled;
}
