// SPDX-License-Identifier: Apache-2.0
/* A patch that does not fit is refused with the status that says why, and changes nothing. */
#include "tests/patch/state.h"

static const struct form forms[] = {
    {"b", "BF16", {300, 70}, 2, 0}, {"a", "F32", {999}, 1, 0}, {"c", "I64", {12}, 1, 0}};

struct pair {
    struct state base, next;
    struct bytes bytes;
    struct ulp_patch *patch;
};

static struct pair pair_make(void) {
    struct pair pair = {.base = state_make(forms, COUNT(forms), 0)};

    pair.next = state_copy(&pair.base);
    state_step(&pair.next, 50);
    pair.bytes = patch_between(&pair.base, &pair.next, NULL);
    pair.patch = open_bytes(&pair.bytes);
    return pair;
}

static void pair_free(struct pair *pair) {
    ulp_patch_free(pair->patch);
    bytes_free(&pair->bytes);
    state_free(&pair->base);
    state_free(&pair->next);
}

/* Applying to `live` fails, and `live` stays as it is. */
static void refused(const struct pair *pair, struct state *live, enum ulp_status expected,
                    const char *text) {
    struct state before = state_copy(live);
    struct ulp_weights *weights = weights_of(live);
    struct ulp_apply *apply = NULL;

    assert_fails(ulp_apply_prepare(weights, pair->patch, NULL, &apply), expected, text);
    assert_null(apply);
    assert_fails(ulp_apply(weights, pair->patch, NULL, NULL), expected, text);
    assert_same_state(live, &before);
    assert_root_of(weights, &before);
    ulp_weights_free(weights);
    state_free(&before);
}

static void test_wrong_base(void **unused) {
    struct pair pair = pair_make();
    struct state live = state_copy(&pair.base);

    (void)unused;
    for (size_t i = 0; i < live.count; i++) { /* one bit in any tensor is enough */
        uint8_t *last = (uint8_t *)live.tensors[i].data + live.tensors[i].bytes - 1;

        *last ^= 1;
        refused(&pair, &live, ULP_E_WRONG_BASE, "starts from state");
        *last ^= 1;
    }
    state_free(&live);
    pair_free(&pair);
}

/* The same bytes with another description. */
static void other_layout(const struct form *others, size_t count, const char *text) {
    struct pair pair = pair_make();
    struct state live = state_make(others, count, 0);

    refused(&pair, &live, ULP_E_LAYOUT, text);
    state_free(&live);
    pair_free(&pair);
}

static void test_layouts_that_differ(void **unused) {
    static const struct form renamed[] = {
        {"b", "BF16", {300, 70}, 2, 0}, {"a2", "F32", {999}, 1, 0}, {"c", "I64", {12}, 1, 0}};
    static const struct form retyped[] = {
        {"b", "F16", {300, 70}, 2, 0}, {"a", "F32", {999}, 1, 0}, {"c", "I64", {12}, 1, 0}};
    static const struct form reshaped[] = {
        {"b", "BF16", {70, 300}, 2, 0}, {"a", "F32", {999}, 1, 0}, {"c", "I64", {12}, 1, 0}};
    static const struct form flattened[] = {
        {"b", "BF16", {21000}, 1, 0}, {"a", "F32", {999}, 1, 0}, {"c", "I64", {12}, 1, 0}};
    static const struct form more[] = {{"b", "BF16", {300, 70}, 2, 0},
                                       {"a", "F32", {999}, 1, 0},
                                       {"c", "I64", {12}, 1, 0},
                                       {"d", "I64", {0}, 1, 0}};

    (void)unused;
    other_layout(renamed, COUNT(renamed), "'a'");
    other_layout(retyped, COUNT(retyped), "'BF16'");
    other_layout(reshaped, COUNT(reshaped), "another shape");
    other_layout(flattened, COUNT(flattened), "another shape");
    other_layout(more, COUNT(more), "'d' is in the model");
    other_layout(forms, 2, "'c' is in the patch");
    other_layout(forms, 0, "is in the patch");
}

/* Of a dtype that nobody knows, the width is part of the description. */
static void test_widths_of_unknown_dtypes_differ(void **unused) {
    static const struct form narrow = {"x", "X", {64}, 1, 64}, wide = {"x", "X", {64}, 1, 128};
    struct state base = state_make(&narrow, 1, 0), live = state_make(&wide, 1, 0);
    struct state next = state_copy(&base);
    struct pair pair = {0};

    (void)unused;
    state_scramble(&next, 500);
    pair.bytes = patch_between(&base, &next, NULL);
    pair.patch = open_bytes(&pair.bytes);
    refused(&pair, &live, ULP_E_LAYOUT, "'x'");
    ulp_patch_free(pair.patch);
    bytes_free(&pair.bytes);
    state_free(&base);
    state_free(&live);
    state_free(&next);
}

static void test_diff_refuses_other_layouts(void **unused) {
    struct pair pair = pair_make();
    struct ulp_weights *weights = weights_of(&pair.base);
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);

    (void)unused;
    assert_fails(ulp_diff(weights, pair.next.tensors, pair.next.count - 1, NULL, &sink, NULL),
                 ULP_E_LAYOUT, "'c'");
    pair.next.tensors[1] = pair.next.tensors[0];
    assert_fails(ulp_diff(weights, pair.next.tensors, pair.next.count, NULL, &sink, NULL),
                 ULP_E_DUPLICATE, "'b'");
    assert_int_equal(bytes.used, 0);
    ulp_weights_free(weights);
    pair_free(&pair);
}

/* Applied a second time, and once more by somebody who has the child from elsewhere. */
static void test_again_is_nothing(void **unused) {
    struct pair pair = pair_make();
    struct state live = state_copy(&pair.base);
    struct ulp_weights *weights = weights_of(&live);
    struct ulp_apply_report report;

    (void)unused;
    assert_ok(ulp_apply(weights, pair.patch, NULL, &report));
    assert_false(report.already);
    assert_true(report.changed > 0);
    assert_ok(ulp_apply(weights, pair.patch, NULL, &report));
    assert_true(report.already);
    assert_same_state(&live, &pair.next);
    ulp_weights_free(weights);
    weights = weights_of(&live);
    assert_ok(ulp_apply(weights, pair.patch, NULL, &report));
    assert_true(report.already);
    assert_same_state(&live, &pair.next);
    ulp_weights_free(weights);
    state_free(&live);
    pair_free(&pair);
}

TEST_MAIN(test_wrong_base, test_layouts_that_differ, test_widths_of_unknown_dtypes_differ,
          test_diff_refuses_other_layouts, test_again_is_nothing)
