// SPDX-License-Identifier: Apache-2.0
/* A thousand ranks and more: a row each, or bands of columns, which are compared in pairs. */
#include "tests/patch/state.h"

#include "base/limits.h"
#include "patch/grid.h"

#define RANKS 1024

static const struct form forms[] = {{"w", "BF16", {RANKS, 64}, 2, 0}};

static struct {
    struct state base, next, live;
    struct ulp_weights *weights;
    struct bytes bytes[RANKS];
    struct ulp_patch *patches[RANKS];
} ranks;

static const struct ulp_patch *const *list(void) {
    return (const struct ulp_patch *const *)ranks.patches;
}

static void begin(void) {
    ranks.base = state_make(forms, COUNT(forms), 0);
    ranks.next = state_copy(&ranks.base);
    state_step(&ranks.next, 100);
    ranks.live = state_copy(&ranks.base);
    ranks.weights = weights_of(&ranks.live);
    for (size_t i = 0; i < RANKS; i++) {
        const struct ulp_region row = {"w", i, 1, 0, 64};
        const struct ulp_diff_options options = {.regions = &row, .region_count = 1};

        ranks.bytes[i] = patch_to(ranks.weights, &ranks.next, &options);
        ranks.patches[i] = open_bytes(&ranks.bytes[i]);
    }
}

static void end(void) {
    for (size_t i = 0; i < RANKS; i++) {
        ulp_patch_free(ranks.patches[i]);
        bytes_free(&ranks.bytes[i]);
    }
    ulp_weights_free(ranks.weights);
    state_free(&ranks.base);
    state_free(&ranks.next);
    state_free(&ranks.live);
}

static void test_a_row_each(void **unused) {
    struct ulp_root root, next;
    struct ulp_apply *apply = NULL;

    (void)unused;
    begin();
    next = root_of(&ranks.next);
    assert_ok(ulp_parts_root(list(), RANKS, &root));
    assert_same_root(&root, &next);
    assert_ok(ulp_apply_prepare_parts(ranks.weights, list(), RANKS, &root, NULL, &apply));
    assert_same_state(&ranks.live, &ranks.base);
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_same_state(&ranks.live, &ranks.next);
    assert_root_of(ranks.weights, &ranks.next);
    ulp_apply_free(apply);
    end();
}

static void test_one_of_them_twice_or_not_at_all(void **unused) {
    struct ulp_root root;
    struct ulp_patch *kept;

    (void)unused;
    begin();
    assert_fails(ulp_parts_root(list(), RANKS - 1, &root), ULP_E_REGIONS, "the parts cover");
    kept = ranks.patches[RANKS - 1];
    ranks.patches[RANKS - 1] = ranks.patches[RANKS / 2];
    assert_fails(ulp_parts_root(list(), RANKS, &root), ULP_E_REGIONS, "overlaps");
    ranks.patches[RANKS - 1] = kept;
    end();
}

/* ---- bands of columns: all of them share rows, so every two are compared ---- */

struct bands {
    struct ulp_tensor tensor;
    uint64_t shape[2];
    struct ulp_region *regions;
    size_t count;
};

/* Bands of one 8-byte word, in as many columns; tensors of a grid need no data. */
static struct bands *bands_make(size_t count) {
    struct bands *bands = calloc(1, sizeof *bands);

    assert_non_null(bands);
    bands->count = count;
    bands->shape[0] = 2;
    bands->shape[1] = count;
    bands->tensor =
        (struct ulp_tensor){.name = "w", .dtype = "I64", .shape = bands->shape, .rank = 2};
    bands->regions = calloc(count, sizeof *bands->regions);
    assert_non_null(bands->regions);
    assert_ok(ulp_tensor_measure(&bands->tensor));
    for (size_t i = 0; i < count; i++)
        bands->regions[i] = (struct ulp_region){"w", 0, 2, i, 1};
    return bands;
}

static enum ulp_status take(const struct bands *bands) {
    struct grid grid = {0};
    enum ulp_status status = grid_make(&bands->tensor, 1, bands->regions, bands->count, &grid);

    grid_release(&grid);
    return status;
}

static void bands_free(struct bands *bands) {
    free(bands->regions);
    free(bands);
}

static void test_overlapping_bands(void **unused) {
    struct bands *bands = bands_make(2000);

    (void)unused;
    assert_ok(take(bands));
    bands->regions[700].columns = 2;
    assert_fails(take(bands), ULP_E_REGIONS, "overlaps");
    bands->regions[700].columns = 1;
    bands->regions[0].columns = 2000; /* across all others */
    assert_fails(take(bands), ULP_E_REGIONS, "overlaps");
    bands->regions[0].columns = 1;
    bands->regions[1999] = (struct ulp_region){"w", 1, 1, 3, 1}; /* lower, and far from its rival */
    assert_fails(take(bands), ULP_E_REGIONS, "overlaps");
    bands_free(bands);
}

/* Twice as many pairs as the limit has, in bands that do not overlap. */
static void test_the_limit_of_pairs(void **unused) {
    size_t count = 1;
    struct bands *bands;

    (void)unused;
    while ((uint64_t)count * count < UINT64_C(4) * LIMIT_REGION_PAIRS)
        count *= 2;
    bands = bands_make(count);
    assert_fails(take(bands), ULP_E_LIMIT, "too many to compare");
    bands_free(bands);
}

TEST_MAIN(test_a_row_each, test_one_of_them_twice_or_not_at_all, test_overlapping_bands,
          test_the_limit_of_pairs)
