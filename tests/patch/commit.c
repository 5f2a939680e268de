// SPDX-License-Identifier: Apache-2.0
/* Commit, stop and undo: the weights are the old ones or the new ones, and the handle knows which.
 * */
#include "tests/patch/state.h"

static const struct form forms[] = {{"b", "BF16", {700, 1000}, 2, 0},
                                    {"a", "F32", {999}, 1, 0},
                                    {"c", "I64", {12}, 1, 0},
                                    {"d", "BF16", {77}, 1, 0},
                                    {"e", "F8_E4M3", {300000}, 1, 0}};

struct bench {
    struct state base, next, live;
    struct bytes bytes;
    struct ulp_patch *patch;
    struct ulp_weights *weights;
};

static struct bench bench_make(void) {
    struct bench bench = {.base = state_make(forms, COUNT(forms), 0)};

    bench.next = state_copy(&bench.base);
    state_step(&bench.next, 20);
    bench.live = state_copy(&bench.base);
    bench.bytes = patch_between(&bench.base, &bench.next, NULL);
    bench.patch = open_bytes(&bench.bytes);
    bench.weights = weights_of(&bench.live);
    return bench;
}

static void bench_free(struct bench *bench) {
    ulp_weights_free(bench->weights);
    ulp_patch_free(bench->patch);
    bytes_free(&bench->bytes);
    state_free(&bench->base);
    state_free(&bench->next);
    state_free(&bench->live);
}

static void is_state(const struct bench *bench, const struct state *state) {
    assert_same_state(&bench->live, state);
    assert_root_of(bench->weights, state);
}

static void test_nothing_is_written_before_the_commit(void **unused) {
    struct bench bench = bench_make();
    struct ulp_apply *apply = NULL;

    (void)unused;
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, NULL, &apply));
    is_state(&bench, &bench.base);
    ulp_apply_free(apply);
    is_state(&bench, &bench.base);
    assert_ok(ulp_apply(bench.weights, bench.patch, NULL, NULL));
    is_state(&bench, &bench.next);
    bench_free(&bench);
}

static void test_commit_twice(void **unused) {
    struct bench bench = bench_make();
    struct ulp_apply *apply = NULL;

    (void)unused;
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, NULL, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_fails(ulp_apply_commit(apply, NULL, NULL), ULP_E_USAGE, "already");
    is_state(&bench, &bench.next);
    ulp_apply_free(apply);
    bench_free(&bench);
}

static void test_undo_and_commit_again(void **unused) {
    struct bench bench = bench_make();
    struct ulp_apply *apply = NULL;

    (void)unused;
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, NULL, &apply));
    for (unsigned i = 0; i < 3; i++) {
        assert_fails(ulp_apply_undo(apply), ULP_E_USAGE, "nothing to undo");
        is_state(&bench, &bench.base);
        assert_ok(ulp_apply_commit(apply, NULL, NULL));
        is_state(&bench, &bench.next);
        assert_ok(ulp_apply_undo(apply));
        is_state(&bench, &bench.base);
    }
    ulp_apply_free(apply);
    bench_free(&bench);
}

static void test_undo_restores_what_was_remembered(void **unused) {
    struct bench bench = bench_make();
    struct ulp_root before, expected = root_of(&bench.next);
    struct ulp_apply *apply = NULL;

    (void)unused;
    assert_ok(
        ulp_weights_remember(bench.weights, bench.next.tensors, bench.next.count, NULL, NULL));
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, NULL, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_false(ulp_weights_remembers(bench.weights, &before));
    assert_ok(ulp_apply_undo(apply));
    assert_true(ulp_weights_remembers(bench.weights, &before));
    assert_same_root(&before, &expected);
    ulp_apply_free(apply);
    bench_free(&bench);
}

struct stop {
    uint64_t at, heard, total;
};

static int stop_at(void *user, uint64_t done, uint64_t total) {
    struct stop *stop = user;

    assert_int_equal(done, ++stop->heard);
    stop->total = total;
    return done == stop->at;
}

/* Stopped after every block: all are put back, and the next try from the same preparation works. */
static void test_stop_after_any_block(void **unused) {
    struct bench bench = bench_make();
    struct ulp_apply *apply = NULL;
    struct stop stop = {0};
    const struct ulp_progress progress = {stop_at, &stop};
    uint64_t at;

    (void)unused;
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, NULL, &apply));
    for (at = 1; !stop.total || at <= stop.total; at++) {
        stop = (struct stop){.at = at};
        assert_fails(ulp_apply_commit(apply, &progress, NULL), ULP_E_CANCELLED, "put back");
        assert_int_equal(stop.heard, at);
        is_state(&bench, &bench.base);
    }
    assert_true(at > 6); /* blocks of several tensors, more than one of the largest */
    stop = (struct stop){.at = UINT64_MAX};
    assert_ok(ulp_apply_commit(apply, &progress, NULL));
    assert_int_equal(stop.heard, stop.total);
    is_state(&bench, &bench.next);
    assert_ok(ulp_apply_undo(apply));
    is_state(&bench, &bench.base);
    ulp_apply_free(apply);
    bench_free(&bench);
}

/* Progress of preparing may stop it, too. */
static void test_stop_while_preparing(void **unused) {
    struct bench bench = bench_make();
    struct stop stop = {.at = 1};
    const struct ulp_progress progress = {stop_at, &stop};
    const struct ulp_apply_options options = {.progress = &progress};

    (void)unused;
    assert_fails(ulp_apply(bench.weights, bench.patch, &options, NULL), ULP_E_CANCELLED, "");
    is_state(&bench, &bench.base);
    assert_ok(ulp_apply(bench.weights, bench.patch, NULL, NULL));
    is_state(&bench, &bench.next);
    bench_free(&bench);
}

/* Two patches prepared from one base: only the first to come may be written. */
static void test_weights_that_moved_since_the_preparation(void **unused) {
    struct bench bench = bench_make();
    struct state other = state_copy(&bench.base);
    struct bytes bytes;
    struct ulp_patch *patch;
    struct ulp_apply *first = NULL, *second = NULL;

    (void)unused;
    state_step(&other, 30);
    bytes = patch_to(bench.weights, &other, NULL);
    patch = open_bytes(&bytes);
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, NULL, &first));
    assert_ok(ulp_apply_prepare(bench.weights, patch, NULL, &second));
    assert_ok(ulp_apply_commit(first, NULL, NULL));
    assert_fails(ulp_apply_commit(second, NULL, NULL), ULP_E_WRONG_BASE, "since");
    is_state(&bench, &bench.next);
    assert_ok(ulp_apply_undo(first));
    assert_ok(ulp_apply_commit(second, NULL, NULL));
    is_state(&bench, &other);
    ulp_apply_free(first);
    ulp_apply_free(second);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    state_free(&other);
    bench_free(&bench);
}

/* Nor may a patch be undone under another one that was built on it. */
static void test_undo_under_another_patch(void **unused) {
    struct bench bench = bench_make();
    struct ulp_apply *first = NULL, *second = NULL;
    struct bytes bytes = patch_between(&bench.next, &bench.base, NULL);
    struct ulp_patch *back = open_bytes(&bytes);

    (void)unused;
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, NULL, &first));
    assert_ok(ulp_apply_commit(first, NULL, NULL));
    assert_ok(ulp_apply_prepare(bench.weights, back, NULL, &second));
    assert_ok(ulp_apply_commit(second, NULL, NULL));
    assert_fails(ulp_apply_undo(first), ULP_E_WRONG_BASE, "since");
    is_state(&bench, &bench.base);
    assert_ok(ulp_apply_undo(second));
    assert_ok(ulp_apply_undo(first));
    is_state(&bench, &bench.base);
    ulp_apply_free(first);
    ulp_apply_free(second);
    ulp_patch_free(back);
    bytes_free(&bytes);
    bench_free(&bench);
}

TEST_MAIN(test_nothing_is_written_before_the_commit, test_commit_twice, test_undo_and_commit_again,
          test_undo_restores_what_was_remembered, test_stop_after_any_block,
          test_stop_while_preparing, test_weights_that_moved_since_the_preparation,
          test_undo_under_another_patch)
