// SPDX-License-Identifier: Apache-2.0
/*
 * Of a tile's tensors only the memory within its regions is touched: everything else is memory that
 * ends the test when it is read or written.
 */
#include "tests/patch/tile_state.h"

#include "base/word.h"
#include "patch/grid.h"

#include <sys/mman.h>

#define PAGE 4096u
#define TILES 4u

/* Bands of whole pages: 16 rows of 1 KiB; 8 KiB of each row; of vectors, 4 KiB. */
static const struct form forms[] = {
    {"rows.a", "BF16", {64, 512}, 2, 0},        {"columns.a", "F8_E4M3", {24, 4 * 8192}, 2, 0},
    {"columns.b", "F32", {12, 4 * 2048}, 2, 0}, {"columns.c", "F64", {4 * 512}, 1, 0},
    {"rows.b", "I64", {8, 16, 64}, 3, 0},       {"common", "BF16", {2048}, 1, 0}};
static const char rules[] = "rows.* rows\ncolumns.* columns";

/* The tensors of a state, each in pages of its own, all of which are closed. */
struct fortress {
    struct ulp_tensor tensors[COUNT(forms)];
};

static struct fortress fortress_make(const struct state *state) {
    struct fortress fortress;

    for (size_t i = 0; i < COUNT(forms); i++) {
        void *at;

        fortress.tensors[i] = state->tensors[i];
        assert_int_equal(state->tensors[i].bytes % PAGE, 0);
        /* 0x20 is MAP_ANONYMOUS, which POSIX does not name. */
        at = mmap(NULL, state->tensors[i].bytes, PROT_NONE, MAP_PRIVATE | 0x20, -1, 0);
        assert_ptr_not_equal(at, MAP_FAILED);
        fortress.tensors[i].data = at;
    }
    return fortress;
}

static void fortress_free(struct fortress *fortress) {
    for (size_t i = 0; i < COUNT(forms); i++)
        munmap(fortress->tensors[i].data, fortress->tensors[i].bytes);
}

/* Opens the regions, and copies them from `from` or compares them with it. */
enum visit { VISIT_FILL, VISIT_COMPARE };
static void visit(struct fortress *fortress, const struct rank *rank, const struct state *from,
                  enum visit what) {
    for (size_t i = 0; i < rank->region_count; i++) {
        const struct ulp_region *box = &rank->regions[i];
        uint64_t rows, pitch;
        size_t t = 0;
        unsigned width;

        while (strcmp(fortress->tensors[t].name, box->tensor) != 0)
            t++;
        width = word_bytes_of(fortress->tensors[t].bits);
        grid_view(&fortress->tensors[t], &rows, &pitch);
        for (uint64_t row = box->row; row < box->row + box->rows; row++) {
            const size_t offset = (row * pitch + box->column) * width;
            const size_t bytes = box->columns * width;
            const size_t page = offset / PAGE * PAGE;
            uint8_t *mine = (uint8_t *)fortress->tensors[t].data + offset;
            const uint8_t *theirs = (const uint8_t *)from->tensors[t].data + offset;

            assert_int_equal(mprotect((uint8_t *)fortress->tensors[t].data + page,
                                      offset + bytes - page, PROT_READ | PROT_WRITE),
                             0);
            if (what == VISIT_FILL)
                memcpy(mine, theirs, bytes);
            else
                assert_memory_equal(mine, theirs, bytes);
        }
    }
}

static void check_rank(const struct world *world, const struct rank *rank) {
    struct fortress held = fortress_make(&world->base), next = fortress_make(&world->next);
    const struct ulp_patch *part = rank->patch;
    struct ulp_weights *weights = NULL;
    struct ulp_apply *apply = NULL;
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);

    visit(&held, rank, &world->base, VISIT_FILL);
    visit(&next, rank, &world->next, VISIT_FILL);
    assert_ok(ulp_weights_new_tile(held.tensors, COUNT(forms), rank->regions, rank->region_count,
                                   &world->parent, NULL, NULL, &weights));
    assert_ok(ulp_diff(weights, next.tensors, COUNT(forms), NULL, &sink, NULL));
    assert_same_bytes(&bytes, &rank->bytes);
    assert_ok(ulp_apply_prepare_parts(weights, &part, 1, &world->child, NULL, &apply));
    visit(&held, rank, &world->base, VISIT_COMPARE);
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    visit(&held, rank, &world->next, VISIT_COMPARE);
    assert_ok(ulp_apply_undo(apply));
    visit(&held, rank, &world->base, VISIT_COMPARE);
    ulp_apply_free(apply);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    fortress_free(&held);
    fortress_free(&next);
}

static void test_nothing_else_is_touched(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, TILES, NULL);

    (void)unused;
    for (unsigned tile = 0; tile <= TILES; tile++)
        check_rank(&world, &world.ranks[tile]);
    world_free(&world);
}

/* Of tensors without a region there need not even be an address. */
static void test_tensors_that_are_not_held(void **unused) {
    struct world world = world_make(forms, COUNT(forms), rules, TILES, NULL);
    const struct rank *common = &world.ranks[0];
    struct ulp_tensor held[COUNT(forms)], next[COUNT(forms)];
    struct ulp_weights *weights = NULL;
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);

    (void)unused;
    for (size_t i = 0; i < COUNT(forms); i++) {
        held[i] = common->held.tensors[i];
        next[i] = world.next.tensors[i];
        if (strcmp(held[i].name, "common") != 0)
            held[i].data = next[i].data = NULL;
    }
    assert_ok(ulp_weights_new_tile(held, COUNT(forms), common->regions, 1, &world.parent, NULL,
                                   NULL, &weights));
    assert_ok(ulp_diff(weights, next, COUNT(forms), NULL, &sink, NULL));
    assert_same_bytes(&bytes, &common->bytes);
    next[COUNT(forms) - 1].data = NULL;
    assert_fails(ulp_diff(weights, next, COUNT(forms), NULL, &sink, NULL), ULP_E_USAGE,
                 "'common' lacks its data");
    ulp_weights_free(weights);
    weights = NULL;
    held[COUNT(forms) - 1].data = NULL;
    assert_fails(ulp_weights_new_tile(held, COUNT(forms), common->regions, 1, &world.parent, NULL,
                                      NULL, &weights),
                 ULP_E_USAGE, "'common' lacks its data");
    assert_null(weights);
    bytes_free(&bytes);
    world_free(&world);
}

/* Two tensors may lie in each other as long as their regions do not. */
static void test_shared_memory(void **unused) {
    static const struct form two[] = {{"a", "BF16", {8, 4}, 2, 0}, {"b", "BF16", {8, 4}, 2, 0}};
    struct state state = state_make(two, 2, 0);
    const struct ulp_root root = {{1}};
    struct ulp_region regions[] = {{"a", 0, 2, 0, 4}, {"a", 6, 2, 0, 4}, {"b", 0, 4, 0, 4}};
    struct ulp_weights *weights = NULL;

    (void)unused;
    state.tensors[1].data = (uint8_t *)state.tensors[0].data + 2 * 4 * 2;
    ulp_weights_free(tile_weights(&state, regions, 3, &root));
    regions[2].rows = 5;
    assert_fails(ulp_weights_new_tile(state.tensors, 2, regions, 3, &root, NULL, NULL, &weights),
                 ULP_E_OVERLAP, "'b' and 'a' share memory");
    regions[0].rows = 3;
    regions[2].rows = 4;
    assert_fails(ulp_weights_new_tile(state.tensors, 2, regions, 3, &root, NULL, NULL, &weights),
                 ULP_E_OVERLAP, "'a' and 'b' share memory");
    assert_fails(ulp_weights_new(state.tensors, 2, NULL, NULL, &weights), ULP_E_OVERLAP, "share");
    state_free(&state);
}

/* Bands of one tensor reach past each other, the second less far than the first; what lies in the
 * gaps of a band counts as its memory. */
static void test_shared_memory_of_columns(void **unused) {
    static const struct form two[] = {{"a", "BF16", {8, 8}, 2, 0}, {"b", "BF16", {4}, 1, 0}};
    static const struct ulp_region regions[] = {
        {"a", 0, 8, 0, 4}, {"a", 1, 2, 4, 4}, {"b", 0, 1, 0, 4}};
    struct state state = state_make(two, 2, 0);
    const struct ulp_root root = {{1}};
    struct ulp_weights *weights = NULL;

    (void)unused;
    ulp_weights_free(tile_weights(&state, regions, 3, &root));
    state.tensors[1].data = (uint8_t *)state.tensors[0].data + 6 * 16;
    assert_fails(ulp_weights_new_tile(state.tensors, 2, regions, 3, &root, NULL, NULL, &weights),
                 ULP_E_OVERLAP, "'a' and 'b' share memory");
    state.tensors[1].data = (uint8_t *)state.tensors[0].data + 7 * 16 + 8;
    ulp_weights_free(tile_weights(&state, regions, 3, &root));
    assert_null(weights);
    state_free(&state);
}

TEST_MAIN(test_nothing_else_is_touched, test_tensors_that_are_not_held, test_shared_memory,
          test_shared_memory_of_columns)
