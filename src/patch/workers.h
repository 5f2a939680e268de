// SPDX-License-Identifier: Apache-2.0
/*
 * Working memory of threads that take turns. A task takes a worker and gives it back; there are
 * never more of them than tasks that run at once, so memory is a constant for each thread.
 */
#ifndef PATCH_WORKERS_H
#define PATCH_WORKERS_H

#include "base/buffer.h"
#include "code/code.h"
#include "patch/moves.h"

struct worker {
    struct worker *next;
    struct code_encoder *encoder; /* NULL until it is asked for */
    struct code_scratch *scratch; /* of the decoder */
    size_t words;                 /* of the largest block that the following have room for */
    uint8_t *old, *new;           /* a block each, of the widest elements */
    uint32_t *positions;
    uint8_t *values;
    struct code_block *blocks;
    uint32_t *sizes; /* elements of the blocks of a chunk */
    size_t block_room;
    struct moves_list moves;          /* of a chunk */
    struct buffer bytes;              /* of a chunk */
    struct buffer old_copy, new_copy; /* elements of a chunk that are scattered in memory */
};

struct workers;

enum ulp_status workers_new(struct workers **ret_workers);
void workers_free(struct workers *workers);

/* Lets go of those that are idle. */
void workers_trim(struct workers *workers);

/* One with room for the blocks of a chunk of this many words. */
enum ulp_status workers_take(struct workers *workers, uint32_t words, struct worker **ret_worker);
void workers_give(struct workers *workers, struct worker *worker); /* NULL is fine */

/* Room for this many in `blocks` and `sizes`. */
enum ulp_status worker_blocks(struct worker *worker, size_t count);

/* Makes sure that there is an encoder. */
enum ulp_status worker_encoder(struct worker *worker);

/* The most bytes that a chunk may have in a patch. */
#define CHUNK_BYTES_MAX (UINT64_C(1) << 32)

#endif
