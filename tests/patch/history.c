// SPDX-License-Identifier: Apache-2.0
/* Patches that are coded with the moves of the step before: who remembers can read them. */
#include "tests/patch/state.h"

static const struct form forms[] = {
    {"w", "BF16", {400, 100}, 2, 0},  {"t", "BF16", {9000}, 1, 0},
    {"a.still", "BF16", {100}, 1, 0}, /* around the others */
    {"u.still", "BF16", {200}, 1, 0}, {"z.still", "BF16", {300}, 1, 0},
    {"still", "F32", {500}, 1, 0}};

#define STEPS 4

/* Elements that moved last tend to move again, back or on: that is what history is for. */
static void move_again(struct state *to, const struct state *now, const struct state *before) {
    for (size_t t = 0; t < now->count; t++) {
        const uint8_t *a = before->tensors[t].data, *b = now->tensors[t].data;
        uint8_t *c = to->tensors[t].data;

        for (uint64_t i = 0; i + 1 < now->tensors[t].bytes; i += 2) {
            uint16_t was, is, will;

            memcpy(&was, a + i, 2);
            memcpy(&is, b + i, 2);
            if (was == is || test_random() % 4 == 0)
                continue;
            will = (uint16_t)(is + (is - was));
            memcpy(c + i, &will, 2);
        }
    }
}

struct chain {
    struct state states[STEPS];
    struct bytes bytes[STEPS]; /* to state i; from 2 on with history */
    struct ulp_patch *patches[STEPS];
};

static void keep_still(struct state *state, const struct state *before) {
    for (size_t i = 2; i < state->count; i++)
        memcpy(state->tensors[i].data, before->tensors[i].data, (size_t)state->tensors[i].bytes);
}

static struct chain chain_make(void) {
    static const struct ulp_diff_options options = {.history = 1};
    struct chain chain = {0};

    chain.states[0] = state_make(forms, COUNT(forms), 0);
    for (size_t i = 1; i < STEPS; i++) {
        const struct state *now = &chain.states[i - 1];
        struct ulp_weights *weights = weights_of(now);

        chain.states[i] = state_copy(now);
        if (i == 1)
            state_step(&chain.states[i], 50);
        else
            move_again(&chain.states[i], now, &chain.states[i - 2]);
        keep_still(&chain.states[i], now);
        if (i > 1)
            assert_ok(ulp_weights_remember(weights, chain.states[i - 2].tensors, COUNT(forms), NULL,
                                           NULL));
        chain.bytes[i] = patch_to(weights, &chain.states[i], &options);
        chain.patches[i] = open_bytes(&chain.bytes[i]);
        ulp_weights_free(weights);
    }
    return chain;
}

static void chain_free(struct chain *chain) {
    for (size_t i = 0; i < STEPS; i++) {
        ulp_patch_free(chain->patches[i]);
        bytes_free(&chain->bytes[i]);
        state_free(&chain->states[i]);
    }
}

static void test_history_is_said_and_pays(void **unused) {
    struct chain chain = chain_make();
    struct bytes without = patch_between(&chain.states[1], &chain.states[2], NULL);
    struct ulp_root before = root_of(&chain.states[0]);
    struct ulp_patch_info info;

    (void)unused;
    ulp_patch_info(chain.patches[1], &info);
    assert_false(info.history);
    ulp_patch_info(chain.patches[2], &info);
    assert_true(info.history);
    assert_same_root(&info.before, &before);
    assert_true(chain.bytes[2].used < without.used * 9 / 10);
    bytes_free(&without);
    chain_free(&chain);
}

/* Remembering while applying is the same as being told the state before. */
static void test_apply_remembers_for_the_next(void **unused) {
    static const struct ulp_apply_options options = {.remember = 1};
    struct chain chain = chain_make();
    struct state live = state_copy(&chain.states[0]);
    struct ulp_weights *weights = weights_of(&live);
    struct ulp_root before;

    (void)unused;
    for (size_t i = 1; i < STEPS; i++) {
        struct ulp_root expected = root_of(&chain.states[i - 1]);

        assert_ok(ulp_apply(weights, chain.patches[i], &options, NULL));
        assert_same_state(&live, &chain.states[i]);
        assert_true(ulp_weights_remembers(weights, &before));
        assert_same_root(&before, &expected);
    }
    ulp_weights_free(weights);
    state_free(&live);
    chain_free(&chain);
}

static void test_history_that_is_missing_wrong_or_right(void **unused) {
    struct chain chain = chain_make();
    struct state live = state_copy(&chain.states[1]);
    struct ulp_weights *weights = weights_of(&live);

    (void)unused;
    assert_fails(ulp_apply(weights, chain.patches[2], NULL, NULL), ULP_E_NEEDS_HISTORY,
                 "came before its base");
    assert_ok(ulp_weights_remember(weights, chain.states[3].tensors, COUNT(forms), NULL, NULL));
    assert_fails(ulp_apply(weights, chain.patches[2], NULL, NULL), ULP_E_NEEDS_HISTORY,
                 "but the one given is from");
    assert_same_state(&live, &chain.states[1]);
    assert_ok(ulp_weights_remember(weights, chain.states[0].tensors, COUNT(forms), NULL, NULL));
    assert_ok(ulp_apply(weights, chain.patches[2], NULL, NULL));
    assert_same_state(&live, &chain.states[2]);
    ulp_weights_free(weights);
    state_free(&live);
    chain_free(&chain);
}

static void test_forgetting(void **unused) {
    static const struct ulp_apply_options remember = {.remember = 1};
    struct chain chain = chain_make();
    struct state live = state_copy(&chain.states[0]);
    struct ulp_weights *weights = weights_of(&live);

    (void)unused;
    assert_ok(ulp_apply(weights, chain.patches[1], &remember, NULL));
    ulp_weights_forget(weights);
    assert_false(ulp_weights_remembers(weights, NULL));
    assert_fails(ulp_apply(weights, chain.patches[2], NULL, NULL), ULP_E_NEEDS_HISTORY, "");
    assert_same_state(&live, &chain.states[1]);
    ulp_weights_forget(weights);
    ulp_weights_free(weights);
    state_free(&live);
    chain_free(&chain);
}

/* Without remember, what was remembered of the step before is of no use and goes. */
static void test_apply_without_remember_forgets(void **unused) {
    static const struct ulp_apply_options remember = {.remember = 1};
    struct chain chain = chain_make();
    struct state live = state_copy(&chain.states[0]);
    struct ulp_weights *weights = weights_of(&live);

    (void)unused;
    assert_ok(ulp_apply(weights, chain.patches[1], &remember, NULL));
    assert_ok(ulp_apply(weights, chain.patches[2], NULL, NULL));
    assert_false(ulp_weights_remembers(weights, NULL));
    assert_fails(ulp_apply(weights, chain.patches[3], NULL, NULL), ULP_E_NEEDS_HISTORY, "");
    assert_same_state(&live, &chain.states[2]);
    ulp_weights_free(weights);
    state_free(&live);
    chain_free(&chain);
}

/* A patch that could not profit from history does not ask for it. */
static void test_history_that_is_of_no_use(void **unused) {
    static const struct ulp_diff_options options = {.history = 1, .coder = ULP_CODER_CONTEXT};
    struct chain chain = chain_make();
    struct ulp_weights *weights = weights_of(&chain.states[1]);
    struct bytes bytes;
    struct ulp_patch *patch;
    struct ulp_patch_info info;

    (void)unused;
    assert_ok(ulp_weights_remember(weights, chain.states[0].tensors, COUNT(forms), NULL, NULL));
    bytes = patch_to(weights, &chain.states[1], &options);
    patch = open_bytes(&bytes);
    ulp_patch_info(patch, &info);
    assert_false(info.history);
    assert_int_equal(info.changed, 0);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    chain_free(&chain);
}

static void test_the_state_before_must_fit(void **unused) {
    struct chain chain = chain_make();
    struct ulp_weights *weights = weights_of(&chain.states[1]);

    (void)unused;
    assert_fails(ulp_weights_remember(weights, chain.states[0].tensors, 5, NULL, NULL),
                 ULP_E_LAYOUT, "'still'");
    assert_false(ulp_weights_remembers(weights, NULL));
    ulp_weights_free(weights);
    chain_free(&chain);
}

TEST_MAIN(test_history_is_said_and_pays, test_apply_remembers_for_the_next,
          test_history_that_is_missing_wrong_or_right, test_forgetting,
          test_apply_without_remember_forgets, test_history_that_is_of_no_use,
          test_the_state_before_must_fit)
