// SPDX-License-Identifier: Apache-2.0
/* Calls on one handle that may run at the same time, as the header says; the thread sanitizer looks
 * on. */
#include "tests/patch/state.h"

#define THREADS 4
#define TASKS 120

static const struct form forms[] = {
    {"a", "BF16", {300, 64}, 2, 0}, {"b", "F32", {3000}, 1, 0}, {"c", "F8_E4M3", {5000}, 1, 0}};
static const struct ulp_diff_options with_history = {.history = 1};
static const struct ulp_apply_options remember = {.remember = 1};

static struct {
    struct state before, base, next, live;
    struct ulp_weights *weights; /* of `live`, which is the base */
    struct bytes whole, history;
    struct ulp_patch *whole_patch, *history_patch;
} scene;

static void begin(void) {
    scene.before = state_make(forms, COUNT(forms), 0);
    scene.base = state_copy(&scene.before);
    state_step(&scene.base, 200);
    scene.next = state_copy(&scene.base);
    state_step(&scene.next, 200);
    scene.live = state_copy(&scene.base);
    scene.weights = weights_of(&scene.live);
    scene.whole = patch_to(scene.weights, &scene.next, NULL);
    assert_ok(
        ulp_weights_remember(scene.weights, scene.before.tensors, scene.before.count, NULL, NULL));
    scene.history = patch_to(scene.weights, &scene.next, &with_history);
    scene.whole_patch = open_bytes(&scene.whole);
    scene.history_patch = open_bytes(&scene.history);
}

static void end(void) {
    ulp_patch_free(scene.whole_patch);
    ulp_patch_free(scene.history_patch);
    bytes_free(&scene.whole);
    bytes_free(&scene.history);
    ulp_weights_free(scene.weights);
    state_free(&scene.before);
    state_free(&scene.base);
    state_free(&scene.next);
    state_free(&scene.live);
}

/* Only the main thread may use the assertions. */
static enum ulp_status same_as(const struct bytes *made, const struct bytes *expected) {
    if (made->used == expected->used && !memcmp(made->data, expected->data, made->used))
        return ULP_OK;
    return ulp_fail(ULP_E_INTERNAL, "other bytes");
}

static enum ulp_status diff(void) {
    struct bytes made = {0};
    struct ulp_sink sink = bytes_sink(&made);
    enum ulp_status status =
        ulp_diff(scene.weights, scene.next.tensors, scene.next.count, &with_history, &sink, NULL);

    if (!status)
        status = same_as(&made, &scene.history);
    bytes_free(&made);
    return status;
}

static enum ulp_status squash(void) {
    const struct ulp_patch *patches[] = {scene.history_patch};
    struct bytes made = {0};
    struct ulp_sink sink = bytes_sink(&made);
    enum ulp_status status = ulp_squash(scene.weights, patches, 1, NULL, &sink, NULL);

    if (!status)
        status = same_as(&made, &scene.whole);
    bytes_free(&made);
    return status;
}

static enum ulp_status prepare(void) {
    struct ulp_apply *apply = NULL;
    enum ulp_status status =
        ulp_apply_prepare(scene.weights, scene.history_patch, &remember, &apply);

    ulp_apply_free(apply);
    return status;
}

static enum ulp_status inspect(void) {
    struct ulp_tensor_report reports[COUNT(forms)];

    return ulp_patch_inspect(scene.history_patch, scene.weights, NULL, NULL, reports);
}

static enum ulp_status small_things(void) {
    struct ulp_root root;

    ulp_weights_trim(scene.weights);
    ulp_weights_root(scene.weights, &root);
    if (!ulp_weights_remembers(scene.weights, &root))
        return ulp_fail(ULP_E_INTERNAL, "it forgot");
    return ulp_patch_verify(scene.whole_patch, NULL, NULL);
}

static enum ulp_status one_call(void *user, uint64_t task) {
    static enum ulp_status (*const calls[])(void) = {diff, squash, prepare, inspect, small_things};

    (void)user;
    return calls[task % COUNT(calls)]();
}

static void test_readers_of_one_handle(void **unused) {
    struct ulp_pool *pool = pool_of(THREADS);

    (void)unused;
    begin();
    assert_ok(ulp_pool_run(pool, TASKS, one_call, NULL, NULL));
    assert_same_state(&scene.live, &scene.base);
    assert_root_of(scene.weights, &scene.base);
    end();
    ulp_pool_free(pool);
}

/* Several may be prepared from one state; the first that is committed makes the others stale. */
static void test_one_of_those_prepared_is_committed(void **unused) {
    struct ulp_apply *first = NULL, *second = NULL;

    (void)unused;
    begin();
    assert_ok(ulp_apply_prepare(scene.weights, scene.whole_patch, NULL, &first));
    assert_ok(ulp_apply_prepare(scene.weights, scene.history_patch, &remember, &second));
    assert_ok(ulp_apply_commit(second, NULL, NULL));
    assert_fails(ulp_apply_commit(first, NULL, NULL), ULP_E_WRONG_BASE, "have changed since");
    assert_same_state(&scene.live, &scene.next);
    ulp_apply_free(first);
    ulp_apply_free(second);
    end();
}

TEST_MAIN(test_readers_of_one_handle, test_one_of_those_prepared_is_committed)
