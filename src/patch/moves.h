// SPDX-License-Identifier: Apache-2.0
/*
 * History: how the elements of a state moved last, block by block of its grid. It is collected
 * chunk by chunk in a thread's working memory and then kept in a staging, so that memory does not
 * grow with the model.
 */
#ifndef PATCH_MOVES_H
#define PATCH_MOVES_H

#include "patch/grid.h"
#include "patch/staging.h"

/* Of one chunk: the moves of its blocks, end to end. Zeroed means none. */
struct chunk_moves {
    const struct code_move *moves;
    const uint32_t *starts; /* of each block, and the end */
};

/* What the codec wants to know of a block. */
static inline void chunk_moves_of(const struct chunk_moves *chunk, size_t block,
                                  struct code_block *to) {
    to->moves = chunk->moves ? chunk->moves + chunk->starts[block] : NULL;
    to->move_count = chunk->moves ? chunk->starts[block + 1] - chunk->starts[block] : 0;
}

/* ---- collecting those of a chunk ---- */

/* Zeroed means none. */
struct moves_list {
    struct code_move *moves;
    size_t count, room;
    uint32_t *starts;
    size_t blocks, block_room;
};

/* The blocks of a chunk are added one after the other; those without moves may be left out. */
enum ulp_status moves_list_begin(struct moves_list *list, size_t blocks);

/* The elements at `positions` went from `old` to `new` (arrays of values at those places). */
enum ulp_status moves_list_add(struct moves_list *list, size_t block, unsigned width,
                               const uint32_t *positions, uint32_t count, const void *old,
                               const void *new);

/* What was added, until the list is begun again. */
struct chunk_moves moves_list_view(struct moves_list *list);
void moves_list_release(struct moves_list *list);

/* ---- keeping those of a state ---- */

struct moves {
    struct ulp_root before; /* the state that they lead away from */
    struct chunk_moves *chunks;
    struct staging *staging;
};

enum ulp_status moves_new(size_t chunks, struct staging_room room, struct moves **ret_moves);
void moves_free(struct moves *moves);

/* A copy of what was added is that chunk's; from any thread. */
enum ulp_status moves_keep(struct moves *moves, size_t chunk, struct moves_list *list);

#endif
