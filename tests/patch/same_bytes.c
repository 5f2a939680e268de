// SPDX-License-Identifier: Apache-2.0
/* The same input gives the same bytes and the same result, whatever the threads and the CPU. */
#include "tests/patch/state.h"
#include "tests/scan/every_feature_set.h"

static const unsigned thread_counts[] = {1, 2, 3, 8};

static struct {
    struct state base, next;
    struct bytes first; /* what every other patch must equal */
    struct ulp_pool *pool;
} shared;

static void set_up(void) {
    shared.base = state_make(every_form, every_form_count, 0);
    shared.next = state_copy(&shared.base);
    state_step(&shared.next, 60);
    shared.first = patch_between(&shared.base, &shared.next, NULL);
}

static void tear_down(void) {
    bytes_free(&shared.first);
    state_free(&shared.base);
    state_free(&shared.next);
}

static void make_and_apply(void) {
    const struct ulp_diff_options options = {.pool = shared.pool};
    const struct ulp_apply_options apply_options = {.pool = shared.pool};
    struct state live = state_copy(&shared.base);
    struct ulp_weights *weights = NULL;
    struct ulp_patch *patch;
    struct bytes bytes;

    assert_ok(ulp_weights_new(live.tensors, live.count, shared.pool, NULL, &weights));
    bytes = patch_to(weights, &shared.next, &options);
    assert_int_equal(bytes.used, shared.first.used);
    assert_memory_equal(bytes.data, shared.first.data, bytes.used);
    patch = open_bytes(&bytes);
    assert_ok(ulp_patch_verify(patch, shared.pool, NULL));
    assert_ok(ulp_apply(weights, patch, &apply_options, NULL));
    assert_same_state(&live, &shared.next);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    ulp_weights_free(weights);
    state_free(&live);
}

static void test_any_number_of_threads(void **unused) {
    (void)unused;
    set_up();
    for (size_t i = 0; i < COUNT(thread_counts); i++) {
        shared.pool = pool_of(thread_counts[i]);
        for (unsigned again = 0; again < 5; again++)
            make_and_apply();
        ulp_pool_free(shared.pool);
        shared.pool = NULL;
    }
    tear_down();
}

/* All subsets would take long; those that differ by one feature from all or none do not. */
static void test_any_cpu(void **unused) {
    uint32_t there;

    (void)unused;
    set_up();
    cpu_allow(CPU_ALL);
    there = cpu_features();
    for (uint32_t bit = 1; bit <= CPU_ALL; bit <<= 1) {
        cpu_allow(there & ~bit);
        make_and_apply();
        cpu_allow(there & bit);
        make_and_apply();
    }
    cpu_allow(0);
    make_and_apply();
    cpu_allow(CPU_ALL);
    tear_down();
}

TEST_MAIN(test_any_number_of_threads, test_any_cpu)
