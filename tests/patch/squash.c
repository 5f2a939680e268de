// SPDX-License-Identifier: Apache-2.0
/* Several patches as one: the same bytes as the direct patch, with and without history on the way.
 * */
#include "tests/patch/state.h"

#define STEPS_MAX 8

static const struct form forms[] = {{"w", "BF16", {300, 40}, 2, 0},
                                    {"b", "F32", {901}, 1, 0},
                                    {"q", "F8_E4M3", {3000}, 1, 0},
                                    {"still", "I64", {50}, 1, 0},
                                    {"empty", "I64", {0}, 1, 0}};

struct chain {
    struct state states[STEPS_MAX + 1];
    struct bytes bytes[STEPS_MAX];
    struct ulp_patch *patches[STEPS_MAX]; /* from state i to i + 1 */
    size_t steps;
};

/* All but the fourth move. */
static void change(struct state *state) {
    const size_t bytes = (size_t)state->tensors[3].bytes;
    uint8_t still[400];

    assert_int_equal(bytes, sizeof still);
    memcpy(still, state->tensors[3].data, bytes);
    state_step(state, 100);
    memcpy(state->tensors[3].data, still, bytes);
}

static struct chain chain_make(size_t steps, int history) {
    const struct ulp_diff_options options = {.history = history,
                                             .coder = history ? ULP_CODER_CONTEXT : ULP_CODER_BEST};
    struct chain chain = {.steps = steps};

    chain.states[0] = state_make(forms, COUNT(forms), 0);
    for (size_t i = 0; i < steps; i++) {
        struct ulp_weights *weights = weights_of(&chain.states[i]);
        struct ulp_patch_info info;

        if (i)
            assert_ok(ulp_weights_remember(weights, chain.states[i - 1].tensors, COUNT(forms), NULL,
                                           NULL));
        chain.states[i + 1] = state_copy(&chain.states[i]);
        change(&chain.states[i + 1]);
        chain.bytes[i] = patch_to(weights, &chain.states[i + 1], &options);
        chain.patches[i] = open_bytes(&chain.bytes[i]);
        ulp_patch_info(chain.patches[i], &info);
        assert_int_equal(info.history, history && i);
        ulp_weights_free(weights);
    }
    return chain;
}

static void chain_free(struct chain *chain) {
    for (size_t i = 0; i <= chain->steps; i++)
        state_free(&chain->states[i]);
    for (size_t i = 0; i < chain->steps; i++) {
        ulp_patch_free(chain->patches[i]);
        bytes_free(&chain->bytes[i]);
    }
}

static enum ulp_status squash(const struct ulp_weights *weights, struct ulp_patch **patches,
                              size_t count, const struct ulp_diff_options *options,
                              struct bytes *bytes, struct ulp_diff_report *report) {
    struct ulp_sink sink = bytes_sink(bytes);

    return ulp_squash(weights, (const struct ulp_patch *const *)patches, count, options, &sink,
                      report);
}

static void assert_equal_bytes(const struct bytes *a, const struct bytes *b) {
    assert_int_equal(a->used, b->used);
    assert_memory_equal(a->data, b->data, a->used);
}

static void equals_direct(size_t steps, int history, unsigned threads) {
    struct chain chain = chain_make(steps, history);
    struct ulp_pool *pool = pool_of(threads);
    struct ulp_weights *weights = weights_of(&chain.states[0]);
    struct ulp_root child = root_of(&chain.states[steps]);

    for (int coder = ULP_CODER_BEST; coder <= ULP_CODER_DENSE; coder++) {
        const struct ulp_diff_options options = {.pool = pool, .coder = (enum ulp_coder)coder};
        struct bytes squashed = {0}, direct = patch_to(weights, &chain.states[steps], &options);
        struct ulp_diff_report report;

        assert_ok(squash(weights, chain.patches, steps, &options, &squashed, &report));
        assert_same_root(&report.child, &child);
        assert_int_equal(report.patch_bytes, squashed.used);
        assert_equal_bytes(&squashed, &direct);
        bytes_free(&squashed);
        bytes_free(&direct);
    }
    ulp_weights_free(weights);
    ulp_pool_free(pool);
    chain_free(&chain);
}

static void test_the_bytes_of_the_direct_patch(void **unused) {
    static const size_t steps[] = {1, 2, 3, STEPS_MAX};

    (void)unused;
    for (size_t i = 0; i < COUNT(steps); i++) {
        equals_direct(steps[i], 0, 1);
        equals_direct(steps[i], 1, 3);
    }
}

/* A chain that begins in the middle, where the first patch wants what the weights remember. */
static void test_history_of_the_weights(void **unused) {
    struct chain chain = chain_make(4, 1);
    struct ulp_weights *weights = weights_of(&chain.states[1]);
    struct bytes squashed = {0}, direct = patch_to(weights, &chain.states[4], NULL);

    (void)unused;
    assert_fails(squash(weights, chain.patches + 1, 3, NULL, &squashed, NULL), ULP_E_NEEDS_HISTORY,
                 "patch 1");
    assert_ok(ulp_weights_remember(weights, chain.states[2].tensors, COUNT(forms), NULL, NULL));
    assert_fails(squash(weights, chain.patches + 1, 3, NULL, &squashed, NULL), ULP_E_NEEDS_HISTORY,
                 "patch 1");
    assert_int_equal(squashed.used, 0);
    assert_ok(ulp_weights_remember(weights, chain.states[0].tensors, COUNT(forms), NULL, NULL));
    assert_ok(squash(weights, chain.patches + 1, 3, NULL, &squashed, NULL));
    assert_equal_bytes(&squashed, &direct);
    bytes_free(&squashed);
    bytes_free(&direct);
    ulp_weights_free(weights);
    chain_free(&chain);
}

static void test_what_returns_drops_out(void **unused) {
    struct state base = state_make(forms, COUNT(forms), 0), away = state_copy(&base);
    struct ulp_weights *weights = weights_of(&base);
    struct bytes there, back, squashed = {0}, nothing = patch_to(weights, &base, NULL);
    struct ulp_patch *patches[2];
    struct ulp_diff_report report;

    (void)unused;
    state_step(&away, 200);
    there = patch_to(weights, &away, NULL);
    back = patch_between(&away, &base, NULL);
    patches[0] = open_bytes(&there);
    patches[1] = open_bytes(&back);
    assert_ok(squash(weights, patches, 2, NULL, &squashed, &report));
    assert_int_equal(report.changed, 0);
    assert_equal_bytes(&squashed, &nothing);
    ulp_patch_free(patches[0]);
    ulp_patch_free(patches[1]);
    bytes_free(&there);
    bytes_free(&back);
    bytes_free(&squashed);
    bytes_free(&nothing);
    ulp_weights_free(weights);
    state_free(&base);
    state_free(&away);
}

static void test_chains_that_do_not_hold(void **unused) {
    struct chain chain = chain_make(3, 0);
    struct ulp_weights *weights = weights_of(&chain.states[0]);
    struct ulp_patch *turned[] = {chain.patches[1], chain.patches[0]};
    struct ulp_patch *gap[] = {chain.patches[0], chain.patches[2]};
    struct bytes out = {0};

    (void)unused;
    assert_fails(squash(weights, turned, 2, NULL, &out, NULL), ULP_E_WRONG_BASE, "the base is");
    assert_fails(squash(weights, gap, 2, NULL, &out, NULL), ULP_E_WRONG_BASE,
                 "the one before it ends");
    assert_fails(squash(weights, chain.patches + 1, 2, NULL, &out, NULL), ULP_E_WRONG_BASE,
                 "patch 1");
    assert_fails(squash(weights, chain.patches, 0, NULL, &out, NULL), ULP_E_USAGE, "");
    assert_int_equal(out.used, 0);
    ulp_weights_free(weights);
    chain_free(&chain);
}

static void test_other_layouts_and_parts(void **unused) {
    static const struct ulp_region region = {"b", 0, 1, 0, 400};
    const struct ulp_diff_options options = {.regions = &region, .region_count = 1};
    struct chain chain = chain_make(1, 0);
    struct ulp_weights *weights = weights_of(&chain.states[0]);
    struct bytes bytes = patch_to(weights, &chain.states[1], &options), out = {0};
    struct ulp_patch *part = open_bytes(&bytes);
    struct state fewer = state_make(forms, 2, 0);
    struct ulp_weights *other = weights_of(&fewer);

    (void)unused;
    assert_fails(squash(weights, &part, 1, NULL, &out, NULL), ULP_E_REGIONS, "regions");
    assert_fails(squash(other, chain.patches, 1, NULL, &out, NULL), ULP_E_LAYOUT, "");
    assert_int_equal(out.used, 0);
    ulp_weights_free(other);
    state_free(&fewer);
    ulp_patch_free(part);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    chain_free(&chain);
}

/* A damaged patch in the middle is found, whichever it is. */
static void test_damage_on_the_way(void **unused) {
    struct chain chain = chain_make(3, 0);
    struct ulp_weights *weights = weights_of(&chain.states[0]);

    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        struct bytes out = {0};

        chain.bytes[i].data[40] ^= 1;
        assert_fails(squash(weights, chain.patches, 3, NULL, &out, NULL), ULP_E_CHECKSUM, "chunk");
        chain.bytes[i].data[40] ^= 1;
        bytes_free(&out);
    }
    ulp_weights_free(weights);
    chain_free(&chain);
}

TEST_MAIN(test_the_bytes_of_the_direct_patch, test_history_of_the_weights,
          test_what_returns_drops_out, test_chains_that_do_not_hold, test_other_layouts_and_parts,
          test_damage_on_the_way)
