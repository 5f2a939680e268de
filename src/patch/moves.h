// SPDX-License-Identifier: Apache-2.0
/* History: how the elements of a state moved last, block by block of its grid. */
#ifndef PATCH_MOVES_H
#define PATCH_MOVES_H

#include "patch/grid.h"

/* Of one chunk: the moves of its blocks, end to end. Zeroed means none. */
struct chunk_moves {
    struct code_move *moves;
    size_t count, room;
    uint32_t *starts; /* of each block, and the end */
};

struct moves {
    struct ulp_root before; /* the state that they lead away from */
    struct chunk_moves *chunks;
    size_t chunk_count;
};

enum ulp_status moves_new(size_t chunks, struct moves **ret_moves);
void moves_free(struct moves *moves);

/* The blocks of a chunk are added one after the other. */
enum ulp_status chunk_moves_begin(struct chunk_moves *chunk, size_t blocks);
void chunk_moves_release(struct chunk_moves *chunk);

/* The elements at `positions` went from `old` to `new` (arrays of values at those places). */
enum ulp_status chunk_moves_add(struct chunk_moves *chunk, size_t block, unsigned width,
                                const uint32_t *positions, uint32_t count, const void *old,
                                const void *new);

/* What the codec wants to know of a block. */
static inline void chunk_moves_of(const struct chunk_moves *chunk, size_t block,
                                  struct code_block *to) {
    to->moves = chunk->moves ? chunk->moves + chunk->starts[block] : NULL;
    to->move_count = chunk->starts[block + 1] - chunk->starts[block];
}

#endif
