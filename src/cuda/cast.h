// SPDX-License-Identifier: Apache-2.0
/*
 * FP32 masters, cast into weights in place: BF16 and F16 are rounded (cuda/round.h), F32 is copied. What
 * every element was that changes is listed on pages, which are taken from a common pool before
 * anything is written. A block that finds the pool empty stops where it is, and goes on in the next
 * launch. Twin: cast_portable() in gpu/cast_portable.c.
 */
#ifndef CUDA_CAST_H
#define CUDA_CAST_H

#include "cuda/journal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The least that a pool must have room for, so that each launch gets further. */
#define CAST_POOL_LEAST (16u * JOURNAL_PAGE)

/* All pointers are device memory. */
struct cuda_cast {
    struct cuda_plan plan;
    const uint32_t *const *masters; /* of each block, aligned to its elements; NULL: it stays */
    uint32_t *done;                 /* of each block: elements that were cast; 0 before */
    uint32_t *counts;               /* of each block: what this launch listed */
    const uint64_t *first;          /* of each block: its first page in ... */
    uint32_t *pages;                /* ... this: one for each 512 elements */
    uint32_t *positions;            /* the pool, of `limit` entries ... */
    uint8_t *values; /* ... of `stride` bytes each, 4 where any element has as many */
    uint32_t stride, limit;
    unsigned long long *used; /* entries that were asked for; 0 before each launch */
    uint32_t *stopped;        /* blocks that did not get any further; 0 before each launch */
};

/* Enqueued on `stream`; returns at once. */
enum ulp_status cuda_cast_run(const struct cuda_cast *cast, void *stream);

#ifdef __cplusplus
}
#endif

#endif
