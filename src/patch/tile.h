// SPDX-License-Identifier: Apache-2.0
/* Which regions of a state a rank holds; see <ulpsync/tile.h>. */
#ifndef PATCH_TILE_H
#define PATCH_TILE_H

#include "base/status.h"

#include <ulpsync/tile.h>

enum ulp_status tiling_new(const char *rules, unsigned count, struct ulp_tiling **ret_tiling);
void tiling_free(struct ulp_tiling *tiling);

/* Of tiles, without the common one. */
unsigned tiling_count(const struct ulp_tiling *tiling);

enum ulp_status tiling_regions(const struct ulp_tiling *tiling, const struct ulp_tensor *tensors,
                               size_t count, unsigned tile, struct ulp_region **ret_regions,
                               size_t *ret_region_count);

#endif
