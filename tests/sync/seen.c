// SPDX-License-Identifier: Apache-2.0
/* What a follower in memory has seen outlasts it, if somebody keeps it (I4); and how old the newest
 * record may be. */
#include "base/clock.h"
#include "tests/sync/live.h"

struct keeper {
    uint8_t record[1 << 16];
    size_t bytes;
    unsigned calls;
    enum ulp_status answer;
    const struct worker *worker;
    const struct trainer *trainer;
    unsigned held; /* the version that the worker must hold when it is called */
};

static enum ulp_status keep(void *user, const void *record, size_t bytes) {
    struct keeper *keeper = user;

    keeper->calls++;
    if (keeper->answer)
        return ulp_fail(keeper->answer, "it cannot be kept");
    if (keeper->worker)
        assert_worker_at(keeper->worker, keeper->trainer, keeper->held);
    assert_true(bytes <= sizeof keeper->record);
    memcpy(keeper->record, record, bytes);
    keeper->bytes = bytes;
    return ULP_OK;
}

static struct ulp_run_options with(struct keeper *keeper) {
    return (struct ulp_run_options){.keep_seen = keep,
                                    .keep_user = keeper,
                                    .seen = keeper->bytes ? keeper->record : NULL,
                                    .seen_bytes = keeper->bytes};
}

/* Called for each new record, before anything of it is used, and not when there is none. */
static void test_kept_before_it_is_used(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keeper keeper = {.trainer = &t};
    struct ulp_run_options options = with(&keeper);
    struct worker worker;

    (void)unused;
    live_versions(&t, 1, NULL);
    worker = worker_make(&t, &options);
    assert_worker_follows(&worker, &t);
    assert_int_equal(keeper.calls, 1);
    keeper.worker = &worker;
    for (unsigned i = 1; i < 5; i++) {
        live_versions(&t, 1, NULL);
        keeper.held = i - 1;
        assert_worker_follows(&worker, &t);
        assert_int_equal(keeper.calls, i + 1);
    }
    worker_free(&worker);
    trainer_free(&t);
}

/* A record that could not be kept is not used, and is tried again. */
static void test_it_cannot_be_kept(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keeper keeper = {0};
    struct ulp_run_options options = with(&keeper);
    struct worker worker;

    (void)unused;
    live_versions(&t, 1, NULL);
    worker = worker_make(&t, &options);
    assert_worker_follows(&worker, &t);
    live_versions(&t, 1, NULL);
    keeper.answer = ULP_E_NO_SPACE;
    for (unsigned i = 0; i < 3; i++) {
        assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_NO_SPACE, "cannot be kept");
        assert_fails(ulp_follower_apply(worker.follower, NULL), ULP_E_USAGE, "");
        assert_worker_at(&worker, &t, 0);
    }
    keeper.answer = ULP_OK;
    assert_worker_follows(&worker, &t);
    assert_int_equal(keeper.calls, 1 + 3 + 1);
    worker_free(&worker);
    trainer_free(&t);
}

/* The store was put back: who has seen more notices, who has not cannot. */
static void test_seen_again(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keeper keeper = {0};
    struct ulp_run_options options = with(&keeper);
    struct worker worker;
    struct objects old, whole;

    (void)unused;
    live_versions(&t, 2, NULL);
    old = objects_of(t.store);
    live_versions(&t, 2, NULL);
    whole = objects_of(t.store);
    worker = worker_make(&t, &options);
    assert_worker_follows(&worker, &t);
    worker_free(&worker);
    objects_restore(t.store, &old);
    options = with(&keeper);
    worker = worker_make(&t, &options);
    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_ROLLBACK, "4 records");
    objects_restore(t.store, &whole);
    assert_worker_follows(&worker, &t);
    worker_free(&worker);
    objects_restore(t.store, &old);
    worker = worker_make(&t, NULL);
    assert_int_equal(worker_catch_up(&worker).version, 1);
    worker_free(&worker);
    objects_free(&old);
    objects_free(&whole);
    trainer_free(&t);
}

static void test_seen_that_is_damaged(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keeper keeper = {0};
    struct ulp_run_options options = with(&keeper);
    struct worker worker;
    struct ulp_follower *follower = NULL;

    (void)unused;
    live_versions(&t, 1, NULL);
    worker = worker_make(&t, &options);
    assert_worker_follows(&worker, &t);
    options = with(&keeper);
    keeper.record[40] ^= 1;
    assert_fails(ulp_follower_open_memory(t.store, RUN, worker.state.tensors, worker.state.count,
                                          &options, &follower),
                 ULP_E_CHECKSUM, "damaged");
    worker_free(&worker);
    trainer_free(&t);
}

/* ---- age ---- */

static uint64_t wall_ms;

static uint64_t no_time(void *user) {
    (void)user;
    return 0;
}

static uint64_t wall(void *user) {
    (void)user;
    return wall_ms * 1000000;
}

static void no_sleep(void *user, uint64_t duration_ns) {
    (void)user;
    (void)duration_ns;
}

static void test_age(void **unused) {
    static const struct clock_hooks hooks = {no_time, wall, no_sleep, NULL};
    static const struct ulp_run_options young = {.max_age_ms = 60000};
    struct trainer t = trainer_make(1, true);
    struct worker worker;
    struct path directory = below(&t, "f");

    (void)unused;
    wall_ms = 1700000000000;
    clock_install(&hooks);
    live_versions(&t, 2, NULL);
    worker = worker_make(&t, &young);
    wall_ms += 60000;
    assert_worker_follows(&worker, &t);
    wall_ms++;
    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_FROZEN, "60 seconds old");
    assert_fails(ulp_follow(t.store, RUN, directory.text, &young, NULL), ULP_E_FROZEN, "");
    assert_holds_nothing(&t, "f");
    assert_worker_at(&worker, &t, 1);
    live_versions(&t, 1, NULL);
    assert_worker_follows(&worker, &t);
    wall_ms -= 3600000; /* a clock that is behind is no reason */
    assert_ok(ulp_follow(t.store, RUN, directory.text, &young, NULL));
    clock_install(NULL);
    assert_at(&t, "f", 2);
    worker_free(&worker);
    trainer_free(&t);
}

TEST_MAIN(test_kept_before_it_is_used, test_it_cannot_be_kept, test_seen_again,
          test_seen_that_is_damaged, test_age)
