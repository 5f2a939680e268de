// SPDX-License-Identifier: Apache-2.0
/*
 * Tiles together: the rank that commits reads no more of the parts than their tables, and one rank
 * may hold several tiles.
 */
#include "tests/patch/tile_state.h"

static const struct form forms[] = {{"a", "BF16", {24, 640}, 2, 0},
                                    {"b", "F32", {6, 48}, 2, 0},
                                    {"c", "F8_E4M3", {64}, 1, 0},
                                    {"d", "BF16", {12, 16}, 2, 0}};
static const char rules[] = "b columns";

/* A patch that is elsewhere, and what was fetched of it. */
struct remote {
    const struct bytes *bytes;
    unsigned reads;
    uint64_t fetched;
};

static enum ulp_status fetch(void *user, uint64_t offset, void *data, size_t bytes) {
    struct remote *remote = user;

    assert_true(offset <= remote->bytes->used && bytes <= remote->bytes->used - offset);
    memcpy(data, remote->bytes->data + offset, bytes);
    remote->reads++;
    remote->fetched += bytes;
    return ULP_OK;
}

static struct ulp_patch *open_remote(struct remote *remote) {
    const struct ulp_source source = {fetch, remote, remote->bytes->used};
    struct ulp_patch *patch = NULL;

    assert_ok(ulp_patch_open_source(&source, &patch));
    return patch;
}

/* Header, trailer and table have their lengths in the format: 8, 16, and what the trailer says. */
static uint64_t bytes_around_chunks(const struct bytes *bytes) {
    const uint8_t *length = bytes->data + bytes->used - 8;

    return 24 + (uint64_t)length[0] + 256u * length[1] + 65536u * length[2];
}

static void test_the_root_takes_three_reads_of_each(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct remote remotes[4];
    struct ulp_patch *parts[4];
    struct ulp_root root;

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        remotes[i] = (struct remote){.bytes = &world.ranks[i].bytes};
        parts[i] = open_remote(&remotes[i]);
    }
    assert_ok(ulp_parts_root((const struct ulp_patch *const *)parts, 4, &root));
    assert_same_root(&root, &world.child);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(remotes[i].reads, 3);
        assert_int_equal(remotes[i].fetched, bytes_around_chunks(remotes[i].bytes));
        assert_true(remotes[i].fetched < remotes[i].bytes->used);
        ulp_patch_free(parts[i]);
    }
    world_free(&world);
}

/* A worker fetches every byte of its own part once, and none of another. */
static void test_a_worker_fetches_its_part(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[2];
    struct remote remote = {.bytes = &rank->bytes};
    struct ulp_patch *patch = open_remote(&remote);
    const struct ulp_patch *part = patch;
    struct ulp_apply *apply = NULL;

    (void)unused;
    assert_ok(ulp_apply_prepare_parts(rank->weights, &part, 1, &world.child, NULL, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_int_equal(remote.fetched, rank->bytes.used);
    ulp_apply_free(apply);
    ulp_patch_free(patch);
    world_free(&world);
}

static void test_parts_of_different_parents(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct rank *rank = &world.ranks[1];
    const struct ulp_diff_options options = {.regions = rank->regions,
                                             .region_count = rank->region_count};
    struct bytes other = patch_between(&world.next, &world.next, &options);
    struct ulp_patch *foreign = open_bytes(&other);
    const struct ulp_patch *parts[TILES_MAX + 1];
    struct ulp_root root;

    (void)unused;
    assert_int_equal(world_parts(&world, parts), 4);
    parts[1] = foreign;
    assert_fails(ulp_parts_root(parts, 4, &root), ULP_E_WRONG_BASE, "but another part from");
    ulp_patch_free(foreign);
    bytes_free(&other);
    world_free(&world);
}

/* The regions of the common part and of one tile, sorted as they must be. */
static int by_place(const void *a, const void *b) {
    return strcmp(((const struct ulp_region *)a)->tensor, ((const struct ulp_region *)b)->tensor);
}

struct both {
    struct ulp_region regions[8];
    size_t count;
    struct state held;
    struct ulp_weights *weights;
};

static struct both hold_both(const struct world *world, unsigned tile) {
    const struct rank *common = &world->ranks[0], *mine = &world->ranks[tile];
    struct both both = {.count = common->region_count + mine->region_count};

    memcpy(both.regions, common->regions, common->region_count * sizeof *both.regions);
    memcpy(both.regions + common->region_count, mine->regions,
           mine->region_count * sizeof *both.regions);
    qsort(both.regions, both.count, sizeof *both.regions, by_place);
    both.held = garbage_around(&world->base, both.regions, both.count);
    both.weights = tile_weights(&both.held, both.regions, both.count, &world->parent);
    return both;
}

static void both_free(struct both *both) {
    ulp_weights_free(both->weights);
    state_free(&both->held);
}

/* Both parts in one go; one of them alone would leave the other behind. */
static void test_a_holder_of_two_tiles(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);

    (void)unused;
    for (unsigned tile = 1; tile <= 3; tile++) {
        struct both both = hold_both(&world, tile);
        const struct ulp_patch *parts[] = {world.ranks[tile].patch, world.ranks[0].patch};
        struct state after = state_copy(&both.held);
        struct ulp_apply *apply = NULL;

        copy_regions(&after, &world.next, both.regions, both.count);
        for (unsigned i = 0; i < 2; i++)
            assert_fails(
                ulp_apply_prepare_parts(both.weights, parts + i, 1, &world.child, NULL, &apply),
                ULP_E_REGIONS, "regions that the weights hold");
        assert_ok(ulp_apply_prepare_parts(both.weights, parts, 2, &world.child, NULL, &apply));
        assert_ok(ulp_apply_commit(apply, NULL, NULL));
        assert_same_state(&both.held, &after);
        ulp_apply_free(apply);
        state_free(&after);
        both_free(&both);
    }
    world_free(&world);
}

/* He makes the patches of his tiles one by one: the same as those who hold one each. */
static void test_a_maker_of_two_parts(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, 3, NULL);
    struct both both = hold_both(&world, 2);

    (void)unused;
    for (unsigned tile = 0; tile <= 2; tile += 2) {
        const struct rank *rank = &world.ranks[tile];
        const struct ulp_diff_options options = {.regions = rank->regions,
                                                 .region_count = rank->region_count};
        struct bytes bytes = patch_to(both.weights, &world.next, &options);

        assert_same_bytes(&bytes, &rank->bytes);
        bytes_free(&bytes);
    }
    both_free(&both);
    world_free(&world);
}

TEST_MAIN(test_the_root_takes_three_reads_of_each, test_a_worker_fetches_its_part,
          test_parts_of_different_parents, test_a_holder_of_two_tiles, test_a_maker_of_two_parts)
