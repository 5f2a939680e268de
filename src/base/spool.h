// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes that are collected in order and read when they are complete: in memory while they are few,
 * else all of them in a file that has no name. Memory does not grow with what is collected. For one
 * thread at a time. Zeroed means none; spool_release() accepts it.
 */
#ifndef BASE_SPOOL_H
#define BASE_SPOOL_H

#include "base/buffer.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct spool {
    struct buffer memory; /* its maximum is what may be in memory */
    char *directory;
    int file; /* descriptor + 1; 0 while everything is in memory */
    uint64_t written;
    void *mapped;
};

/* `memory_bytes` 0: nothing stays in memory. `directory` NULL or "": TMPDIR, or /tmp. */
enum ulp_status spool_open(struct spool *ret_spool, size_t memory_bytes, const char *directory);

/* One that fails adds nothing. In the file each is a write of its own: append in large pieces. */
enum ulp_status spool_append(struct spool *spool, const void *data, size_t bytes);

/* All of it, to be read until the release; nothing is appended any more. */
enum ulp_status spool_view(struct spool *spool, const uint8_t **ret_data, size_t *ret_bytes);

/* Nothing is left of it, however the process ends. */
void spool_release(struct spool *spool);

#endif
