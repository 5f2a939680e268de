// SPDX-License-Identifier: Apache-2.0
/* What a patch says of its tensors is what was changed in them. */
#include "tests/patch/state.h"

#define STEP_SIZES 6

static const struct form forms[] = {{"a", "BF16", {100, 60}, 2, 0},
                                    {"b", "F32", {600}, 1, 0},
                                    {"c", "F8_E4M3", {600}, 1, 0},
                                    {"d", "BF16", {0}, 1, 0},
                                    {"e", "I64", {600}, 1, 0}};

/* Which bucket a step of so many ulps falls into, the slow way. */
static unsigned bucket_of(uint64_t size) {
    unsigned bucket = 0;

    for (uint64_t top = 1; size > top && bucket < ULP_STEP_BUCKETS - 1; top *= 2)
        bucket++;
    return bucket;
}

struct expected {
    uint64_t changed, steps[ULP_STEP_BUCKETS];
};

/* Every tenth element of all but the last goes up or down by 1, 2, 3, 5, 17 or 100, in turn. */
static void change(struct state *state, struct expected *expected) {
    static const unsigned sizes[STEP_SIZES] = {1, 2, 3, 5, 17, 100};

    for (size_t t = 0; t + 1 < state->count; t++) {
        const struct ulp_tensor *tensor = &state->tensors[t];
        const size_t width = (size_t)tensor->bits / 8;

        for (size_t i = 0; i < tensor->elements; i += 10) {
            uint64_t value = 0, step = sizes[i / 10 % STEP_SIZES];

            memcpy(&value, (const uint8_t *)tensor->data + i * width, width);
            value += i / 10 % 2 ? step : 0 - step;
            memcpy((uint8_t *)tensor->data + i * width, &value, width);
            expected[t].changed++;
            expected[t].steps[bucket_of(step)]++;
        }
    }
}

static void check(const struct ulp_tensor_report *reports, const struct expected *expected,
                  unsigned coder, int with_steps) {
    for (size_t t = 0; t < COUNT(forms); t++) {
        uint64_t pieces = forms[t].shape[0] ? 1 : 0;

        assert_int_equal(reports[t].elements, t ? forms[t].shape[0] : 6000);
        assert_int_equal(reports[t].changed, expected[t].changed);
        assert_int_equal(reports[t].chunks[t == 4 ? 0 : coder], pieces);
        assert_true(!expected[t].changed == !reports[t].bits);
        for (unsigned i = 0; with_steps && i < ULP_STEP_BUCKETS; i++)
            assert_int_equal(reports[t].steps[i], expected[t].steps[i]);
    }
}

static void inspect_with(enum ulp_coder coder) {
    const struct ulp_diff_options options = {.coder = coder};
    struct expected expected[COUNT(forms)] = {{0}};
    struct ulp_tensor_report reports[COUNT(forms)];
    struct state base = state_make(forms, COUNT(forms), 0), next = state_copy(&base);
    struct ulp_weights *weights = weights_of(&base), *other = weights_of(&next);
    struct ulp_pool *pool = pool_of(3);
    struct bytes bytes;
    struct ulp_patch *patch;

    change(&next, expected);
    ulp_weights_free(other);
    other = weights_of(&next);
    bytes = patch_to(weights, &next, &options);
    patch = open_bytes(&bytes);
    assert_ok(ulp_patch_inspect(patch, weights, pool, NULL, reports));
    check(reports, expected, coder, 1);
    if (coder != ULP_CODER_DENSE) { /* which cannot tell without the old weights */
        assert_ok(ulp_patch_inspect(patch, NULL, pool, NULL, reports));
        check(reports, expected, coder, coder == ULP_CODER_CONTEXT);
    }
    assert_fails(ulp_patch_inspect(patch, other, pool, NULL, reports), ULP_E_WRONG_BASE, "");
    ulp_patch_free(patch);
    bytes_free(&bytes);
    ulp_pool_free(pool);
    ulp_weights_free(weights);
    ulp_weights_free(other);
    state_free(&base);
    state_free(&next);
}

static void test_context(void **unused) {
    (void)unused;
    inspect_with(ULP_CODER_CONTEXT);
}

static void test_plain(void **unused) {
    (void)unused;
    inspect_with(ULP_CODER_PLAIN);
}

static void test_dense(void **unused) {
    (void)unused;
    inspect_with(ULP_CODER_DENSE);
}

TEST_MAIN(test_context, test_plain, test_dense)
