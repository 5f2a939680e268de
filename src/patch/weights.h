// SPDX-License-Identifier: Apache-2.0
/* A state in memory with the sums of its pieces; see struct ulp_weights in <ulpsync/patch.h>. */
#ifndef PATCH_WEIGHTS_H
#define PATCH_WEIGHTS_H

#include "base/arena.h"
#include "patch/grid.h"
#include "patch/moves.h"
#include "patch/workers.h"

struct ulp_weights {
    struct arena arena;
    struct ulp_tensor *tensors; /* in name order */
    size_t count;
    struct ulp_region *regions; /* of a tile: what is held; else NULL, and everything is */
    size_t region_count;
    struct grid grid;     /* of what is held */
    struct ulp_sum *sums; /* of the grid's pieces */
    struct ulp_root root; /* of the whole state; who holds a tile was told it */
    struct moves *moves;  /* NULL when nothing is remembered */
    struct workers
        *workers; /* their memory serves all patches that are made of and applied to it */
};

enum ulp_status weights_new(const struct ulp_tensor *tensors, size_t count, struct ulp_pool *pool,
                            const struct ulp_progress *progress, struct ulp_weights **ret_weights);

/* Tensors, or of a tile its regions, in memory that the CPU does not reach: whoever does fills in sums
 * and root. */
enum ulp_status weights_new_elsewhere(const struct ulp_tensor *tensors, size_t count,
                                      const struct ulp_region *regions, size_t region_count,
                                      struct ulp_weights **ret_weights);

/* ULP_E_REGIONS: a tile has at least one. */
enum ulp_status weights_empty_tile(void);

enum ulp_status weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                 const struct ulp_region *regions, size_t region_count,
                                 const struct ulp_root *state, struct ulp_pool *pool,
                                 const struct ulp_progress *progress,
                                 struct ulp_weights **ret_weights);
void weights_free(struct ulp_weights *weights);

enum ulp_status weights_remember(struct ulp_weights *weights, const struct ulp_tensor *before,
                                 size_t count, struct ulp_pool *pool,
                                 const struct ulp_progress *progress);

/* The same; what is remembered takes this room. */
enum ulp_status weights_remember_in(struct ulp_weights *weights, const struct ulp_tensor *before,
                                    size_t count, struct staging_room room, struct ulp_pool *pool,
                                    const struct ulp_progress *progress);

/* ULP_E_REGIONS for a tile: `doing` begins the message. */
enum ulp_status weights_check_whole(const struct ulp_weights *weights, const char *doing);

/* Descriptions of `tensors` in the weights' order, in `arena`; ULP_E_LAYOUT if they are others.
 * Those of which a tile holds nothing need no data. */
enum ulp_status weights_match(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                              size_t count, struct arena *arena, struct ulp_tensor **ret_tensors);

/* Sums of all pieces of a grid, from scratch; `tensors` are the grid's, with data. */
enum ulp_status weights_digest(const struct grid *grid, const struct ulp_tensor *tensors,
                               struct ulp_pool *pool, const struct ulp_progress *progress,
                               struct ulp_sum *ret_sums);

#endif
