// SPDX-License-Identifier: Apache-2.0
/* Progress only rises, comes on the calling thread, and its answer can stop a run. */
#include "tests/test.h"

#include "base/clock.h"

#include <stdatomic.h>

enum { TASKS = 300, ENDLESS = 1000000000 };

static const unsigned thread_counts[] = {0, 1, 2, 3, 8}; /* 0: no pool */

#define THREAD_COUNTS (sizeof thread_counts / sizeof thread_counts[0])

static _Thread_local int calling_thread;

struct story {
    uint64_t total, last, cancel_at; /* cancel_at: 0 means never */
    unsigned wrong;
    atomic_uint_fast64_t reports, ended;
};

/* Threads of the pool wait for the first report, or they might leave the caller no task at all. */
static enum ulp_status take_a_moment(void *user, uint64_t index) {
    struct story *story = user;

    while (!calling_thread && !atomic_load(&story->reports))
        clock_sleep_ns(10000);
    if (index % 8 == 0)
        clock_sleep_ns(20000);
    atomic_fetch_add(&story->ended, 1);
    return ULP_OK;
}

static int listen(void *user, uint64_t done, uint64_t total) {
    struct story *story = user;

    story->wrong += total != story->total || done > total || done < story->last || done == 0;
    story->wrong += done > atomic_load(&story->ended);
    story->wrong += !calling_thread;
    story->last = done;
    atomic_fetch_add(&story->reports, 1);
    return story->cancel_at && done >= story->cancel_at;
}

static enum ulp_status run(unsigned threads, struct story *story) {
    struct ulp_progress progress = {listen, story};
    struct ulp_pool *pool = NULL;
    enum ulp_status status;

    if (threads)
        assert_ok(ulp_pool_new(threads, &pool));
    calling_thread = 1;
    status = ulp_pool_run(pool, story->total, take_a_moment, story, &progress);
    calling_thread = 0;
    ulp_pool_free(pool);
    return status;
}

static void test_progress_rises_on_the_calling_thread(void **state) {
    (void)state;
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        struct story story = {.total = TASKS};

        assert_ok(run(thread_counts[i], &story));
        assert_int_equal(story.wrong, 0);
        assert_in_range(atomic_load(&story.reports), 1, TASKS);
        assert_int_equal(atomic_load(&story.ended), TASKS);
    }
}

static void test_one_thread_reports_every_task(void **state) {
    (void)state;
    for (unsigned threads = 0; threads < 2; threads++) {
        struct story story = {.total = TASKS};

        assert_ok(run(threads, &story));
        assert_int_equal(atomic_load(&story.reports), TASKS);
        assert_int_equal(story.last, TASKS);
    }
}

static void test_cancelling_stops_the_run(void **state) {
    (void)state;
    for (size_t i = 0; i < THREAD_COUNTS; i++) {
        struct story story = {.total = ENDLESS, .cancel_at = 10};

        assert_fails(run(thread_counts[i], &story), ULP_E_CANCELLED, "stopped by the caller");
        assert_int_equal(story.wrong, 0);
        assert_true(atomic_load(&story.ended) >= 10);
    }
}

static void test_cancelling_alone_stops_at_once(void **state) {
    struct story story = {.total = ENDLESS, .cancel_at = 10};

    (void)state;
    assert_fails(run(0, &story), ULP_E_CANCELLED, "stopped by the caller");
    assert_int_equal(atomic_load(&story.reports), 10);
    assert_int_equal(atomic_load(&story.ended), 10);
}

static void test_no_tasks_report_nothing(void **state) {
    struct story story = {0};
    struct ulp_progress progress = {listen, &story};

    (void)state;
    assert_ok(ulp_pool_run(NULL, 0, take_a_moment, &story, &progress));
    assert_int_equal(atomic_load(&story.reports), 0);
}

static int stop_always(void *user, uint64_t done, uint64_t total) {
    (void)user;
    (void)done;
    (void)total;
    return 1;
}

static enum ulp_status fail_first(void *user, uint64_t index) {
    (void)user;
    return index ? ULP_OK : ulp_fail(ULP_E_HOLE, "task 0 failed");
}

/* Both happen in one thread, in this order: the task's own failure says more. */
static void test_a_failed_task_outranks_cancelling(void **state) {
    struct ulp_progress progress = {stop_always, NULL};

    (void)state;
    assert_fails(ulp_pool_run(NULL, 5, fail_first, NULL, &progress), ULP_E_HOLE, "task 0 failed");
}

TEST_MAIN(test_progress_rises_on_the_calling_thread, test_one_thread_reports_every_task,
          test_cancelling_stops_the_run, test_cancelling_alone_stops_at_once,
          test_no_tasks_report_nothing, test_a_failed_task_outranks_cancelling)
