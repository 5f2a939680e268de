// SPDX-License-Identifier: Apache-2.0
/*
 * Rules of a tiling from any text; the first byte is the number of tiles. Whatever rules are
 * accepted, the regions of all tiles together cover every element of a state once, or are refused
 * for every tile alike.
 */
#include "base/limits.h"
#include "base/memory.h"
#include "fuzz/target.h"
#include "patch/grid.h"

#include <string.h>
#include <ulpsync/tile.h>

#define TENSORS 6u

static const struct {
    const char *name, *dtype;
    uint64_t shape[3];
    uint32_t rank;
} forms[TENSORS] = {{"a.norm", "BF16", {64}, 1},       {"a.up", "BF16", {16, 32}, 2},
                    {"b.down", "F8_E4M3", {6, 48}, 2}, {"b.experts", "F32", {3, 8, 6}, 3},
                    {"b.packed", "F4", {2, 3}, 2},     {"c", "I64", {0}, 0}};

static void describe(struct ulp_tensor tensors[TENSORS]) {
    for (size_t i = 0; i < TENSORS; i++) {
        tensors[i] = (struct ulp_tensor){.name = forms[i].name,
                                         .dtype = forms[i].dtype,
                                         .shape = forms[i].shape,
                                         .rank = forms[i].rank};
        MUST(!ulp_tensor_measure(&tensors[i]));
    }
}

/* Elements of one tile, which a grid takes as they are. */
static uint64_t words_of_tile(const struct ulp_tensor *tensors, const struct ulp_region *regions,
                              size_t count) {
    struct grid grid = {0};
    uint64_t words = 0;

    if (count) {
        MUST(!grid_make(tensors, TENSORS, regions, count, &grid));
        words = grid.words;
    }
    grid_release(&grid);
    return words;
}

static void check_tiles(const struct ulp_tiling *tiling, unsigned tiles) {
    struct ulp_tensor tensors[TENSORS];
    struct grid whole = {0};
    enum ulp_status first = ULP_OK;
    uint64_t words = 0;

    describe(tensors);
    MUST(!grid_make(tensors, TENSORS, NULL, 0, &whole));
    for (unsigned tile = 0; tile <= tiles; tile++) {
        struct ulp_region *regions = NULL;
        size_t count = 0;
        enum ulp_status status =
            ulp_tiling_regions(tiling, tensors, TENSORS, tile, &regions, &count);

        first = tile ? first : status;
        MUST(status == first && (!status || status == ULP_E_REGIONS));
        words += words_of_tile(tensors, regions, count);
        ulp_regions_free(regions);
    }
    MUST(first || words == whole.words);
    grid_release(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ulp_tiling *tiling = NULL;
    char *text = NULL;
    enum ulp_status status;

    if (!size || size > (size_t)LIMIT_TILING_BYTES + 16)
        return 0;
    MUST(!mem_zeroed(size, 1, &text));
    memcpy(text, data + 1, size - 1);
    status = ulp_tiling_new(text, data[0], &tiling);
    MUST(!status || status == ULP_E_USAGE || status == ULP_E_LIMIT);
    if (!status)
        check_tiles(tiling, data[0]);
    ulp_tiling_free(tiling);
    mem_free(text);
    return 0;
}
