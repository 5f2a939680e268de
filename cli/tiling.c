// SPDX-License-Identifier: Apache-2.0
#include "cli/tiling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library's own limit, and one more to see what exceeds it. */
#define RULES_BYTES_MAX 65536u
#define TILES_MAX 1024u

/* `text` has room for all that is allowed, one byte more and a NUL. */
static enum ulp_status read_rules(const char *path, char *text) {
    FILE *file = fopen(path, "rb");
    size_t bytes;
    int failed;

    if (!file)
        return ulp_fail(errno == ENOENT ? ULP_E_NOT_FOUND : ULP_E_IO, "cannot open the layout: %s",
                        strerror(errno));
    bytes = fread(text, 1, RULES_BYTES_MAX + 1, file);
    failed = ferror(file);
    fclose(file);
    if (failed)
        return ulp_fail(ULP_E_IO, "cannot read the layout");
    text[bytes] = 0;
    return strlen(text) == bytes
               ? ULP_OK
               : ulp_fail(ULP_E_USAGE, "the layout is no text: it has a byte that is 0");
}

enum ulp_status tiling_of(const struct cli_args *args, unsigned tiles,
                          struct ulp_tiling **ret_tiling) {
    const char *layout = option_text(args, "layout");
    char *rules = NULL;
    enum ulp_status status = ULP_OK;

    if (layout) {
        rules = malloc(RULES_BYTES_MAX + 2);
        status = rules ? read_rules(layout, rules) : ulp_fail(ULP_E_NOMEM, "out of memory");
    }
    if (!status)
        status = ulp_tiling_new(rules, tiles, ret_tiling);
    free(rules);
    return status;
}

static enum ulp_status check_alone(const struct cli_args *args, const char *needs) {
    return option_given(args, "layout")
               ? ulp_fail(ULP_E_USAGE, "--layout says how tiles are cut; give %s too", needs)
               : ULP_OK;
}

enum ulp_status option_tiles(const struct cli_args *args, struct ulp_tiling **ret_tiling) {
    uint64_t tiles = 0;
    enum ulp_status status = option_count(args, "tiles", 1, TILES_MAX, &tiles);

    if (status)
        return status;
    return tiles ? tiling_of(args, (unsigned)tiles, ret_tiling) : check_alone(args, "--tiles N");
}

enum ulp_status option_slice(const struct cli_args *args, struct ulp_tiling **ret_tiling,
                             unsigned *ret_tile) {
    const char *text = option_text(args, "slice");
    unsigned long tile, tiles = 0;
    char *end = NULL;

    if (!text)
        return check_alone(args, "--slice K/N");
    tile = *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (end && *end == '/' && end[1] >= '1' && end[1] <= '9')
        tiles = strtoul(end + 1, &end, 10);
    if (!tiles || *end || tile > tiles || tiles > TILES_MAX)
        return ulp_fail(
            ULP_E_USAGE,
            "--slice takes K/N, tile K of N: both from 1, N at most %u, and K at most N",
            TILES_MAX);
    *ret_tile = (unsigned)tile;
    return tiling_of(args, (unsigned)tiles, ret_tiling);
}
