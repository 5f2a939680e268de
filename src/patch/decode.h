// SPDX-License-Identifier: Apache-2.0
/* The changes of one chunk, decoded against the old elements and checked. */
#ifndef PATCH_DECODE_H
#define PATCH_DECODE_H

#include "base/lock.h"
#include "patch/moves.h"
#include "patch/patch.h"

/* Decoded changes of one chunk: for each block how many, where, and the values. */
struct decoded_chunk {
    uint32_t *counts;    /* of each block */
    uint32_t *positions; /* in their block */
    uint8_t *values;
    uint64_t changes;
};

/* Where the sums of a state are that is being patched. */
struct sum_target {
    struct ulp_sum *sums; /* of the pieces of a whole state or of a tile */

    /* For patches of regions, else NULL: of each tensor, when the state is whole. The lock guards
     * the sums then: regions may meet in a piece. */
    const size_t *first_piece;
    struct lock *lock;

    /* For patches of regions, else NULL: of each of them, when the state is a tile. Its pieces are
     * then those of the patch, if not in the same order. */
    const size_t *first_held;
};

struct decode_job {
    const struct ulp_patch *patch;
    const struct ulp_tensor *old;    /* the grid's tensors, with data; or NULL: */
    const uint8_t *elements;         /* the chunk's elements, end to end */
    const struct chunk_moves *moves; /* NULL without history */
    struct sum_target target;
};

struct decode_times {
    uint64_t decode_ns, digest_ns;
};

/*
 * Decodes a chunk that has bytes. The arrays of `into` have room for the chunk's blocks and for the
 * changes that its table announces; more than those are refused. The sums, those of the old state,
 * are adjusted.
 */
enum ulp_status decode_chunk(const struct decode_job *job, size_t chunk, struct worker *worker,
                             struct decoded_chunk *into, struct decode_times *times);

/* ULP_E_WRONG_RESULT, naming the tensor, unless the sums of the chunk's pieces are those of its
 * table; not for regions of a whole state, whose pieces are others. */
enum ulp_status decode_check(const struct ulp_patch *patch, size_t chunk,
                             const struct sum_target *target);

#endif
