// SPDX-License-Identifier: Apache-2.0
/*
 * What a rank holds of a state: one tile of a tiling, and the common part with it. Tensors keep
 * their full shapes; only the regions of the slice are ever touched.
 */
#ifndef SYNC_SLICE_H
#define SYNC_SLICE_H

#include "patch/tile.h"
#include "sync/anchor_files.h"

#include <stdbool.h>

struct slice {
    const struct ulp_tiling *tiling;
    unsigned tile; /* from 1 */
    bool common;   /* the common part too */
};

/* ULP_E_USAGE for a tile that there is not. */
enum ulp_status slice_make(const struct ulp_tiling *tiling, unsigned tile, bool common,
                           struct slice *ret_slice);

/* The regions of the slice, sorted; NULL and 0 if it has nothing of these tensors. To be freed with
 * mem_free(); the names are those of `tensors`. */
enum ulp_status slice_regions(const struct slice *slice, const struct ulp_tensor *tensors,
                              size_t count, struct ulp_region **ret_regions, size_t *ret_count);

/* Goes through the stretches of a region that are contiguous in its tensor. */
typedef enum ulp_status (*region_stretch)(void *user, uint64_t offset, size_t bytes);
enum ulp_status region_each_stretch(const struct ulp_tensor *tensor,
                                    const struct ulp_region *region, region_stretch fn, void *user);

/* Copies the regions from some tensors to those of the same names, which must have the same form:
 * ULP_E_LAYOUT. `to` is sorted by name. */
enum ulp_status regions_copy(const struct ulp_region *regions, size_t region_count,
                             const struct ulp_tensor *from, size_t from_count,
                             const struct ulp_tensor *to, size_t to_count);

/*
 * The root of a state that comes shard by shard, of which only a slice is kept: the sums of its
 * tensors are collected. Zeroed means empty.
 */
struct tensor_sum {
    const char *name;
    struct ulp_sum sum;
};
struct sums {
    struct arena arena;
    struct tensor_sum *list;
    size_t count, room;
};
enum ulp_status sums_add(struct sums *sums, const struct ulp_tensor *tensors, size_t count,
                         struct ulp_pool *pool);

/* `tensors` are the state's, sorted by name; ULP_E_LAYOUT if sums of others were added. */
enum ulp_status sums_root(struct sums *sums, const struct ulp_tensor *tensors, size_t count,
                          struct ulp_root *ret_root);
void sums_release(struct sums *sums);

#endif
