// SPDX-License-Identifier: Apache-2.0
/* Every task runs exactly once and the number of threads changes nothing but the time. */
#include "tests/test.h"

#include "base/limits.h"

#include <sched.h>
#include <stdatomic.h>

enum { TASKS = 5000 };

static const unsigned thread_counts[] = {1, 2, 3, 8};

#define THREAD_COUNTS (sizeof thread_counts / sizeof thread_counts[0])

struct work {
    atomic_int runs[TASKS];
    uint64_t results[TASKS];
    atomic_uint_fast64_t sum;
};

static enum ulp_status compute(void *user, uint64_t index) {
    struct work *work = user;
    uint64_t value = index * UINT64_C(0x9e3779b97f4a7c15);

    atomic_fetch_add(&work->runs[index], 1);
    work->results[index] = value ^ (value >> 29);
    atomic_fetch_add(&work->sum, value);
    return ULP_OK;
}

static void run_and_compare(struct ulp_pool *pool, const struct work *expected) {
    static struct work work;

    memset(&work, 0, sizeof work);
    assert_ok(ulp_pool_run(pool, TASKS, compute, &work, NULL));
    for (size_t i = 0; i < TASKS; i++)
        assert_int_equal(atomic_load(&work.runs[i]), 1);
    assert_memory_equal(work.results, expected->results, sizeof work.results);
    assert_int_equal(atomic_load(&work.sum), atomic_load(&expected->sum));
}

static void test_results_do_not_depend_on_the_threads(void **state) {
    static struct work expected;

    (void)state;
    for (uint64_t i = 0; i < TASKS; i++)
        compute(&expected, i);
    run_and_compare(NULL, &expected);
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        struct ulp_pool *pool = NULL;

        assert_ok(ulp_pool_new(thread_counts[i], &pool));
        assert_int_equal(ulp_pool_threads(pool), thread_counts[i]);
        for (int round = 0; round < 10; round++)
            run_and_compare(pool, &expected);
        ulp_pool_free(pool);
    }
}

struct count {
    atomic_uint_fast64_t runs;
    uint64_t expected_max;
};

static enum ulp_status add_one(void *user, uint64_t index) {
    struct count *count = user;

    if (index > count->expected_max)
        return ulp_fail(ULP_E_INTERNAL, "index %d", (int)index);
    atomic_fetch_add(&count->runs, 1);
    return ULP_OK;
}

static void test_few_tasks_on_many_threads(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_ok(ulp_pool_new(8, &pool));
    for (uint64_t tasks = 1; tasks < 20; tasks++) {
        struct count count = {.expected_max = tasks - 1};

        assert_ok(ulp_pool_run(pool, tasks, add_one, &count, NULL));
        assert_int_equal(atomic_load(&count.runs), tasks);
    }
    ulp_pool_free(pool);
}

static enum ulp_status never(void *user, uint64_t index) {
    (void)user;
    return ulp_fail(ULP_E_INTERNAL, "task %d ran", (int)index);
}

static void test_no_tasks_is_success(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_ok(ulp_pool_run(NULL, 0, never, NULL, NULL));
    assert_ok(ulp_pool_new(4, &pool));
    assert_ok(ulp_pool_run(pool, 0, never, NULL, NULL));
    ulp_pool_free(pool);
}

static void test_one_pool_serves_a_thousand_runs(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_ok(ulp_pool_new(4, &pool));
    for (uint64_t round = 0; round < 1000; round++) {
        struct count count = {.expected_max = round % 17};

        assert_ok(ulp_pool_run(pool, round % 17 + 1, add_one, &count, NULL));
        assert_int_equal(atomic_load(&count.runs), round % 17 + 1);
    }
    ulp_pool_free(pool);
}

static void test_pools_come_and_go_unused(void **state) {
    (void)state;
    for (int round = 0; round < 100; round++) {
        struct ulp_pool *pool = NULL;

        assert_ok(ulp_pool_new(3, &pool));
        ulp_pool_free(pool);
    }
    ulp_pool_free(NULL);
}

struct meeting {
    atomic_int present;
};

/* Ends only when all four are here at the same time. */
static enum ulp_status meet(void *user, uint64_t index) {
    struct meeting *meeting = user;

    (void)index;
    atomic_fetch_add(&meeting->present, 1);
    while (atomic_load(&meeting->present) < 4)
        sched_yield();
    return ULP_OK;
}

static void test_threads_work_at_the_same_time(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_ok(ulp_pool_new(4, &pool));
    for (int round = 0; round < 20; round++) {
        struct meeting meeting = {0};

        assert_ok(ulp_pool_run(pool, 4, meet, &meeting, NULL));
    }
    ulp_pool_free(pool);
}

static void test_zero_threads_means_one_per_cpu(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_int_equal(ulp_pool_threads(NULL), 1);
    assert_ok(ulp_pool_new(0, &pool));
    assert_in_range(ulp_pool_threads(pool), 1, LIMIT_THREADS);
    ulp_pool_free(pool);
}

static void test_too_many_threads_are_refused(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_fails(ulp_pool_new(LIMIT_THREADS + 1, &pool), ULP_E_LIMIT,
                 "1025 threads asked for; the limit is 1024");
    assert_fails(ulp_pool_new(UINT32_MAX, &pool), ULP_E_LIMIT, "the limit is 1024");
    assert_null(pool);
}

static void test_failed_allocations_leak_nothing(void **state) {
    (void)state;
    for (int persistent = 0; persistent < 2; persistent++) {
        uint64_t fail_at = 0, asked;

        do {
            struct ulp_pool *pool = NULL;
            enum ulp_status status;

            failing_allocator_start(fail_at, persistent);
            status = ulp_pool_new(4, &pool);
            assert_int_equal(status, pool ? ULP_OK : ULP_E_NOMEM);
            ulp_pool_free(pool);
            asked = failing_allocator_stop();
            assert_int_equal(status ? ULP_E_NOMEM : ULP_OK, fail_at < asked ? ULP_E_NOMEM : ULP_OK);
        } while (fail_at++ < asked);
        assert_true(asked >= 1);
    }
}

TEST_MAIN(test_results_do_not_depend_on_the_threads, test_few_tasks_on_many_threads,
          test_no_tasks_is_success, test_one_pool_serves_a_thousand_runs,
          test_pools_come_and_go_unused, test_threads_work_at_the_same_time,
          test_zero_threads_means_one_per_cpu, test_too_many_threads_are_refused,
          test_failed_allocations_leak_nothing)
