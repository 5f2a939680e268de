// SPDX-License-Identifier: Apache-2.0
/* Staged changes beyond the budget go to a file without a name; the result is the same. */
#include "tests/patch/state.h"
#include "tests/tensor/sample.h"

#include "patch/weights.h"

struct bench {
    struct state base, next, live;
    struct bytes bytes;
    struct ulp_patch *patch;
    struct ulp_weights *weights;
};

static struct bench bench_make(void) {
    struct bench bench = {.base = state_make(every_form, every_form_count, 0)};

    bench.next = state_copy(&bench.base);
    state_step(&bench.next, 100);
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

static void test_everything_spilled(void **unused) {
    struct bench bench = bench_make();
    char *directory = temp_directory_make();
    struct ulp_pool *pool = pool_of(3);
    const struct ulp_apply_options options = {
        .pool = pool, .staging_bytes = 1, .spill_directory = directory};
    struct ulp_apply *apply = NULL;
    struct ulp_apply_report report;

    (void)unused;
    assert_ok(ulp_apply_prepare(bench.weights, bench.patch, &options, &apply));
    assert_int_equal(entries_in(directory), 0);
    assert_ok(ulp_apply_commit(apply, NULL, &report));
    assert_same_state(&bench.live, &bench.next);
    assert_root_of(bench.weights, &bench.next);
    assert_int_equal(report.staged_bytes, 0);
    assert_true(report.spilled_bytes > 0);
    assert_ok(ulp_apply_undo(apply));
    assert_same_state(&bench.live, &bench.base);
    ulp_apply_free(apply);
    ulp_pool_free(pool);
    temp_directory_remove(directory);
    bench_free(&bench);
}

static void test_some_spilled(void **unused) {
    struct bench bench = bench_make();
    const struct ulp_apply_options options = {.staging_bytes = 3000};
    struct ulp_apply_report report;

    (void)unused;
    assert_ok(ulp_apply(bench.weights, bench.patch, &options, &report));
    assert_same_state(&bench.live, &bench.next);
    assert_in_range(report.staged_bytes, 1, 3000);
    assert_true(report.spilled_bytes > 0);
    bench_free(&bench);
}

static void test_nothing_spilled_by_default(void **unused) {
    struct bench bench = bench_make();
    const struct ulp_apply_options options = {.spill_directory = "/nowhere/at/all"};
    struct ulp_apply_report report;

    (void)unused;
    assert_ok(ulp_apply(bench.weights, bench.patch, &options, &report));
    assert_int_equal(report.spilled_bytes, 0);
    assert_true(report.staged_bytes > 4 * report.changed);
    bench_free(&bench);
}

/* What is remembered spills as well, whether it is learnt from applying or from the state before,
 * and says the same. */
static void test_history_spilled(void **unused) {
    const struct ulp_apply_options options = {.staging_bytes = 1, .remember = 1};
    const struct ulp_diff_options diff = {.history = 1};
    struct bench bench = bench_make();
    struct state after = state_copy(&bench.next);
    struct ulp_weights *told = weights_of(&bench.next);
    struct bytes expected, bytes;

    (void)unused;
    state_step(&after, 100);
    assert_ok(ulp_weights_remember(told, bench.base.tensors, bench.base.count, NULL, NULL));
    assert_true(staging_held(told->moves->staging) > 0);
    assert_int_equal(staging_spilled(told->moves->staging), 0);
    expected = patch_to(told, &after, &diff);

    assert_ok(ulp_apply(bench.weights, bench.patch, &options, NULL));
    assert_true(staging_spilled(bench.weights->moves->staging) > 0);
    assert_int_equal(staging_held(bench.weights->moves->staging), 0);
    bytes = patch_to(bench.weights, &after, &diff);
    assert_int_equal(bytes.used, expected.used);
    assert_memory_equal(bytes.data, expected.data, bytes.used);
    bytes_free(&bytes);

    assert_ok(weights_remember_in(told, bench.base.tensors, bench.base.count,
                                  (struct staging_room){.heap_bytes = 1}, NULL, NULL));
    assert_true(staging_spilled(told->moves->staging) > 0);
    bytes = patch_to(told, &after, &diff);
    assert_int_equal(bytes.used, expected.used);
    assert_memory_equal(bytes.data, expected.data, bytes.used);
    bytes_free(&bytes);

    bytes_free(&expected);
    ulp_weights_free(told);
    state_free(&after);
    bench_free(&bench);
}

/* Pieces that do not fit what is left of an extent, and one that is larger than any. */
static void test_taking_more_than_an_extent(void **unused) {
    static const size_t sizes[] = {1, 64, 65, 5 << 20, 10 << 20, 5 << 20, 40 << 20, 3, 0, 16 << 20};
    struct staging *staging = NULL;
    uint8_t *places[COUNT(sizes)];

    (void)unused;
    assert_ok(staging_new((struct staging_room){.heap_bytes = 1}, &staging));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_ok(staging_take(staging, sizes[i], &places[i]));
        assert_int_equal((uintptr_t)places[i] % 16, 0);
        memset(places[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (size_t k = 0; k < sizes[i]; k += sizes[i] / 7 + 1)
            assert_int_equal(places[i][k], i + 1);
        if (sizes[i])
            assert_int_equal(places[i][sizes[i] - 1], i + 1);
    }
    staging_free(staging);
}

static void test_no_directory_to_spill_to(void **unused) {
    struct bench bench = bench_make();
    struct ulp_apply_options options = {.staging_bytes = 1, .spill_directory = "/nowhere/at/all"};

    (void)unused;
    assert_fails(ulp_apply(bench.weights, bench.patch, &options, NULL), ULP_E_NOT_FOUND,
                 "temporary file in '/nowhere/at/all'");
    assert_same_state(&bench.live, &bench.base);
    assert_root_of(bench.weights, &bench.base);
    options.spill_directory = "";
    assert_ok(ulp_apply(bench.weights, bench.patch, &options, NULL));
    assert_same_state(&bench.live, &bench.next);
    bench_free(&bench);
}

TEST_MAIN(test_everything_spilled, test_some_spilled, test_nothing_spilled_by_default,
          test_history_spilled, test_taking_more_than_an_extent, test_no_directory_to_spill_to)
