// SPDX-License-Identifier: Apache-2.0
/*
 * Tiles: how the tensors of a state are divided among the ranks that hold it.
 *
 * A tiling cuts a state into `count` tiles, numbered from 1, and a common part, tile 0: the tensors
 * that every rank holds whole. The same rules and the same names, dtypes and shapes give the same
 * regions everywhere, so that trainer and workers need only agree on the rules.
 *
 *     ulp_tiling_new("*.down_proj.weight columns\n", 8, &tiling);
 *     ulp_tiling_regions(tiling, tensors, count, rank + 1, &regions, &region_count);
 *     ulp_weights_new_tile(tensors, count, regions, region_count, &root, pool, NULL, &weights);
 *
 * docs/tiles.md has the rules and an example.
 */
#ifndef ULPSYNC_TILE_H
#define ULPSYNC_TILE_H

#include <stddef.h>
#include <ulpsync/patch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any number of threads may use one. */
struct ulp_tiling;

/*
 * `rules` is text, a rule on each line, of which the first whose pattern matches a tensor's name
 * holds for it:
 *
 *     PATTERN rows       bands of rows: rows are those of struct ulp_region
 *     PATTERN columns    bands of columns
 *     PATTERN common     whole, in tile 0
 *
 * In a pattern `*` stands for any bytes, also none and also dots; everything else for itself.
 * Spaces and tabs separate; empty lines, and lines that begin with `#`, say nothing. A tensor that
 * no rule matches is cut into bands of rows if it has two or more extents and that is possible, and
 * is common otherwise; so it is with rules NULL. The text is copied.
 *
 * ULP_E_USAGE, with the number of the line, for text that is not such rules, or no tiles at all;
 * ULP_E_LIMIT for too much of it, or too many tiles.
 */
ULP_API enum ulp_status ulp_tiling_new(const char *rules, unsigned count,
                                       struct ulp_tiling **ret_tiling);
ULP_API void ulp_tiling_free(struct ulp_tiling *tiling);

/*
 * The regions of one tile, 0 to `count`, as ulp_weights_new_tile() and struct ulp_diff_options take
 * them. `tensors` are all tensors of the state, in any order, and need no data. The array belongs
 * to the caller, who frees it with ulp_regions_free(); the names in it are those of `tensors`,
 * which must stay as long.
 *
 * A tile may be empty: no regions, and *ret_regions is NULL. Tensors without elements are in none.
 *
 * ULP_E_REGIONS, with the tensor and the line, when a rule cannot be met: the rows or columns do
 * not divide by the number of tiles, or a cut would tear a word of 8 bytes; whichever tile was
 * asked for. ULP_E_USAGE for a tile that there is not. ULP_E_DUPLICATE, ULP_E_NAME and others as
 * ulp_weights_new().
 */
ULP_API enum ulp_status ulp_tiling_regions(const struct ulp_tiling *tiling,
                                           const struct ulp_tensor *tensors, size_t count,
                                           unsigned tile, struct ulp_region **ret_regions,
                                           size_t *ret_region_count);
ULP_API void ulp_regions_free(struct ulp_region *regions);

#ifdef __cplusplus
}
#endif

#endif
