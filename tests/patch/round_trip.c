// SPDX-License-Identifier: Apache-2.0
/* What a patch was made from is what it leads to: any type, coder, density and value. */
#include "tests/patch/state.h"

static const enum ulp_coder coders[] = {ULP_CODER_BEST, ULP_CODER_CONTEXT, ULP_CODER_PLAIN,
                                        ULP_CODER_DENSE};

static void check_info(const struct ulp_patch *patch, const struct ulp_diff_report *report,
                       size_t bytes, size_t tensors) {
    struct ulp_patch_info info;

    ulp_patch_info(patch, &info);
    assert_same_root(&info.parent, &report->parent);
    assert_same_root(&info.child, &report->child);
    assert_int_equal(info.bytes, bytes);
    assert_int_equal(report->patch_bytes, bytes);
    assert_int_equal(info.changed, report->changed);
    assert_int_equal(info.elements, report->elements);
    assert_int_equal(info.dense_bytes, report->dense_bytes);
    assert_int_equal(info.tensors, tensors);
    assert_false(info.history || info.partial || report->history);
}

/* Leaves `base` as it was. */
static void round_trip(const struct state *base, const struct state *next, enum ulp_coder coder) {
    const struct ulp_diff_options options = {.coder = coder};
    struct state live = state_copy(base);
    struct ulp_weights *weights = weights_of(&live);
    struct ulp_root parent = root_of(base), child = root_of(next);
    struct ulp_diff_report made;
    struct ulp_apply_report applied;
    struct bytes bytes = {0};
    struct ulp_sink sink = bytes_sink(&bytes);
    struct ulp_patch *patch;

    assert_ok(ulp_diff(weights, next->tensors, next->count, &options, &sink, &made));
    assert_same_state(&live, base);
    assert_same_root(&made.parent, &parent);
    assert_same_root(&made.child, &child);
    patch = open_bytes(&bytes);
    check_info(patch, &made, bytes.used, base->count);
    assert_ok(ulp_patch_verify(patch, NULL, NULL));
    assert_ok(ulp_apply(weights, patch, NULL, &applied));
    assert_same_state(&live, next);
    assert_root_of(weights, next);
    assert_same_root(&applied.child, &child);
    if (!applied.already)
        assert_int_equal(applied.changed, made.changed);
    else
        assert_same_root(&parent, &child);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    state_free(&live);
}

static void through_every_coder(const struct state *base, const struct state *next) {
    for (size_t i = 0; i < COUNT(coders); i++)
        round_trip(base, next, coders[i]);
}

static void test_every_dtype_and_density(void **unused) {
    static const unsigned densities[] = {0, 1, 10, 40, 100, 500, 1000};
    struct state base = state_make(every_form, every_form_count, 0);

    (void)unused;
    for (size_t i = 0; i < COUNT(densities); i++) {
        struct state next = state_copy(&base);

        state_step(&next, densities[i]);
        through_every_coder(&base, &next);
        state_scramble(&next, densities[i]);
        through_every_coder(&base, &next);
        state_free(&next);
    }
    state_free(&base);
}

static void test_one_change_in_each_tensor(void **unused) {
    struct state base = state_make(every_form, every_form_count, 0);

    (void)unused;
    for (size_t i = 0; i < base.count; i++) {
        struct state next = state_copy(&base);

        if (base.tensors[i].bytes)
            ((uint8_t *)next.tensors[i].data)[test_random() % base.tensors[i].bytes] ^=
                (uint8_t)(1u << test_random() % 8);
        through_every_coder(&base, &next);
        state_free(&next);
    }
    state_free(&base);
}

/* The first and the last element of each tensor, and nothing else. */
static void test_edges(void **unused) {
    struct state base = state_make(every_form, every_form_count, 0);
    struct state next = state_copy(&base);

    (void)unused;
    for (size_t i = 0; i < base.count; i++) {
        if (!base.tensors[i].bytes)
            continue;
        ((uint8_t *)next.tensors[i].data)[0] ^= 1;
        ((uint8_t *)next.tensors[i].data)[base.tensors[i].bytes - 1] ^= 0x80;
    }
    through_every_coder(&base, &next);
    state_free(&next);
    state_free(&base);
}

/* Zeros of both signs, subnormals, infinities and NaNs with payloads, each becoming each. */
static void test_special_values(void **unused) {
    static const uint16_t values[] = {0,      0x8000, 1,      0x8001, 0x007f, 0x7f80, 0xff80,
                                      0x7fc0, 0x7f81, 0xffc1, 0xffff, 0x3f80, 0x7f7f};
    static const struct form form = {"special", "BF16", {COUNT(values), COUNT(values)}, 2, 0};
    struct state base = state_make(&form, 1, 0), next = state_copy(&base);

    (void)unused;
    for (size_t i = 0; i < COUNT(values) * COUNT(values); i++) {
        memcpy((uint8_t *)base.tensors[0].data + 2 * i, &values[i / COUNT(values)], 2);
        memcpy((uint8_t *)next.tensors[0].data + 2 * i, &values[i % COUNT(values)], 2);
    }
    through_every_coder(&base, &next);
    through_every_coder(&next, &base);
    state_free(&next);
    state_free(&base);
}

static void test_wide_special_values(void **unused) {
    static const uint64_t values[] = {0,
                                      UINT64_C(1) << 63,
                                      1,
                                      UINT64_C(0x000fffffffffffff),
                                      UINT64_C(0x7ff0000000000000),
                                      UINT64_C(0xfff0000000000000),
                                      UINT64_C(0x7ff8dead0000beef),
                                      UINT64_C(0x7ff0000000000001),
                                      UINT64_MAX};
    static const struct form form = {"special", "F64", {COUNT(values), COUNT(values)}, 2, 0};
    struct state base = state_make(&form, 1, 0), next = state_copy(&base);

    (void)unused;
    for (size_t i = 0; i < COUNT(values) * COUNT(values); i++) {
        memcpy((uint8_t *)base.tensors[0].data + 8 * i, &values[i / COUNT(values)], 8);
        memcpy((uint8_t *)next.tensors[0].data + 8 * i, &values[i % COUNT(values)], 8);
    }
    through_every_coder(&base, &next);
    state_free(&next);
    state_free(&base);
}

static void test_no_tensors(void **unused) {
    struct state nothing = state_make(every_form, 0, 0);

    (void)unused;
    through_every_coder(&nothing, &nothing);
    state_free(&nothing);
}

static void test_only_empty_tensors(void **unused) {
    static const struct form forms[] = {{"b", "BF16", {0}, 1, 0}, {"a", "F32", {3, 0}, 2, 0}};
    struct state empty = state_make(forms, COUNT(forms), 0);

    (void)unused;
    through_every_coder(&empty, &empty);
    state_free(&empty);
}

static void test_another_order_on_the_other_side(void **unused) {
    struct state base = state_make(every_form, every_form_count, 0), next = state_copy(&base);
    struct bytes straight, reversed;

    (void)unused;
    state_step(&next, 40);
    straight = patch_between(&base, &next, NULL);
    state_reverse(&next);
    reversed = patch_between(&base, &next, NULL);
    assert_int_equal(straight.used, reversed.used);
    assert_memory_equal(straight.data, reversed.data, straight.used);
    through_every_coder(&base, &next);
    bytes_free(&straight);
    bytes_free(&reversed);
    state_free(&next);
    state_free(&base);
}

/* Memory of the caller may begin anywhere. */
static void test_unaligned_memory(void **unused) {
    (void)unused;
    for (size_t skew = 1; skew < 8; skew += 2) {
        struct state base = state_make(every_form, every_form_count, skew);
        struct state next = state_copy(&base);

        state_step(&next, 100);
        through_every_coder(&base, &next);
        state_free(&next);
        state_free(&base);
    }
}

/* A table of one tensor and no chunk: names, roots, one sum. */
static void test_identical_states_take_few_bytes(void **unused) {
    static const struct form form = {"w", "BF16", {1000, 1000}, 2, 0};
    struct state base = state_make(&form, 1, 0);
    struct bytes bytes = patch_between(&base, &base, NULL);

    (void)unused;
    assert_true(bytes.used < 150);
    bytes_free(&bytes);
    state_free(&base);
}

/* A patch of 1 % of steps by one is far smaller than places and values would be. */
static void test_few_changes_take_few_bytes(void **unused) {
    static const struct form form = {"w", "BF16", {1000, 1000}, 2, 0};
    struct state base = state_make(&form, 1, 0), next = state_copy(&base);
    struct bytes bytes;

    (void)unused;
    state_step(&next, 10);
    bytes = patch_between(&base, &next, NULL);
    assert_in_range(bytes.used, 9000, 17000);
    bytes_free(&bytes);
    state_free(&next);
    state_free(&base);
}

TEST_MAIN(test_every_dtype_and_density, test_one_change_in_each_tensor, test_edges,
          test_special_values, test_wide_special_values, test_no_tensors, test_only_empty_tensors,
          test_another_order_on_the_other_side, test_unaligned_memory,
          test_identical_states_take_few_bytes, test_few_changes_take_few_bytes)
