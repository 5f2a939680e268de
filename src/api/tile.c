// SPDX-License-Identifier: Apache-2.0
/* Public entry points on tilings: argument checks, then one internal call. */
#include "patch/tile.h"
#include "base/memory.h"

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_tiling_new(const char *rules, unsigned count, struct ulp_tiling **ret_tiling) {
    return ret_tiling ? tiling_new(rules, count, ret_tiling) : missing(__func__);
}

void ulp_tiling_free(struct ulp_tiling *tiling) {
    tiling_free(tiling);
}

enum ulp_status ulp_tiling_regions(const struct ulp_tiling *tiling,
                                   const struct ulp_tensor *tensors, size_t count, unsigned tile,
                                   struct ulp_region **ret_regions, size_t *ret_region_count) {
    if (!tiling || (count && !tensors) || !ret_regions || !ret_region_count)
        return missing(__func__);
    return tiling_regions(tiling, tensors, count, tile, ret_regions, ret_region_count);
}

void ulp_regions_free(struct ulp_region *regions) {
    mem_free(regions);
}
