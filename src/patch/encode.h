// SPDX-License-Identifier: Apache-2.0
/* One chunk of a patch, from two states of it. */
#ifndef PATCH_ENCODE_H
#define PATCH_ENCODE_H

#include "patch/moves.h"
#include "patch/workers.h"

struct encode_job {
    const struct grid *grid;
    const struct ulp_tensor *old;    /* the grid's tensors, with data */
    const struct ulp_tensor *new;    /* the same afterwards; or NULL: */
    const uint8_t *elements;         /* the chunk's new elements, end to end */
    const struct chunk_moves *moves; /* NULL without history */
    enum ulp_coder coder;
};

struct encoded_chunk {
    uint64_t changes;
    bool history; /* coded with it */
    uint64_t encode_ns, digest_ns;
};

/* Codes the chunk into worker->bytes (what is there without changes means nothing) and adjusts
 * `sums`, which are those of the grid's pieces in the old state. */
enum ulp_status encode_chunk(const struct encode_job *job, size_t chunk, struct worker *worker,
                             struct ulp_sum *sums, struct encoded_chunk *ret_encoded);

#endif
