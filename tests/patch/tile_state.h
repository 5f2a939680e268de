// SPDX-License-Identifier: Apache-2.0
/* A step of training, divided among ranks that hold a tile each and garbage around it. */
#ifndef TESTS_PATCH_TILE_STATE_H
#define TESTS_PATCH_TILE_STATE_H

#include "tests/patch/state.h"

#define TILES_MAX 6

/* One rank. The memory of its tensors is that of the tile; what lies around it is garbage, and must
 * neither matter nor change. */
struct rank {
    struct ulp_region *regions;
    size_t region_count; /* 0: it holds nothing, and the rest is zero */
    struct state held;
    struct ulp_weights *weights;
    struct bytes bytes; /* the patch of its tile, made by itself */
    struct ulp_patch *patch;
};

struct world {
    struct state base, next;
    struct ulp_root parent, child;
    struct ulp_tiling *tiling;
    unsigned count;
    struct rank ranks[TILES_MAX + 1]; /* by tile: the common part first */
};

/* `next` is moved by the caller, or, with NULL, a step away. */
struct world world_make(const struct form *forms, size_t form_count, const char *rules,
                        unsigned count, void (*move)(struct state *next));
void world_free(struct world *world);

/* The bytes of `from` within the regions; garbage elsewhere. */
struct state garbage_around(const struct state *from, const struct ulp_region *regions,
                            size_t count);

/* Overwrites the regions of `to` with those of `from`. */
void copy_regions(struct state *to, const struct state *from, const struct ulp_region *regions,
                  size_t count);

struct ulp_weights *tile_weights(const struct state *held, const struct ulp_region *regions,
                                 size_t count, const struct ulp_root *root);

/* The patch that a tile's holder makes, who knows of the new state no more than its tile. */
struct bytes tile_patch(const struct ulp_weights *weights, const struct state *next,
                        const struct ulp_region *regions, size_t count);

/* The parts of all ranks that have one. */
size_t world_parts(const struct world *world, const struct ulp_patch *ret_parts[TILES_MAX + 1]);

#endif
