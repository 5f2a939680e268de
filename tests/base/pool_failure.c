// SPDX-License-Identifier: Apache-2.0
/* Which failure is reported does not depend on threads or luck: the lowest-numbered task wins. */
#include "tests/test.h"

#include "base/clock.h"

#include <stdatomic.h>

enum { TASKS = 64, ROUNDS = 150 };

static const unsigned thread_counts[] = {0, 1, 2, 3, 8}; /* 0: no pool */

struct plan {
    enum ulp_status status[TASKS];
    uint64_t delay_ns[TASKS];
    atomic_int started[TASKS];
};

static enum ulp_status follow_plan(void *user, uint64_t index) {
    struct plan *plan = user;

    atomic_fetch_add(&plan->started[index], 1);
    if (plan->delay_ns[index])
        clock_sleep_ns(plan->delay_ns[index]);
    if (plan->status[index])
        return ulp_fail(plan->status[index], "task %d failed", (int)index);
    return ULP_OK;
}

/* Some tasks fail; the early ones tend to be slow, so that later failures come first. */
static int make_plan(struct plan *plan) {
    static const enum ulp_status codes[] = {ULP_E_IO, ULP_E_NOMEM, ULP_E_HOLE, ULP_E_NO_SPACE};
    int lowest = -1;

    memset(plan, 0, sizeof *plan);
    for (int i = 0; i < TASKS; i++) {
        if (test_random() % 4 == 0)
            plan->delay_ns[i] = test_random() % (i < TASKS / 2 ? 200000 : 20000);
        if (test_random() % 12 == 0 && i > 2) {
            plan->status[i] = codes[test_random() % 4];
            lowest = lowest < 0 ? i : lowest;
        }
    }
    return lowest;
}

/* Tasks start in ascending order, each once, and few more once one has failed. */
static void check_starts(const struct plan *plan, int lowest) {
    for (int i = 0; i < TASKS; i++) {
        int started = atomic_load(&plan->started[i]);

        assert_true(started <= 1);
        if (lowest < 0 || i <= lowest)
            assert_int_equal(started, 1);
        if (i)
            assert_true(started <= atomic_load(&plan->started[i - 1]));
    }
}

static void run_plans(struct ulp_pool *pool) {
    static struct plan plan;

    test_random_seed(7);
    for (int round = 0; round < ROUNDS; round++) {
        int lowest = make_plan(&plan);
        enum ulp_status status = ulp_pool_run(pool, TASKS, follow_plan, &plan, NULL);
        char message[32];

        check_starts(&plan, lowest);
        assert_int_equal(status, lowest < 0 ? ULP_OK : plan.status[lowest]);
        if (lowest < 0)
            continue;
        snprintf(message, sizeof message, "task %d failed", lowest);
        assert_string_equal(ulp_last_error(), message);
    }
}

static void test_the_lowest_failing_task_wins(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        struct ulp_pool *pool = NULL;

        if (thread_counts[i])
            assert_ok(ulp_pool_new(thread_counts[i], &pool));
        run_plans(pool);
        ulp_pool_free(pool);
    }
}

struct race {
    atomic_int later_failed;
};

/* Task 0 fails only after task 1 has: the first failure in time must not win. */
static enum ulp_status fail_in_reverse(void *user, uint64_t index) {
    struct race *race = user;

    if (index == 1) {
        atomic_store(&race->later_failed, 1);
        return ulp_fail(ULP_E_IO, "the later one");
    }
    while (index == 0 && !atomic_load(&race->later_failed))
        clock_sleep_ns(10000);
    clock_sleep_ns(200000);
    return ulp_fail(ULP_E_HOLE, "the lower one");
}

static void test_a_later_failure_of_a_lower_task_wins(void **state) {
    struct ulp_pool *pool = NULL;

    (void)state;
    assert_ok(ulp_pool_new(2, &pool));
    for (int round = 0; round < 100; round++) {
        struct race race = {0};

        assert_fails(ulp_pool_run(pool, 2, fail_in_reverse, &race, NULL), ULP_E_HOLE,
                     "the lower one");
    }
    ulp_pool_free(pool);
}

static enum ulp_status fail_at_once(void *user, uint64_t index) {
    atomic_fetch_add((atomic_int *)user, 1);
    return ulp_fail(ULP_E_IO, "task %d failed", (int)index);
}

static void test_no_new_task_starts_after_a_failure(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 8; threads++) {
        struct ulp_pool *pool = NULL;
        atomic_int starts = 0;

        assert_ok(ulp_pool_new(threads, &pool));
        assert_fails(ulp_pool_run(pool, 1000000, fail_at_once, &starts, NULL), ULP_E_IO,
                     "task 0 failed");
        assert_in_range(atomic_load(&starts), 1, threads);
        ulp_pool_free(pool);
    }
}

static enum ulp_status succeed(void *user, uint64_t index) {
    (void)user;
    (void)index;
    return ULP_OK;
}

static void test_a_pool_works_on_after_a_failure(void **state) {
    struct ulp_pool *pool = NULL;
    atomic_int starts = 0;

    (void)state;
    assert_ok(ulp_pool_new(4, &pool));
    for (int round = 0; round < 100; round++) {
        assert_fails(ulp_pool_run(pool, 10, fail_at_once, &starts, NULL), ULP_E_IO, "task 0");
        assert_ok(ulp_pool_run(pool, 10, succeed, NULL, NULL));
    }
    ulp_pool_free(pool);
}

TEST_MAIN(test_the_lowest_failing_task_wins, test_a_later_failure_of_a_lower_task_wins,
          test_no_new_task_starts_after_a_failure, test_a_pool_works_on_after_a_failure)
