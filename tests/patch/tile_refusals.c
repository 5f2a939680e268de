// SPDX-License-Identifier: Apache-2.0
/* What the holder of a tile does not let in, and what tiles are not for. Nothing is written. */
#include "tests/patch/damage.h"
#include "tests/patch/tile_state.h"

#include <stdbool.h>

static const struct form forms[] = {
    {"a", "BF16", {24, 64}, 2, 0}, {"b", "F32", {6, 48}, 2, 0}, {"c", "F8_E4M3", {64}, 1, 0}};
static const char rules[] = "b columns";

/* Tries a patch on a tile's holder, who stays as he was: the first failure, or ULP_OK. */
static enum ulp_status try_part(const struct world *world, const struct rank *rank,
                                struct ulp_weights *weights, const void *data, size_t bytes) {
    struct state before = state_copy(&rank->held);
    const struct ulp_patch *part;
    struct ulp_patch *patch = NULL;
    struct ulp_apply *apply = NULL;
    struct ulp_root root;
    enum ulp_status status = ulp_patch_open_memory(data, bytes, &patch);

    part = patch;
    if (!status)
        status = ulp_apply_prepare_parts(weights, &part, 1, &world->child, NULL, &apply);
    ulp_apply_free(apply);
    ulp_patch_free(patch);
    assert_same_state(&rank->held, &before);
    ulp_weights_root(weights, &root);
    assert_same_root(&root, &world->parent);
    state_free(&before);
    return status;
}

static void test_the_patch_of_another_tile(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);

    (void)unused;
    for (unsigned mine = 0; mine <= 3; mine++) {
        for (unsigned other = 0; other <= 3; other++) {
            const struct bytes *bytes = &world.ranks[other].bytes;
            enum ulp_status status = try_part(&world, &world.ranks[mine], world.ranks[mine].weights,
                                              bytes->data, bytes->used);

            assert_int_equal(status, mine == other ? ULP_OK : ULP_E_REGIONS);
            if (status)
                assert_non_null(strstr(ulp_last_error(), "regions that the weights hold"));
        }
    }
    world_free(&world);
}

/* A part of the tile's regions would leave the rest behind. */
static void test_some_of_the_regions(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[1];
    const struct ulp_diff_options options = {.regions = rank->regions, .region_count = 1};
    struct bytes bytes = patch_to(rank->weights, &world.next, &options);

    (void)unused;
    assert_int_equal(rank->region_count, 2);
    assert_fails(try_part(&world, rank, rank->weights, bytes.data, bytes.used), ULP_E_REGIONS,
                 "covers 1 of 2 regions");
    bytes_free(&bytes);
    world_free(&world);
}

/* They begin where the tile's do, and are longer or broader. */
static void test_regions_of_another_size(void **unused) {
    static const struct ulp_region others[][2] = {{{"a", 0, 9, 0, 64}, {"b", 0, 6, 0, 16}},
                                                  {{"a", 0, 8, 0, 64}, {"b", 0, 6, 0, 14}},
                                                  {{"a", 0, 8, 0, 64}, {"b", 0, 5, 0, 16}},
                                                  {{"a", 0, 8, 0, 60}, {"b", 0, 6, 0, 16}}};
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[1];

    (void)unused;
    for (size_t i = 0; i < COUNT(others); i++) {
        const struct ulp_diff_options options = {.regions = others[i], .region_count = 2};
        struct bytes bytes = patch_between(&world.base, &world.next, &options);

        assert_fails(try_part(&world, rank, rank->weights, bytes.data, bytes.used), ULP_E_REGIONS,
                     "not one of the regions that the weights hold");
        bytes_free(&bytes);
    }
    world_free(&world);
}

static void test_a_whole_patch(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[1];
    struct bytes whole = patch_between(&world.base, &world.next, NULL);
    struct ulp_patch *patch = open_bytes(&whole);
    struct ulp_tensor_report reports[COUNT(forms)];
    const struct ulp_patch *const list[] = {patch};
    struct bytes out = {0};
    struct ulp_sink sink = bytes_sink(&out);

    (void)unused;
    assert_fails(ulp_apply(rank->weights, patch, NULL, NULL), ULP_E_REGIONS,
                 "is a whole patch, but these weights are a tile");
    assert_fails(try_part(&world, rank, rank->weights, whole.data, whole.used), ULP_E_REGIONS,
                 "is a whole patch");
    assert_fails(ulp_patch_inspect(patch, rank->weights, NULL, NULL, reports), ULP_E_REGIONS,
                 "is a whole patch");
    assert_fails(ulp_squash(rank->weights, list, 1, NULL, &sink, NULL), ULP_E_REGIONS,
                 "squashing: these weights are a tile");
    ulp_patch_free(patch);
    bytes_free(&whole);
    world_free(&world);
}

/* The root that a tile leads to is not in it. */
static void test_without_the_child(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[1];
    const struct ulp_patch *part = rank->patch;
    struct ulp_apply *apply = NULL;

    (void)unused;
    assert_fails(ulp_apply_prepare_parts(rank->weights, &part, 1, NULL, NULL, &apply),
                 ULP_E_REGIONS, "or the root that these lead to");
    assert_fails(ulp_apply(rank->weights, rank->patch, NULL, NULL), ULP_E_REGIONS, "the root");
    assert_null(apply);
    world_free(&world);
}

static void test_another_base(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[2];
    const struct ulp_root other = {{7}};
    const struct ulp_patch *part = rank->patch;
    struct ulp_apply *apply = NULL;
    struct ulp_weights *weights =
        tile_weights(&rank->held, rank->regions, rank->region_count, &other);

    (void)unused;
    assert_fails(ulp_apply_prepare_parts(weights, &part, 1, &world.child, NULL, &apply),
                 ULP_E_WRONG_BASE, "starts from state");
    ulp_weights_free(weights);
    world_free(&world);
}

/* Whether a bit of a held tensor lies in the regions: a copy of them takes it along. */
static bool is_held(const struct world *world, const struct rank *rank, size_t tensor, size_t bit) {
    struct state mark = state_copy(&world->base), seen = state_copy(&world->base);
    bool held;

    memset(mark.data, 0xff, mark.bytes);
    memset(seen.data, 0, seen.bytes);
    copy_regions(&seen, &mark, rank->regions, rank->region_count);
    held = ((const uint8_t *)seen.tensors[tensor].data)[bit / 8];
    state_free(&mark);
    state_free(&seen);
    return held;
}

/* Within the regions every bit counts, whether the patch moves it or not. Bits outside do not. */
static void flip_held_bits(const struct world *world, const struct rank *rank) {
    unsigned refused = 0;

    for (unsigned i = 0; i < 300; i++) {
        const size_t which = test_random() % COUNT(forms);
        const struct ulp_tensor *tensor = &rank->held.tensors[which];
        const size_t bit = test_random() % (8 * tensor->bytes);
        struct ulp_weights *weights;
        enum ulp_status status;

        flip(tensor->data, bit);
        weights = tile_weights(&rank->held, rank->regions, rank->region_count, &world->parent);
        status = try_part(world, rank, weights, rank->bytes.data, rank->bytes.used);
        if (is_held(world, rank, which, bit) != (status != ULP_OK) ||
            (status && status != ULP_E_WRONG_RESULT && status != ULP_E_CODE &&
             status != ULP_E_TABLE))
            fail_msg("bit %zu of %s: %s", bit, tensor->name, ulp_status_name(status));
        refused += status != ULP_OK;
        ulp_weights_free(weights);
        flip(tensor->data, bit);
    }
    assert_true(refused > 20 && refused < 280);
}

static void test_bits_of_held_weights(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);

    (void)unused;
    for (unsigned tile = 1; tile <= 3; tile++)
        flip_held_bits(&world, &world.ranks[tile]);
    world_free(&world);
}

/* The patch moves nothing, and still finds what is wrong; the tensor is named. */
static void stand_still(struct state *next) {
    (void)next;
}

static void test_a_bit_where_nothing_moves(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, stand_still);
    struct rank *rank = &world.ranks[1];
    uint8_t *last = (uint8_t *)rank->held.tensors[0].data + 8 * 64 * 2 - 1; /* of the eighth row */
    struct ulp_weights *weights;

    (void)unused;
    assert_int_equal(try_part(&world, rank, rank->weights, rank->bytes.data, rank->bytes.used),
                     ULP_OK);
    *last ^= 0x80;
    weights = tile_weights(&rank->held, rank->regions, rank->region_count, &world.parent);
    assert_fails(try_part(&world, rank, weights, rank->bytes.data, rank->bytes.used),
                 ULP_E_WRONG_RESULT, "tensor 'a' would not become what the patch says");
    ulp_weights_free(weights);
    world_free(&world);
}

static void test_every_bit_of_the_patch(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);

    (void)unused;
    for (unsigned tile = 0; tile <= 3; tile++) {
        const struct rank *rank = &world.ranks[tile];

        for (size_t bit = 0; bit < 8 * rank->bytes.used; bit++) {
            flip(rank->bytes.data, bit);
            if (try_part(&world, rank, rank->weights, rank->bytes.data, rank->bytes.used) == ULP_OK)
                fail_msg("tile %u, bit %zu", tile, bit);
            flip(rank->bytes.data, bit);
        }
    }
    world_free(&world);
}

static void test_what_tiles_are_not_for(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[1];
    const struct ulp_diff_options foreign = {.regions = world.ranks[2].regions, .region_count = 1};
    struct bytes out = {0};
    struct ulp_sink sink = bytes_sink(&out);
    struct ulp_tensor_report reports[COUNT(forms)];

    (void)unused;
    assert_fails(ulp_weights_remember(rank->weights, world.base.tensors, COUNT(forms), NULL, NULL),
                 ULP_E_REGIONS, "remembering: these weights are a tile");
    assert_fails(ulp_diff(rank->weights, world.next.tensors, COUNT(forms), &foreign, &sink, NULL),
                 ULP_E_REGIONS, "'a': not one of the regions that the weights hold");
    bytes_free(&out);
    assert_fails(ulp_patch_inspect(world.ranks[2].patch, rank->weights, NULL, NULL, reports),
                 ULP_E_REGIONS, "not one of the regions");
    assert_ok(ulp_patch_inspect(rank->patch, rank->weights, NULL, NULL, reports));
    assert_int_equal(reports[0].elements, 8 * 64);
    assert_int_equal(reports[1].elements, 6 * 16);
    assert_int_equal(reports[2].elements, 0);
    world_free(&world);
}

static void test_no_regions_at_all(void **unused) {
    struct world world = world_make(forms, COUNT(forms), "* common", 2, NULL);
    struct ulp_weights *weights = NULL;
    struct ulp_root root;
    const struct ulp_patch *parts[TILES_MAX + 1];

    (void)unused;
    assert_fails(ulp_weights_new_tile(world.base.tensors, COUNT(forms), NULL, 0, &world.parent,
                                      NULL, NULL, &weights),
                 ULP_E_REGIONS, "a tile without regions");
    assert_null(weights);
    assert_int_equal(world_parts(&world, parts), 1); /* the common part is all there is */
    assert_ok(ulp_parts_root(parts, 1, &root));
    assert_same_root(&root, &world.child);
    world_free(&world);
}

static void test_regions_that_cannot_be(void **unused) {
    static const struct ulp_region torn = {"a", 0, 24, 0, 3}, outside = {"a", 20, 5, 0, 64},
                                   unknown = {"x", 0, 1, 0, 1},
                                   twice[] = {{"a", 0, 2, 0, 64}, {"a", 1, 2, 0, 64}};
    struct state state = state_make(forms, COUNT(forms), 0);
    const struct ulp_root root = {{0}};
    struct ulp_weights *weights = NULL;
    const struct {
        const struct ulp_region *regions;
        size_t count;
        enum ulp_status status;
    } cases[] = {{&torn, 1, ULP_E_REGIONS},
                 {&outside, 1, ULP_E_REGIONS},
                 {&unknown, 1, ULP_E_LAYOUT},
                 {twice, 2, ULP_E_REGIONS}};

    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_fails(ulp_weights_new_tile(state.tensors, COUNT(forms), cases[i].regions,
                                          cases[i].count, &root, NULL, NULL, &weights),
                     cases[i].status, "");
        assert_null(weights);
    }
    assert_fails(
        ulp_weights_new_tile(state.tensors, COUNT(forms), twice, 1, NULL, NULL, NULL, &weights),
        ULP_E_USAGE, "NULL");
    state_free(&state);
}

TEST_MAIN(test_the_patch_of_another_tile, test_some_of_the_regions, test_regions_of_another_size,
          test_a_whole_patch, test_without_the_child, test_another_base, test_bits_of_held_weights,
          test_a_bit_where_nothing_moves, test_every_bit_of_the_patch, test_what_tiles_are_not_for,
          test_no_regions_at_all, test_regions_that_cannot_be)
