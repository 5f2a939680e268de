// SPDX-License-Identifier: Apache-2.0
/* Several ranks make a patch of their own tiles each; together they are applied, all or none. */
#include "tests/patch/state.h"

#define RANKS_MAX 5

static const struct form forms[] = {{"a", "BF16", {24, 40}, 2, 0},
                                    {"b", "F32", {7, 16, 6}, 3, 0},
                                    {"c", "F8_E4M3", {4096}, 1, 0},
                                    {"d", "I64", {0}, 0, 0}};

/* Rows of the first two tensors, stretches of the third; the scalar belongs to one of them. */
static const struct ulp_region rows[3][4] = {
    {{"a", 0, 8, 0, 40}, {"b", 0, 64, 0, 6}, {"c", 0, 1, 0, 1024}, {"d", 0, 1, 0, 1}},
    {{"a", 8, 15, 0, 40}, {"b", 64, 2, 0, 6}, {"c", 0, 1, 1024, 8}},
    {{"a", 23, 1, 0, 40}, {"b", 66, 46, 0, 6}, {"c", 0, 1, 1032, 3064}}};
static const size_t rows_count[3] = {4, 3, 3};

/* Bands of columns. */
static const struct ulp_region bands[2][4] = {
    {{"a", 0, 24, 0, 4}, {"b", 0, 112, 0, 2}, {"c", 0, 1, 0, 4096}},
    {{"a", 0, 24, 4, 36}, {"b", 0, 112, 2, 4}, {"d", 0, 1, 0, 1}}};
static const size_t bands_count[2] = {3, 3};

/* Tiles of both kinds, several in one patch. */
static const struct ulp_region tiles[2][6] = {
    {{"a", 0, 10, 0, 20}, {"a", 10, 14, 20, 20}, {"b", 0, 112, 0, 6}},
    {{"a", 0, 10, 20, 20},
     {"a", 10, 14, 0, 20},
     {"c", 0, 1, 0, 8},
     {"c", 0, 1, 8, 4088},
     {"d", 0, 1, 0, 1}}};
static const size_t tiles_count[2] = {3, 5};

struct parts {
    struct state base, next, live;
    struct ulp_weights *weights;
    struct bytes bytes[RANKS_MAX];
    struct ulp_patch *patches[RANKS_MAX];
    size_t count;
};

static const struct ulp_patch *const *list(const struct parts *parts) {
    return (const struct ulp_patch *const *)parts->patches;
}

static struct parts parts_begin(void) {
    struct parts parts = {.base = state_make(forms, COUNT(forms), 0)};

    parts.next = state_copy(&parts.base);
    state_step(&parts.next, 200);
    parts.live = state_copy(&parts.base);
    parts.weights = weights_of(&parts.live);
    /* which parts make no use of */
    assert_ok(
        ulp_weights_remember(parts.weights, parts.next.tensors, parts.next.count, NULL, NULL));
    return parts;
}

static void parts_add(struct parts *parts, const struct ulp_region *regions, size_t count) {
    const struct ulp_diff_options options = {
        .regions = regions, .region_count = count, .history = 1};
    struct bytes *bytes = &parts->bytes[parts->count];

    *bytes = patch_to(parts->weights, &parts->next, &options);
    parts->patches[parts->count++] = open_bytes(bytes);
}

static void parts_free(struct parts *parts) {
    for (size_t i = 0; i < parts->count; i++) {
        ulp_patch_free(parts->patches[i]);
        bytes_free(&parts->bytes[i]);
    }
    ulp_weights_free(parts->weights);
    state_free(&parts->base);
    state_free(&parts->next);
    state_free(&parts->live);
}

static struct parts parts_of_rows(void) {
    struct parts parts = parts_begin();

    for (size_t i = 0; i < 3; i++)
        parts_add(&parts, rows[i], rows_count[i]);
    return parts;
}

static void check_infos(const struct parts *parts) {
    static const struct ulp_root none;
    uint64_t elements = 0;

    for (size_t i = 0; i < parts->count; i++) {
        struct ulp_patch_info info;

        ulp_patch_info(parts->patches[i], &info);
        assert_true(info.partial);
        assert_false(info.history);
        assert_same_root(&info.child, &none);
        assert_ok(ulp_patch_verify(parts->patches[i], NULL, NULL));
        elements += info.elements;
    }
    assert_int_equal(elements, 24 * 40 + 7 * 16 * 6 + 4096 + 1);
}

/* In any order of the parts, with threads or without, with the child given or not. */
static void join(struct parts *parts) {
    struct ulp_pool *pool = pool_of(3);
    const struct ulp_apply_options options = {.pool = pool, .remember = 1};
    struct ulp_root expected = root_of(&parts->next), root;
    struct ulp_apply_report report;

    check_infos(parts);
    for (unsigned turn = 0; turn < 4; turn++) {
        struct ulp_apply *apply = NULL;
        struct ulp_patch *first = parts->patches[0];

        assert_ok(ulp_parts_root(list(parts), parts->count, &root));
        assert_same_root(&root, &expected);
        assert_ok(ulp_apply_prepare_parts(parts->weights, list(parts), parts->count,
                                          turn % 2 ? &expected : NULL, turn / 2 ? &options : NULL,
                                          &apply));
        assert_same_state(&parts->live, &parts->base);
        assert_ok(ulp_apply_commit(apply, NULL, &report));
        assert_same_state(&parts->live, &parts->next);
        assert_root_of(parts->weights, &parts->next);
        assert_false(ulp_weights_remembers(parts->weights, NULL));
        assert_ok(ulp_apply_undo(apply));
        assert_same_state(&parts->live, &parts->base);
        ulp_apply_free(apply);
        memmove(parts->patches, parts->patches + 1, (parts->count - 1) * sizeof first);
        parts->patches[parts->count - 1] = first;
    }
    ulp_pool_free(pool);
    parts_free(parts);
}

static void test_rows(void **unused) {
    struct parts parts = parts_of_rows();

    (void)unused;
    join(&parts);
}

static void test_bands_of_columns(void **unused) {
    struct parts parts = parts_begin();

    (void)unused;
    for (size_t i = 0; i < 2; i++)
        parts_add(&parts, bands[i], bands_count[i]);
    join(&parts);
}

static void test_tiles(void **unused) {
    struct parts parts = parts_begin();

    (void)unused;
    for (size_t i = 0; i < 2; i++)
        parts_add(&parts, tiles[i], tiles_count[i]);
    join(&parts);
}

static void refused(struct parts *parts, size_t count, enum ulp_status expected, const char *text) {
    struct ulp_apply *apply = NULL;

    assert_fails(ulp_apply_prepare_parts(parts->weights, list(parts), count, NULL, NULL, &apply),
                 expected, text);
    assert_null(apply);
    assert_same_state(&parts->live, &parts->base);
    assert_root_of(parts->weights, &parts->base);
}

static void test_a_part_is_missing(void **unused) {
    struct parts parts = parts_of_rows();
    struct ulp_root child = root_of(&parts.next);
    struct ulp_apply *apply = NULL;

    (void)unused;
    refused(&parts, 2, ULP_E_REGIONS, "cover");
    assert_fails(ulp_parts_root(list(&parts), 2, &child), ULP_E_REGIONS, "cover");
    child = root_of(&parts.next);
    assert_fails(ulp_apply_prepare_parts(parts.weights, list(&parts), 2, &child, NULL, &apply),
                 ULP_E_WRONG_RESULT, "would lead to");
    assert_null(apply);
    assert_fails(ulp_apply(parts.weights, parts.patches[0], NULL, NULL), ULP_E_REGIONS, "cover");
    assert_same_state(&parts.live, &parts.base);
    parts_free(&parts);
}

/* Some of the parts lead to a state, too, if its root is known. */
static void test_some_parts_on_purpose(void **unused) {
    struct parts parts = parts_of_rows();
    struct state mixed = state_copy(&parts.base);
    struct ulp_apply *apply = NULL;
    struct ulp_root child;

    (void)unused;
    memcpy(mixed.tensors[0].data, parts.next.tensors[0].data, 8 * 40 * 2);
    memcpy(mixed.tensors[1].data, parts.next.tensors[1].data, 64 * 6 * 4);
    memcpy(mixed.tensors[2].data, parts.next.tensors[2].data, 1024);
    memcpy(mixed.tensors[3].data, parts.next.tensors[3].data, 8);
    child = root_of(&mixed);
    assert_ok(ulp_apply_prepare_parts(parts.weights, list(&parts), 1, &child, NULL, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_same_state(&parts.live, &mixed);
    ulp_apply_free(apply);
    state_free(&mixed);
    parts_free(&parts);
}

static void test_a_part_of_another_base(void **unused) {
    struct parts parts = parts_of_rows();
    struct state other = state_copy(&parts.base);
    const struct ulp_diff_options options = {.regions = rows[1], .region_count = rows_count[1]};

    (void)unused;
    ((uint8_t *)other.tensors[3].data)[0] ^= 1;
    ulp_patch_free(parts.patches[1]);
    bytes_free(&parts.bytes[1]);
    parts.bytes[1] = patch_between(&other, &parts.next, &options);
    parts.patches[1] = open_bytes(&parts.bytes[1]);
    refused(&parts, 3, ULP_E_WRONG_BASE, "starts from");
    state_free(&other);
    parts_free(&parts);
}

static void test_parts_that_overlap(void **unused) {
    static const struct ulp_region again[] = {{"a", 7, 16, 0, 40}};
    struct parts parts = parts_of_rows();

    (void)unused;
    parts_add(&parts, again, 1);
    refused(&parts, 4, ULP_E_REGIONS, "overlap");
    parts.patches[4] = parts.patches[0];
    assert_fails(ulp_apply_prepare_parts(
                     parts.weights,
                     (const struct ulp_patch *const[]){parts.patches[0], parts.patches[0]}, 2, NULL,
                     NULL, &(struct ulp_apply *){NULL}),
                 ULP_E_REGIONS, "");
    parts.patches[4] = NULL;
    parts_free(&parts);
}

/* Overlapping parts are refused even when the caller names the root that they lead to. */
static void test_parts_that_overlap_with_the_child_given(void **unused) {
    struct parts parts = parts_of_rows();
    const struct ulp_patch *twice[] = {parts.patches[0], parts.patches[1], parts.patches[2],
                                       parts.patches[0]};
    struct ulp_root child = root_of(&parts.next);
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_apply_prepare_parts(parts.weights, twice, 4, &child, NULL, &apply);

    (void)unused;
    assert_int_equal(status, ULP_E_REGIONS);
    assert_null(apply);
    assert_same_state(&parts.live, &parts.base);
    parts_free(&parts);
}

static void test_a_whole_patch_among_parts(void **unused) {
    (void)unused;
    for (size_t place = 0; place < 3; place += 2) {
        struct parts parts = parts_of_rows();

        ulp_patch_free(parts.patches[place]);
        bytes_free(&parts.bytes[place]);
        parts.bytes[place] = patch_to(parts.weights, &parts.next, NULL);
        parts.patches[place] = open_bytes(&parts.bytes[place]);
        refused(&parts, 3, ULP_E_REGIONS, "");
        parts_free(&parts);
    }
}

static void test_again_is_nothing(void **unused) {
    struct parts parts = parts_of_rows();
    struct ulp_apply *apply = NULL;
    struct ulp_apply_report report;

    (void)unused;
    for (int again = 0; again < 2; again++) {
        assert_ok(ulp_apply_prepare_parts(parts.weights, list(&parts), 3, NULL, NULL, &apply));
        assert_ok(ulp_apply_commit(apply, NULL, &report));
        assert_int_equal(report.already, again);
        assert_same_state(&parts.live, &parts.next);
        ulp_apply_free(apply);
    }
    parts_free(&parts);
}

TEST_MAIN(test_rows, test_bands_of_columns, test_tiles, test_a_part_is_missing,
          test_some_parts_on_purpose, test_a_part_of_another_base, test_parts_that_overlap,
          test_parts_that_overlap_with_the_child_given, test_a_whole_patch_among_parts,
          test_again_is_nothing)
