// SPDX-License-Identifier: Apache-2.0
/*
 * Every allocation of every call fails in turn, once and from there on: the call says so, leaks
 * nothing, the weights stay the base, and all handles work when memory is back.
 */
#include "tests/patch/state.h"

static const struct form forms[] = {{"a", "BF16", {40, 32}, 2, 0},
                                    {"b", "F32", {300}, 1, 0},
                                    {"c", "F8_E4M3", {512}, 1, 0},
                                    {"d", "I64", {0}, 0, 0}};

static const struct ulp_region left[] = {
    {"a", 0, 40, 0, 16}, {"b", 0, 1, 0, 300}, {"d", 0, 1, 0, 1}};
static const struct ulp_region right[] = {{"a", 0, 40, 16, 16}, {"c", 0, 1, 0, 512}};

/* Everything that a call may want, made while memory is there. */
static struct bench {
    struct state before, base, next, live;
    struct ulp_weights *weights;
    struct bytes bytes[5];
    struct ulp_patch *whole, *history, *back, *parts[2];
    struct ulp_pool *pool; /* NULL, or of several threads */
} bench;

static struct ulp_patch *make(size_t place, const struct state *from, const struct state *to,
                              const struct ulp_diff_options *options) {
    struct ulp_weights *weights = weights_of(from);

    if (options->history)
        assert_ok(ulp_weights_remember(weights, bench.before.tensors, COUNT(forms), NULL, NULL));
    bench.bytes[place] = patch_to(weights, to, options);
    ulp_weights_free(weights);
    return open_bytes(&bench.bytes[place]);
}

static void bench_begin(unsigned threads) {
    static const struct ulp_diff_options plain = {0},
                                         history = {.history = 1, .coder = ULP_CODER_CONTEXT},
                                         of_left = {.regions = left, .region_count = COUNT(left)},
                                         of_right = {.regions = right,
                                                     .region_count = COUNT(right)};

    bench.before = state_make(forms, COUNT(forms), 0);
    bench.base = state_copy(&bench.before);
    state_step(&bench.base, 200);
    bench.next = state_copy(&bench.base);
    state_step(&bench.next, 200);
    bench.live = state_copy(&bench.base);
    bench.weights = weights_of(&bench.live);
    assert_ok(ulp_weights_remember(bench.weights, bench.before.tensors, COUNT(forms), NULL, NULL));
    bench.whole = make(0, &bench.base, &bench.next, &plain);
    bench.history = make(1, &bench.base, &bench.next, &history);
    bench.back = make(2, &bench.next, &bench.base, &plain);
    bench.parts[0] = make(3, &bench.base, &bench.next, &of_left);
    bench.parts[1] = make(4, &bench.base, &bench.next, &of_right);
    bench.pool = threads > 1 ? pool_of(threads) : NULL;
}

static void bench_end(void) {
    ulp_pool_free(bench.pool);
    ulp_patch_free(bench.whole);
    ulp_patch_free(bench.history);
    ulp_patch_free(bench.back);
    ulp_patch_free(bench.parts[0]);
    ulp_patch_free(bench.parts[1]);
    for (size_t i = 0; i < COUNT(bench.bytes); i++)
        bytes_free(&bench.bytes[i]);
    ulp_weights_free(bench.weights);
    state_free(&bench.before);
    state_free(&bench.base);
    state_free(&bench.next);
    state_free(&bench.live);
}

/* ---- the calls ---- */

static enum ulp_status new_weights(void) {
    struct ulp_weights *weights = NULL;
    enum ulp_status status =
        ulp_weights_new(bench.base.tensors, bench.base.count, bench.pool, NULL, &weights);

    assert_true(status ? !weights : !!weights);
    ulp_weights_free(weights);
    return status;
}

static enum ulp_status remember(void) {
    struct ulp_weights *weights = NULL;
    enum ulp_status status =
        ulp_weights_new(bench.base.tensors, bench.base.count, NULL, NULL, &weights);

    if (!status) {
        status = ulp_weights_remember(weights, bench.before.tensors, bench.before.count, bench.pool,
                                      NULL);
        assert_int_equal(ulp_weights_remembers(weights, NULL), !status);
    }
    ulp_weights_free(weights);
    return status;
}

static enum ulp_status swallow(void *user, const void *data, size_t bytes) {
    (void)user;
    (void)data;
    (void)bytes;
    return ULP_OK;
}

static const struct ulp_sink nowhere = {swallow, NULL};

static enum ulp_status diff(void) {
    const struct ulp_diff_options options = {.pool = bench.pool, .history = 1};

    return ulp_diff(bench.weights, bench.next.tensors, bench.next.count, &options, &nowhere, NULL);
}

static enum ulp_status diff_of_regions(void) {
    const struct ulp_diff_options options = {
        .pool = bench.pool, .regions = left, .region_count = COUNT(left)};

    return ulp_diff(bench.weights, bench.next.tensors, bench.next.count, &options, &nowhere, NULL);
}

static enum ulp_status open_patch(void) {
    struct ulp_patch *patch = NULL;
    enum ulp_status status =
        ulp_patch_open_memory(bench.bytes[0].data, bench.bytes[0].used, &patch);

    assert_true(status ? !patch : !!patch);
    ulp_patch_free(patch);
    return status;
}

static enum ulp_status verify(void) {
    return ulp_patch_verify(bench.whole, bench.pool, NULL);
}

static enum ulp_status inspect(void) {
    struct ulp_tensor_report reports[COUNT(forms)];

    return ulp_patch_inspect(bench.history, bench.weights, bench.pool, NULL, reports);
}

/* Commit and undo take no memory, so once it is prepared all goes well. */
static enum ulp_status there_and_back(struct ulp_apply *apply, enum ulp_status status) {
    assert_true(status ? !apply : !!apply);
    if (!status) {
        assert_same_state(&bench.live, &bench.base);
        assert_ok(ulp_apply_commit(apply, NULL, NULL));
        assert_same_state(&bench.live, &bench.next);
        assert_ok(ulp_apply_undo(apply));
        ulp_apply_free(apply);
    }
    return status;
}

static enum ulp_status apply_whole(void) {
    const struct ulp_apply_options options = {.pool = bench.pool};
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_apply_prepare(bench.weights, bench.whole, &options, &apply);

    return there_and_back(apply, status);
}

static enum ulp_status apply_with_history(void) {
    const struct ulp_apply_options options = {
        .pool = bench.pool, .remember = 1, .staging_bytes = 1};
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_apply_prepare(bench.weights, bench.history, &options, &apply);

    return there_and_back(apply, status);
}

static enum ulp_status apply_parts(void) {
    const struct ulp_apply_options options = {.pool = bench.pool};
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_apply_prepare_parts(
        bench.weights, (const struct ulp_patch *const *)bench.parts, 2, NULL, &options, &apply);

    return there_and_back(apply, status);
}

/* The holder of a tile makes its patch and is patched. */
static enum ulp_status tile(void) {
    const struct ulp_diff_options diff_options = {.pool = bench.pool};
    const struct ulp_apply_options options = {.pool = bench.pool};
    const struct ulp_patch *part = bench.parts[0];
    struct ulp_weights *weights = NULL;
    struct ulp_apply *apply = NULL;
    struct ulp_root parent, child = {{1}}; /* any: it is taken on trust */
    enum ulp_status status;

    ulp_weights_root(bench.weights, &parent);
    status = ulp_weights_new_tile(bench.live.tensors, bench.live.count, left, COUNT(left), &parent,
                                  bench.pool, NULL, &weights);
    assert_true(status ? !weights : !!weights);
    if (!status)
        status =
            ulp_diff(weights, bench.next.tensors, bench.next.count, &diff_options, &nowhere, NULL);
    if (!status)
        status = ulp_apply_prepare_parts(weights, &part, 1, &child, &options, &apply);
    assert_true(status ? !apply : !!apply);
    if (!status) {
        assert_ok(ulp_apply_commit(apply, NULL, NULL));
        assert_ok(ulp_apply_undo(apply));
    }
    ulp_apply_free(apply);
    ulp_weights_free(weights);
    return status;
}

static enum ulp_status squash(void) {
    const struct ulp_patch *patches[] = {bench.history, bench.back};
    const struct ulp_diff_options options = {.pool = bench.pool};

    return ulp_squash(bench.weights, patches, 2, &options, &nowhere, NULL);
}

/* ---- in turn ---- */

static void fail_in_turn(const char *name, enum ulp_status (*call)(void), int persistent) {
    enum ulp_status status = ULP_E_NOMEM;
    uint64_t fail_at;

    for (fail_at = 0; status; fail_at++) {
        ulp_weights_trim(bench.weights); /* what is kept from call to call would hide allocations */
        failing_allocator_start(fail_at, persistent);
        status = call();
        ulp_weights_trim(bench.weights);
        failing_allocator_stop();
        if (status && status != ULP_E_NOMEM)
            fail_msg("%s, allocation %llu: %s: %s", name, (unsigned long long)fail_at,
                     ulp_status_name(status), ulp_last_error());
        assert_same_state(&bench.live, &bench.base);
        assert_root_of(bench.weights, &bench.base);
        assert_true(ulp_weights_remembers(bench.weights, NULL));
        assert_true(fail_at < 5000);
    }
    assert_true(fail_at > 2); /* or nothing was tested */
}

#define CALLS                                                                                      \
    CALL(new_weights)                                                                              \
    CALL(remember)                                                                                 \
    CALL(diff)                                                                                     \
    CALL(diff_of_regions)                                                                          \
    CALL(open_patch)                                                                               \
    CALL(verify)                                                                                   \
    CALL(inspect)                                                                                  \
    CALL(apply_whole)                                                                              \
    CALL(apply_with_history)                                                                       \
    CALL(apply_parts)                                                                              \
    CALL(tile)                                                                                     \
    CALL(squash)

static void every_call(unsigned threads, int persistent) {
    bench_begin(threads);
#define CALL(call) fail_in_turn(#call, call, persistent);
    CALLS
#undef CALL
    bench_end();
}

static void test_every_allocation(void **unused) {
    (void)unused;
    every_call(1, 0);
}

static void test_every_allocation_from_one_on(void **unused) {
    (void)unused;
    every_call(1, 1);
}

/* Which allocation it is that fails depends on the threads; what is reported does not. */
static void test_every_allocation_with_threads(void **unused) {
    (void)unused;
    every_call(3, 0);
}

TEST_MAIN(test_every_allocation, test_every_allocation_from_one_on,
          test_every_allocation_with_threads)
