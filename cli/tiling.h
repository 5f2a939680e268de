// SPDX-License-Identifier: Apache-2.0
/* How a verb is told of tiles: their number, and a file with rules. */
#ifndef CLI_TILING_H
#define CLI_TILING_H

#include "cli/options.h"

#define CLI_OPTION_LAYOUT                                                                          \
    { "layout", 0, "FILE", "Rules that say how tensors are cut into tiles, one on a line." }

/* A tiling of `tiles` tiles with the rules of --layout, if that was given. */
enum ulp_status tiling_of(const struct cli_args *args, unsigned tiles,
                          struct ulp_tiling **ret_tiling);

/* --tiles N; NULL without it. */
enum ulp_status option_tiles(const struct cli_args *args, struct ulp_tiling **ret_tiling);

/* --slice K/N: tile K of N; NULL and 0 without it. */
enum ulp_status option_slice(const struct cli_args *args, struct ulp_tiling **ret_tiling,
                             unsigned *ret_tile);

#endif
