// SPDX-License-Identifier: Apache-2.0
/* Which regions of tensors a patch may be made of. */
#include "tests/patch/state.h"

#include "base/limits.h"
#include "patch/grid.h"
#include "patch/place.h"

static const struct form forms[] = {{"a", "BF16", {10, 20}, 2, 0},
                                    {"b", "F32", {3, 4, 7}, 3, 0},
                                    {"c", "F8_E4M3", {103}, 1, 0},
                                    {"d", "F4", {5, 6}, 2, 0},
                                    {"e", "F64", {5, 3}, 2, 0}};

static enum ulp_status take(const struct ulp_region *regions, size_t count, struct grid *grid) {
    static struct state state;

    if (!state.count)
        state = state_make(forms, COUNT(forms), 0);
    return grid_make(state.tensors, state.count, regions, count, grid);
}

static void taken(struct ulp_region region) {
    struct grid grid = {0};

    assert_ok(take(&region, 1, &grid));
    assert_false(grid.whole);
    assert_int_equal(grid.words, region.rows * region.columns);
    grid_release(&grid);
}

static void refused(struct ulp_region region, enum ulp_status status, const char *text) {
    struct grid grid = {0};

    assert_fails(take(&region, 1, &grid), status, text);
    assert_null(grid.regions);
}

static void test_rows_and_columns(void **unused) {
    (void)unused;
    taken((struct ulp_region){"a", 0, 10, 0, 20});
    taken((struct ulp_region){"a", 3, 1, 0, 20});
    taken((struct ulp_region){"a", 9, 1, 16, 4});
    taken((struct ulp_region){"a", 0, 10, 4, 8});
    taken((struct ulp_region){"b", 2, 2, 0, 7}); /* rows of 28 bytes: two make whole words */
    taken((struct ulp_region){"b", 0, 12, 0, 7});
    taken((struct ulp_region){"c", 0, 1, 8, 95}); /* to the end, which need not be on a word */
    taken((struct ulp_region){"c", 0, 1, 0, 8});
    taken((struct ulp_region){"d", 0, 5, 0, 3}); /* bytes, two elements each */
    taken((struct ulp_region){"e", 4, 1, 2, 1}); /* every element is a word */
    taken((struct ulp_region){"e", 1, 3, 1, 1});
}

static void test_words_are_not_torn(void **unused) {
    static const char text[] = "words of 8 bytes";

    (void)unused;
    refused((struct ulp_region){"a", 0, 10, 2, 8}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 0, 10, 4, 7}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 3, 1, 1, 4}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"b", 1, 2, 0, 7}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"b", 0, 1, 0, 7}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"b", 0, 2, 0, 2}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"c", 0, 1, 0, 4}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"c", 0, 1, 4, 99}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"c", 0, 1, 96, 6}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"d", 0, 4, 0, 3}, ULP_E_REGIONS, text);
}

static void test_out_of_bounds(void **unused) {
    static const char text[] = "not inside of it";

    (void)unused;
    refused((struct ulp_region){"a", 0, 0, 0, 20}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 0, 10, 0, 0}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 0, 11, 0, 20}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 10, 1, 0, 20}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 0, 10, 4, 20}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 0, 10, 24, 4}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 1, UINT64_MAX, 0, 20}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", UINT64_MAX, 2, 0, 20}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 0, 10, 4, UINT64_MAX - 3}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"a", 0, 10, UINT64_MAX - 3, 8}, ULP_E_REGIONS, text);
    refused((struct ulp_region){"nobody", 0, 1, 0, 4}, ULP_E_LAYOUT, "'nobody'");
    refused((struct ulp_region){NULL, 0, 1, 0, 4}, ULP_E_LAYOUT, "not there");
}

static void pair_refused(struct ulp_region first, struct ulp_region second, const char *text) {
    const struct ulp_region regions[] = {first, second};
    struct grid grid = {0};

    assert_fails(take(regions, 2, &grid), ULP_E_REGIONS, text);
    assert_null(grid.regions);
}

static void test_order_and_overlap(void **unused) {
    const struct ulp_region left = {"a", 0, 5, 0, 8}, right = {"a", 0, 5, 8, 12};
    const struct ulp_region below = {"a", 5, 5, 0, 20}, other = {"b", 0, 12, 0, 7};
    const struct ulp_region good[] = {left, right, below, other};
    struct grid grid = {0};

    (void)unused;
    assert_ok(take(good, COUNT(good), &grid));
    assert_int_equal(grid.words, 200 + 84);
    grid_release(&grid);
    pair_refused(right, left, "out of order");
    pair_refused(below, left, "out of order");
    pair_refused(other, left, "out of order");
    pair_refused(left, left, "overlaps");
    pair_refused(left, (struct ulp_region){"a", 0, 1, 4, 8}, "overlaps");
    pair_refused(left, (struct ulp_region){"a", 4, 6, 0, 20}, "overlaps");
    pair_refused((struct ulp_region){"a", 0, 10, 16, 4}, (struct ulp_region){"a", 9, 1, 0, 20},
                 "overlaps");
}

/* An overlap is found also when others stand between the two. */
static void test_overlap_at_a_distance(void **unused) {
    const struct ulp_region regions[] = {
        {"a", 0, 10, 0, 4}, {"a", 1, 1, 4, 4}, {"a", 2, 1, 8, 4}, {"a", 9, 1, 0, 20}};
    struct grid grid = {0};

    (void)unused;
    assert_fails(take(regions, COUNT(regions), &grid), ULP_E_REGIONS, "overlaps");
    assert_ok(take(regions, COUNT(regions) - 1, &grid));
    grid_release(&grid);
}

/* `count` rows of one tensor, each a region. */
static enum ulp_status take_rows(size_t count) {
    static const uint64_t shape[] = {1000, 4};
    struct ulp_tensor tensor = {.name = "t", .dtype = "BF16", .shape = shape, .rank = 2};
    struct ulp_region *regions = calloc(count, sizeof *regions);
    struct grid grid = {0};
    enum ulp_status status;

    assert_ok(ulp_tensor_measure(&tensor));
    for (size_t i = 0; i < count; i++)
        regions[i] = (struct ulp_region){"t", i, 1, 0, 4};
    status = grid_make(&tensor, 1, regions, count, &grid);
    grid_release(&grid);
    free(regions);
    return status;
}

static void test_too_many(void **unused) {
    struct grid grid = {0};
    struct ulp_region region = {"a", 0, 1, 0, 4};

    (void)unused;
    assert_ok(take_rows(1000)); /* a thousand ranks have a row each */
    assert_fails(take(&region, LIMIT_REGIONS + 1, &grid), ULP_E_LIMIT, "regions");
}

/* A band of columns, read through the blocks, is just its elements row by row. */
static void test_where_elements_are(void **unused) {
    const struct ulp_region band = {"a", 2, 6, 8, 8};
    struct state state = state_make(forms, COUNT(forms), 0);
    static uint8_t scratch[PLACE_BYTES];
    struct grid grid = {0};
    struct block_walk block;
    const uint8_t *read;

    (void)unused;
    assert_ok(grid_make(state.tensors, state.count, &band, 1, &grid));
    block = block_walk_start(&grid, 0);
    assert_true(block_walk_next(&block));
    assert_int_equal(block.words, 48);
    read = place_read(&block, state.tensors[0].data, scratch);
    for (uint32_t i = 0; i < 48; i++) {
        uint64_t offset = 2 * ((2 + i / 8) * UINT64_C(20) + 8 + i % 8);

        assert_int_equal(place_offset(&block, i), offset);
        assert_memory_equal(read + 2 * i, (const uint8_t *)state.tensors[0].data + offset, 2);
    }
    assert_false(block_walk_next(&block));
    grid_release(&grid);
    state_free(&state);
}

TEST_MAIN(test_rows_and_columns, test_words_are_not_torn, test_out_of_bounds,
          test_order_and_overlap, test_overlap_at_a_distance, test_too_many,
          test_where_elements_are)
