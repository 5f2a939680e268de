// SPDX-License-Identifier: Apache-2.0
/* A thread in the background runs once, is waited for, and takes no signals. */
#include "tests/test.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"

#include <signal.h>

struct work {
    struct lock lock;
    bool allowed, ended; /* guarded by it */
    sigset_t blocked;
};

static void wait_and_end(void *user) {
    struct work *work = user;

    pthread_sigmask(SIG_SETMASK, NULL, &work->blocked);
    lock_take(&work->lock);
    while (!work->allowed)
        lock_wait(&work->lock);
    lock_give(&work->lock);
    clock_sleep_ns(20000000);
    work->ended = true;
}

/* It can only end because this thread goes on meanwhile. */
static void test_runs_beside_us_and_is_waited_for(void **state) {
    struct work work = {0};
    struct thread thread = {0};

    (void)state;
    lock_make(&work.lock);
    for (int round = 0; round < 3; round++) {
        work.allowed = work.ended = false;
        assert_ok(thread_start(&thread, wait_and_end, &work));
        lock_take(&work.lock);
        work.allowed = true;
        lock_wake(&work.lock);
        lock_give(&work.lock);
        thread_join(&thread);
        assert_true(work.ended);
    }
    lock_destroy(&work.lock);
}

static void test_signals_stay_with_the_program(void **state) {
    struct work work = {.allowed = true};
    struct thread thread = {0};
    sigset_t before, after;

    (void)state;
    lock_make(&work.lock);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_ok(thread_start(&thread, wait_and_end, &work));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    thread_join(&thread);
    lock_destroy(&work.lock);
    for (int signal = SIGHUP; signal <= SIGUSR2; signal++) {
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
        if (signal != SIGKILL)
            assert_int_equal(sigismember(&work.blocked, signal), 1);
    }
}

static void test_none_is_no_matter(void **state) {
    struct thread thread = {0};
    struct work work = {.allowed = true};

    (void)state;
    thread_join(&thread);
    lock_make(&work.lock);
    assert_ok(thread_start(&thread, wait_and_end, &work));
    thread_join(&thread);
    thread_join(&thread);
    lock_destroy(&work.lock);
}

TEST_MAIN(test_runs_beside_us_and_is_waited_for, test_signals_stay_with_the_program,
          test_none_is_no_matter)
