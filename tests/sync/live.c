// SPDX-License-Identifier: Apache-2.0
#include "tests/sync/live.h"

struct ulp_run_report live_publish(struct trainer *trainer, struct ulp_publisher *publisher) {
    struct ulp_run_report report = {0};

    assert_true(trainer->count < TRAINER_STEPS_MAX);
    if (trainer->count)
        state_step(&trainer->state, 30);
    trainer->roots[trainer->count++] = root_of(&trainer->state);
    assert_ok(ulp_publisher_publish(publisher, trainer->state.tensors, trainer->state.count,
                                    trainer->count - 1, &report));
    assert_int_equal(report.head.version, trainer->count - 1);
    assert_int_equal(report.version, trainer->count - 1);
    assert_same_root(&report.head.root, &trainer->roots[trainer->count - 1]);
    assert_true(report.fresh);
    return report;
}

void live_versions(struct trainer *trainer, unsigned count, const struct ulp_run_options *options) {
    struct ulp_publisher *publisher = NULL;

    assert_ok(ulp_publisher_open(trainer->store, RUN, NULL, options, &publisher));
    for (unsigned i = 0; i < count; i++)
        live_publish(trainer, publisher);
    ulp_publisher_close(publisher);
}

void live_anchor(struct trainer *trainer, const struct ulp_run_options *options) {
    struct ulp_publisher *publisher = NULL;
    struct ulp_run_report report = {0};

    assert_ok(ulp_publisher_open(trainer->store, RUN, NULL, options, &publisher));
    assert_ok(ulp_publisher_anchor(publisher, &report));
    assert_true(report.fresh && report.head.anchor_bytes > 0);
    ulp_publisher_close(publisher);
}

/* ---- workers ---- */

struct worker worker_like(const struct trainer *trainer, const struct ulp_run_options *options) {
    struct worker worker = {.state = state_copy(&trainer->state)};

    assert_ok(ulp_follower_open_memory(trainer->store, RUN, worker.state.tensors,
                                       worker.state.count, options, &worker.follower));
    return worker;
}

struct worker worker_make(const struct trainer *trainer, const struct ulp_run_options *options) {
    struct worker worker = worker_like(trainer, options);

    memset(worker.state.data, 0x5a, worker.state.bytes);
    return worker;
}

void worker_free(struct worker *worker) {
    ulp_follower_close(worker->follower);
    state_free(&worker->state);
}

static void add(struct ulp_run_report *sum, const struct ulp_run_report *one) {
    struct ulp_run_report all = *one;

    all.fresh |= sum->fresh;
    all.fetched_bytes += sum->fetched_bytes;
    all.patch_bytes += sum->patch_bytes;
    all.anchor_bytes += sum->anchor_bytes;
    all.fetched_patches += sum->fetched_patches;
    all.fetched_anchors += sum->fetched_anchors;
    all.fetched_records += sum->fetched_records;
    all.fetched_objects += sum->fetched_objects;
    *sum = all;
}

struct ulp_run_report worker_catch_up(struct worker *worker) {
    struct ulp_run_report sum = {0}, one = {0};

    assert_ok(ulp_follower_poll(worker->follower, &one));
    add(&sum, &one);
    while (one.ready) {
        assert_ok(ulp_follower_apply(worker->follower, &one));
        assert_true(one.fresh);
        add(&sum, &one);
        assert_ok(ulp_follower_poll(worker->follower, &one));
        add(&sum, &one);
    }
    return sum;
}

void assert_worker_at(const struct worker *worker, const struct trainer *trainer,
                      unsigned version) {
    struct ulp_root root = root_of(&worker->state);

    assert_same_root(&root, &trainer->roots[version]);
}

void assert_worker_follows(struct worker *worker, const struct trainer *trainer) {
    struct ulp_run_report report = worker_catch_up(worker);

    assert_int_equal(report.version, trainer->count - 1);
    assert_worker_at(worker, trainer, trainer->count - 1);
}

/* ---- requests ---- */

static void heard(void *user, const struct ulp_store_event *event) {
    struct requests *requests = user;

    requests->by_op[event->op]++;
}

void count_requests(struct trainer *trainer, struct requests *requests) {
    struct ulp_store *counted = NULL;

    assert_ok(ulp_store_trace(trainer->store, heard, requests, &counted));
    trainer->store = counted;
}

unsigned requests_total(const struct requests *requests) {
    unsigned total = 0;

    for (size_t i = 0; i < COUNT(requests->by_op); i++)
        total += requests->by_op[i];
    return total;
}

void requests_clear(struct requests *requests) {
    for (size_t i = 0; i < COUNT(requests->by_op); i++)
        requests->by_op[i] = 0;
}
