// SPDX-License-Identifier: Apache-2.0
/* Following into memory: nothing changes there before it is applied, and then all of it (I1, I2). */
#include "sync/run_log.h"
#include "tests/sync/live.h"

static void check_stream(bool store_in_memory) {
    struct trainer t = trainer_make(1, store_in_memory);
    struct ulp_publisher *publisher = NULL;
    struct worker worker = worker_make(&t, NULL);

    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_NO_RUN, RUN);
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, NULL, &publisher));
    for (unsigned i = 0; i < 20; i++) {
        live_publish(&t, publisher);
        assert_worker_follows(&worker, &t);
    }
    ulp_publisher_close(publisher);
    worker_free(&worker);
    trainer_free(&t);
}

static void test_a_stream(void **unused) {
    (void)unused;
    check_stream(true);
    check_stream(false);
}

/* However often it polls, and whatever is published meanwhile. */
static void test_nothing_before_apply(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct worker worker;
    struct ulp_run_report report = {0};

    (void)unused;
    live_versions(&t, 1, NULL);
    worker = worker_make(&t, NULL);
    assert_worker_follows(&worker, &t);
    assert_fails(ulp_follower_apply(worker.follower, NULL), ULP_E_USAGE, "nothing to apply");
    for (unsigned i = 1; i < 10; i++) {
        live_versions(&t, 1, NULL);
        for (unsigned k = 0; k < 3; k++) {
            assert_ok(ulp_follower_poll(worker.follower, &report));
            assert_true(report.ready);
            assert_int_equal(report.version, i - 1);
            assert_worker_at(&worker, &t, i - 1);
        }
        assert_ok(ulp_follower_apply(worker.follower, &report));
        assert_int_equal(report.version, i);
        assert_false(report.ready);
        assert_worker_at(&worker, &t, i);
        assert_fails(ulp_follower_apply(worker.follower, NULL), ULP_E_USAGE, "nothing to apply");
    }
    worker_free(&worker);
    trainer_free(&t);
}

/* One patch at a time, and it is known how many are left. */
static void check_behind(uint64_t ahead_bytes) {
    const struct ulp_run_options options = {.ahead_bytes = ahead_bytes};
    struct trainer t = trainer_make(1, true);
    struct worker worker;
    struct ulp_run_report report = {0};

    live_versions(&t, 1, NULL);
    worker = worker_make(&t, &options);
    assert_worker_follows(&worker, &t);
    live_versions(&t, 7, NULL);
    for (unsigned version = 1; version <= 7; version++) {
        assert_ok(ulp_follower_poll(worker.follower, &report));
        assert_true(report.ready);
        assert_int_equal(report.apply_left, 7 - version);
        assert_worker_at(&worker, &t, version - 1);
        assert_ok(ulp_follower_apply(worker.follower, &report));
        assert_int_equal(report.version, version);
        assert_int_equal(report.apply_left, 7 - version);
        assert_worker_at(&worker, &t, version);
    }
    assert_ok(ulp_follower_poll(worker.follower, &report));
    assert_false(report.ready);
    worker_free(&worker);
    trainer_free(&t);
}

static void test_several_behind(void **unused) {
    (void)unused;
    check_behind(0);
    check_behind(1);
}

/* Closed while patches that were fetched ahead wait. */
static void test_closed_on_the_way(void **unused) {
    static const struct ulp_run_options little = {.ahead_bytes = 1};
    struct trainer t = trainer_make(1, false);
    struct worker worker;

    (void)unused;
    live_versions(&t, 12, NULL);
    for (unsigned i = 0; i < 8; i++) {
        worker = worker_make(&t, i % 2 ? &little : NULL);
        for (unsigned k = 0; k < i; k++) {
            assert_ok(ulp_follower_poll(worker.follower, NULL));
            if (k % 2)
                assert_ok(ulp_follower_apply(worker.follower, NULL));
        }
        worker_free(&worker);
    }
    trainer_free(&t);
}

/* ---- what the memory holds already ---- */

/* The first version, which has an anchor. */
static void test_memory_of_an_anchor(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct worker worker;
    struct ulp_run_report report;

    (void)unused;
    live_versions(&t, 1, NULL);
    worker = worker_like(&t, NULL);
    live_versions(&t, 5, NULL);
    report = worker_catch_up(&worker);
    assert_int_equal(report.fetched_anchors, 0);
    assert_int_equal(report.anchor_bytes, 0);
    assert_int_equal(report.fetched_patches, 5);
    assert_worker_at(&worker, &t, 5);
    worker_free(&worker);
    trainer_free(&t);
}

/* The newest one: nothing is fetched where history begins anew; elsewhere nobody could go on from
 * it without knowing the one before, so an anchor is. */
static void test_memory_of_the_newest(void **unused) {
    struct trainer t = trainer_make(1, true);

    (void)unused;
    for (unsigned i = 0; i < 18; i++) {
        struct worker worker;
        struct ulp_run_report report;

        live_versions(&t, 1, NULL);
        worker = worker_like(&t, NULL);
        report = worker_catch_up(&worker);
        assert_int_equal(report.fetched_bytes == 0, i % 8 == 0);
        assert_worker_at(&worker, &t, i);
        live_versions(&t, 1, NULL);
        report = worker_catch_up(&worker);
        assert_int_equal(report.fetched_patches, 1);
        assert_int_equal(report.fetched_anchors, 0);
        assert_worker_at(&worker, &t, ++i);
        worker_free(&worker);
    }
    trainer_free(&t);
}

static enum ulp_status poll_with(const struct trainer *t, const struct state *state, size_t count) {
    struct ulp_follower *follower = NULL;
    enum ulp_status status;

    assert_ok(ulp_follower_open_memory(t->store, RUN, state->tensors, count, NULL, &follower));
    status = ulp_follower_poll(follower, NULL);
    ulp_follower_close(follower);
    return status;
}

static void test_wrong_tensors(void **unused) {
    static const struct form more[] = {{"embed", "BF16", {40, 32}, 2, 0},
                                       {"extra", "BF16", {3}, 1, 0},
                                       {"layer.0", "BF16", {900}, 1, 0},
                                       {"norm", "F32", {301}, 1, 0},
                                       {"step", "I64", {0}, 0, 0}},
                             turned[] = {{"embed", "BF16", {32, 40}, 2, 0},
                                         {"layer.0", "BF16", {900}, 1, 0},
                                         {"norm", "F32", {301}, 1, 0},
                                         {"step", "I64", {0}, 0, 0}};
    struct state extra = state_make(more, COUNT(more), 0);
    struct state other = state_make(turned, COUNT(turned), 0);
    struct trainer t = trainer_make(1, true);

    (void)unused;
    live_versions(&t, 3, NULL);
    assert_fails(poll_with(&t, &extra, extra.count), ULP_E_LAYOUT, "memory has 5 tensors");
    assert_fails(poll_with(&t, &other, other.count), ULP_E_LAYOUT, "embed");
    assert_fails(poll_with(&t, &t.state, t.state.count - 1), ULP_E_LAYOUT, "step");
    state_free(&extra);
    state_free(&other);
    trainer_free(&t);
}

/* ---- an anchor that is newer than what is held ---- */

static const struct ulp_run_options only_one = {.anchor_every = 8, .keep_anchors = 1};

/* A worker at version 2 of a run whose map begins at 8. */
static struct worker worker_left_behind(struct trainer *t, bool store_in_memory) {
    struct worker worker;

    *t = trainer_make(1, store_in_memory);
    live_versions(t, 3, NULL);
    worker = worker_make(t, NULL);
    assert_worker_follows(&worker, t);
    live_versions(t, 6, NULL);
    live_anchor(t, &only_one);
    live_versions(t, 2, NULL);
    return worker;
}

static void check_newer_anchor(bool store_in_memory) {
    struct trainer t;
    struct worker worker = worker_left_behind(&t, store_in_memory);
    struct ulp_run_report report = {0};

    assert_ok(ulp_follower_poll(worker.follower, &report));
    assert_true(report.ready);
    assert_int_equal(report.fetched_anchors, 1);
    assert_int_equal(report.apply_left, 2);
    assert_worker_at(&worker, &t, 2);
    assert_ok(ulp_follower_apply(worker.follower, &report));
    assert_int_equal(report.version, 8);
    assert_worker_at(&worker, &t, 8);
    assert_worker_follows(&worker, &t);
    live_versions(&t, 3, NULL);
    assert_worker_follows(&worker, &t);
    worker_free(&worker);
    trainer_free(&t);
}

static void test_a_newer_anchor(void **unused) {
    (void)unused;
    check_newer_anchor(true);
    check_newer_anchor(false);
}

/* It cannot be had: what is held stays, and can be gone on from. */
static void test_a_newer_anchor_that_is_missing(void **unused) {
    struct trainer t;
    struct worker worker = worker_left_behind(&t, true);
    struct objects whole = objects_of(t.store);
    struct log_entry head = {0};
    struct part part;
    char key[ULP_KEY_BYTES_MAX + 1];

    (void)unused;
    assert_ok(log_read(t.store, RUN, t.count + 1, &head));
    assert_int_equal(head.record.anchors[0].file_count, 1);
    part = head.record.anchors[0].files[0].part;
    part_key(RUN, &part, key);
    for (unsigned i = 0; i < 2; i++) {
        if (i)
            assert_ok(ulp_store_put(t.store, key, "something else", 14));
        else
            assert_ok(ulp_store_remove(t.store, key));
        for (unsigned k = 0; k < 2; k++) {
            assert_fails(ulp_follower_poll(worker.follower, NULL),
                         i ? ULP_E_PART : ULP_E_PART_MISSING, key);
            assert_fails(ulp_follower_apply(worker.follower, NULL), ULP_E_USAGE, "");
            assert_worker_at(&worker, &t, 2);
        }
    }
    objects_restore(t.store, &whole);
    assert_worker_follows(&worker, &t);
    objects_free(&whole);
    log_entry_release(&head);
    worker_free(&worker);
    trainer_free(&t);
}

/* ---- versions of the past ---- */

static void check_stop(struct trainer *t, unsigned version) {
    const struct ulp_run_options options = {.stop_at_version = 1, .version = version};
    struct worker worker = worker_make(t, &options);
    struct ulp_run_report report = worker_catch_up(&worker);
    struct path directory = below(t, "past");

    assert_int_equal(report.version, version);
    assert_int_equal(report.head.version, t->count - 1);
    assert_worker_at(&worker, t, version);
    assert_ok(ulp_follower_poll(worker.follower, &report));
    assert_false(report.ready);
    worker_free(&worker);
    tree_remove(directory.text);
    assert_ok(ulp_follow(t->store, RUN, directory.text, &options, &report));
    assert_int_equal(report.version, version);
    assert_at(t, "past", version);
}

static void test_stopping_at_a_version(void **unused) {
    const struct ulp_run_options beyond = {.stop_at_version = 1, .version = 18};
    struct trainer t = trainer_make(1, true);
    struct worker worker;

    (void)unused;
    live_versions(&t, 9, NULL);
    live_anchor(&t, &(struct ulp_run_options){.anchor_every = 8});
    live_versions(&t, 9, NULL);
    for (unsigned version = 0; version < t.count; version++)
        check_stop(&t, version);
    worker = worker_make(&t, &beyond);
    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_USAGE, "there is no version 18");
    live_versions(&t, 3, NULL);
    assert_int_equal(worker_catch_up(&worker).version, 18);
    assert_worker_at(&worker, &t, 18);
    worker_free(&worker);
    trainer_free(&t);
}

/* Steps may come twice: the newest record counts, and only what can still be had. */
static void test_finding_a_step(void **unused) {
    static const uint64_t steps[] = {5, 6, 7, 6, 8, 9, 10, 11, 12, 13};
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;
    uint64_t version = 99;

    (void)unused;
    assert_fails(ulp_run_find_step(t.store, RUN, 5, NULL, &version), ULP_E_NO_RUN, RUN);
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &only_one, &publisher));
    for (unsigned i = 0; i < COUNT(steps); i++) {
        state_step(&t.state, 10);
        assert_ok(ulp_publisher_publish(publisher, t.state.tensors, t.state.count, steps[i], NULL));
        assert_ok(ulp_run_find_step(t.store, RUN, steps[i], NULL, &version));
        assert_int_equal(version, i);
        if (i == 5) {
            assert_ok(ulp_run_find_step(t.store, RUN, 6, NULL, &version));
            assert_int_equal(version, 3);
            assert_ok(ulp_run_find_step(t.store, RUN, 5, NULL, &version));
            assert_int_equal(version, 0);
            assert_fails(ulp_run_find_step(t.store, RUN, 4, NULL, &version), ULP_E_UNREACHABLE,
                         "step 4");
        }
        assert_ok(ulp_publisher_anchor(publisher, NULL));
    }
    assert_ok(
        ulp_run_find_step(t.store, RUN, 12, NULL, &version)); /* version 8 has the only anchor */
    assert_int_equal(version, 8);
    assert_fails(ulp_run_find_step(t.store, RUN, 11, NULL, &version), ULP_E_UNREACHABLE, "step 11");
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

static void test_arguments(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_follower *follower = NULL;

    (void)unused;
    assert_fails(ulp_follower_open_memory(t.store, RUN, NULL, 0, NULL, &follower), ULP_E_USAGE,
                 "NULL");
    assert_fails(ulp_follower_open(t.store, RUN, NULL, NULL, &follower), ULP_E_USAGE, "NULL");
    assert_fails(ulp_follower_poll(NULL, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_follower_apply(NULL, NULL), ULP_E_USAGE, "NULL");
    ulp_follower_close(NULL);
    trainer_free(&t);
}

TEST_MAIN(test_a_stream, test_nothing_before_apply, test_several_behind, test_closed_on_the_way,
          test_memory_of_an_anchor, test_memory_of_the_newest, test_wrong_tensors,
          test_a_newer_anchor, test_a_newer_anchor_that_is_missing, test_stopping_at_a_version,
          test_finding_a_step, test_arguments)
