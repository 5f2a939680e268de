// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks that hold a tile each make the patches that a holder of everything would make of the same
 * regions, and are patched by them to the same bits.
 */
#include "tests/patch/tile_state.h"

#define FORMS 9

/* Shapes at random: names that begin with c have columns that divide, the others what comes. */
static void random_forms(struct form forms[FORMS], unsigned count) {
    static const char *const dtypes[] = {"BF16", "F32", "F8_E4M3", "F64", "F4", "I8", "F16", "U64"};
    static const char *const names[FORMS] = {"c.0", "r.1", "c.2", "r.3", "x.4",
                                             "c.5", "x.6", "r.7", "x.8"};

    for (size_t i = 0; i < FORMS; i++) {
        struct form *form = &forms[i];

        *form = (struct form){.name = names[i], .dtype = dtypes[test_random() % COUNT(dtypes)]};
        form->rank = (uint32_t)(names[i][0] == 'x' ? test_random() % 4 : 2 + test_random() % 2);
        for (uint32_t k = 0; k < form->rank; k++)
            form->shape[k] = names[i][0] == 'x' ? test_random() % 20 : 1 + test_random() % 12;
        if (names[i][0] == 'c')
            form->shape[form->rank - 1] = (1 + test_random() % 5) * 16 * count;
        else if (names[i][0] == 'r')
            form->shape[0] *= count;
        if (!strcmp(form->dtype, "F4")) /* whole bytes */
            form->shape[form->rank ? form->rank - 1 : 0] *= 2;
        if (!form->rank && !strcmp(form->dtype, "F4"))
            form->dtype = "U8";
    }
}

/* A holder of everything makes the same patch. */
static void check_bytes(const struct world *world) {
    struct ulp_weights *whole = weights_of(&world->base);

    for (unsigned tile = 0; tile <= world->count; tile++) {
        const struct rank *rank = &world->ranks[tile];
        const struct ulp_diff_options options = {.regions = rank->regions,
                                                 .region_count = rank->region_count};
        struct bytes expected;

        if (!rank->region_count)
            continue;
        expected = patch_to(whole, &world->next, &options);
        assert_same_bytes(&rank->bytes, &expected);
        bytes_free(&expected);
    }
    ulp_weights_free(whole);
}

/* All parts together, to one who holds everything. */
static void check_join(const struct world *world) {
    const struct ulp_patch *parts[TILES_MAX + 1];
    const size_t count = world_parts(world, parts);
    struct state live = state_copy(&world->base);
    struct ulp_weights *whole = weights_of(&live);
    struct ulp_apply *apply = NULL;
    struct ulp_root root;

    assert_ok(ulp_parts_root(parts, count, &root));
    assert_same_root(&root, &world->child);
    assert_ok(ulp_apply_prepare_parts(whole, parts, count, &root, NULL, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_same_state(&live, &world->next);
    assert_root_of(whole, &world->next);
    ulp_apply_free(apply);
    ulp_weights_free(whole);
    state_free(&live);
}

static void assert_root(const struct ulp_weights *weights, const struct ulp_root *root) {
    struct ulp_root known;

    ulp_weights_root(weights, &known);
    assert_same_root(&known, root);
}

/* There and back, and there again; the garbage stays what it was. */
static void check_rank(const struct world *world, struct rank *rank) {
    const struct ulp_patch *part = rank->patch;
    struct state before = state_copy(&rank->held), after = state_copy(&rank->held);
    struct ulp_apply *apply = NULL;
    struct ulp_apply_report report;

    copy_regions(&after, &world->next, rank->regions, rank->region_count);
    assert_ok(ulp_apply_prepare_parts(rank->weights, &part, 1, &world->child, NULL, &apply));
    assert_same_state(&rank->held, &before);
    assert_root(rank->weights, &world->parent);
    for (unsigned turn = 0; turn < 2; turn++) {
        if (turn) {
            assert_ok(ulp_apply_undo(apply));
            assert_same_state(&rank->held, &before);
            assert_root(rank->weights, &world->parent);
        }
        assert_ok(ulp_apply_commit(apply, NULL, &report));
        assert_same_root(&report.child, &world->child);
        assert_same_state(&rank->held, &after);
        assert_root(rank->weights, &world->child);
    }
    ulp_apply_free(apply);
    state_free(&before);
    state_free(&after);
}

/* The sums that a commit left are right: the patch back is the one that everybody would make. */
static void check_way_back(const struct world *world, struct rank *rank) {
    const struct ulp_diff_options options = {.regions = rank->regions,
                                             .region_count = rank->region_count};
    struct bytes made = tile_patch(rank->weights, &world->base, rank->regions, rank->region_count);
    struct bytes expected = patch_between(&world->next, &world->base, &options);

    assert_same_bytes(&made, &expected);
    bytes_free(&expected);
    bytes_free(&made);
}

static void check_world(struct world *world) {
    check_bytes(world);
    check_join(world);
    for (unsigned tile = 0; tile <= world->count; tile++) {
        if (!world->ranks[tile].region_count)
            continue;
        check_rank(world, &world->ranks[tile]);
        check_way_back(world, &world->ranks[tile]);
    }
    world_free(world);
}

static void test_at_random(void **unused) {
    (void)unused;
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct form forms[FORMS];
        const unsigned count = 1 + seed % TILES_MAX;
        struct world world;

        test_random_seed(seed);
        random_forms(forms, count);
        world = world_make(forms, FORMS, seed % 4 ? "c.* columns" : NULL, count, NULL);
        check_world(&world);
    }
}

/* Every dtype, mostly in common. */
static void test_every_dtype(void **unused) {
    struct world world = world_make(every_form, every_form_count, NULL, 3, NULL);

    (void)unused;
    check_world(&world);
}

static void move_a_few(struct state *next) {
    state_step(next, 2);
}

/* Pieces end within regions, and chunks of two kinds have them in another order than names. */
static void test_many_pieces(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {8, 64}, 2, 0},
                                        {"b", "F8_E4M3", {4, (1 << 23) + 32}, 2, 0},
                                        {"c", "BF16", {2, 16}, 2, 0},
                                        {"d", "F8_E4M3", {2, 64}, 2, 0}};
    struct world world = world_make(forms, COUNT(forms), "b columns\nd common", 2, move_a_few);

    (void)unused;
    check_world(&world);
}

/* Only the last elements move, which are the last tile's: the others go along all the same. */
static void move_the_last(struct state *next) {
    struct ulp_tensor *tensor = &next->tensors[0];

    ((uint8_t *)tensor->data)[tensor->bytes - 1] ^= 1;
}

static void test_tiles_in_which_nothing_moved(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {16, 64}, 2, 0}, {"b", "F32", {16}, 1, 0}};
    struct world world = world_make(forms, COUNT(forms), NULL, 4, move_the_last);

    (void)unused;
    for (unsigned tile = 0; tile <= 4; tile++) {
        struct ulp_patch_info info;

        ulp_patch_info(world.ranks[tile].patch, &info);
        assert_int_equal(info.changed, tile == 4);
        assert_true(info.partial);
    }
    check_world(&world);
}

/* Whoever is asked again has nothing to do. */
static void test_again_is_nothing(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {16, 64}, 2, 0}};
    struct world world = world_make(forms, COUNT(forms), NULL, 2, NULL);
    struct rank *rank = &world.ranks[2];
    const struct ulp_patch *part = rank->patch;

    (void)unused;
    for (int again = 0; again < 2; again++) {
        struct ulp_apply *apply = NULL;
        struct ulp_apply_report report;

        assert_ok(ulp_apply_prepare_parts(rank->weights, &part, 1, &world.child, NULL, &apply));
        assert_ok(ulp_apply_commit(apply, NULL, &report));
        assert_int_equal(report.already, again);
        ulp_apply_free(apply);
    }
    world_free(&world);
}

/* Many threads make the same bytes and the same sums. */
static void test_threads(void **unused) {
    static const struct form forms[] = {{"a", "F8_E4M3", {4, (1 << 22) + 32}, 2, 0},
                                        {"b", "BF16", {2, 64}, 2, 0}};
    struct world world = world_make(forms, COUNT(forms), NULL, 1, move_a_few);
    struct rank *rank = &world.ranks[1];
    struct ulp_pool *pool = pool_of(4);
    const struct ulp_diff_options diff_options = {.pool = pool};
    const struct ulp_apply_options options = {.pool = pool, .remember = 1};
    const struct ulp_patch *part = rank->patch;
    struct ulp_weights *weights = NULL;
    struct ulp_apply *apply = NULL;
    struct bytes bytes;

    (void)unused;
    assert_ok(ulp_weights_new_tile(rank->held.tensors, rank->held.count, rank->regions,
                                   rank->region_count, &world.parent, pool, NULL, &weights));
    bytes = patch_to(weights, &world.next, &diff_options);
    assert_same_bytes(&bytes, &rank->bytes);
    assert_ok(ulp_apply_prepare_parts(weights, &part, 1, &world.child, &options, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_false(ulp_weights_remembers(weights, NULL));
    copy_regions(&world.base, &rank->held, rank->regions, rank->region_count);
    assert_same_state(&world.base, &world.next);
    ulp_apply_free(apply);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    ulp_pool_free(pool);
    world_free(&world);
}

TEST_MAIN(test_at_random, test_every_dtype, test_many_pieces, test_tiles_in_which_nothing_moved,
          test_again_is_nothing, test_threads)
