// SPDX-License-Identifier: Apache-2.0
#include "tests/patch/tile_state.h"

#include "base/word.h"
#include "patch/grid.h"

static const struct ulp_tensor *named(const struct state *state, const char *name) {
    for (size_t i = 0; i < state->count; i++) {
        if (!strcmp(state->tensors[i].name, name))
            return &state->tensors[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

void copy_regions(struct state *to, const struct state *from, const struct ulp_region *regions,
                  size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct ulp_region *box = &regions[i];
        const struct ulp_tensor *a = named(to, box->tensor), *b = named(from, box->tensor);
        const unsigned width = word_bytes_of(a->bits);
        uint64_t rows, pitch;

        grid_view(a, &rows, &pitch);
        for (uint64_t row = box->row; row < box->row + box->rows; row++) {
            uint64_t offset = (row * pitch + box->column) * width;

            memcpy((uint8_t *)a->data + offset, (const uint8_t *)b->data + offset,
                   box->columns * width);
        }
    }
}

struct state garbage_around(const struct state *from, const struct ulp_region *regions,
                            size_t count) {
    struct state state = state_copy(from);

    test_random_bytes(state.data, state.bytes);
    copy_regions(&state, from, regions, count);
    return state;
}

struct ulp_weights *tile_weights(const struct state *held, const struct ulp_region *regions,
                                 size_t count, const struct ulp_root *root) {
    struct ulp_weights *weights = NULL;

    assert_ok(ulp_weights_new_tile(held->tensors, held->count, regions, count, root, NULL, NULL,
                                   &weights));
    return weights;
}

struct bytes tile_patch(const struct ulp_weights *weights, const struct state *next,
                        const struct ulp_region *regions, size_t count) {
    struct state known = garbage_around(next, regions, count);
    struct bytes bytes = patch_to(weights, &known, NULL);

    state_free(&known);
    return bytes;
}

struct world world_make(const struct form *forms, size_t form_count, const char *rules,
                        unsigned count, void (*move)(struct state *next)) {
    struct world world = {.base = state_make(forms, form_count, 0), .count = count};

    world.next = state_copy(&world.base);
    if (move)
        move(&world.next);
    else
        state_step(&world.next, 100);
    world.parent = root_of(&world.base);
    world.child = root_of(&world.next);
    assert_ok(ulp_tiling_new(rules, count, &world.tiling));
    for (unsigned tile = 0; tile <= count; tile++) {
        struct rank *rank = &world.ranks[tile];

        assert_ok(ulp_tiling_regions(world.tiling, world.base.tensors, world.base.count, tile,
                                     &rank->regions, &rank->region_count));
        if (!rank->region_count)
            continue;
        rank->held = garbage_around(&world.base, rank->regions, rank->region_count);
        rank->weights = tile_weights(&rank->held, rank->regions, rank->region_count, &world.parent);
        rank->bytes = tile_patch(rank->weights, &world.next, rank->regions, rank->region_count);
        rank->patch = open_bytes(&rank->bytes);
    }
    return world;
}

void world_free(struct world *world) {
    for (unsigned tile = 0; tile <= world->count; tile++) {
        struct rank *rank = &world->ranks[tile];

        ulp_patch_free(rank->patch);
        bytes_free(&rank->bytes);
        ulp_weights_free(rank->weights);
        state_free(&rank->held);
        ulp_regions_free(rank->regions);
    }
    ulp_tiling_free(world->tiling);
    state_free(&world->base);
    state_free(&world->next);
}

size_t world_parts(const struct world *world, const struct ulp_patch *ret_parts[TILES_MAX + 1]) {
    size_t count = 0;

    for (unsigned tile = 0; tile <= world->count; tile++) {
        if (world->ranks[tile].patch)
            ret_parts[count++] = world->ranks[tile].patch;
    }
    return count;
}
