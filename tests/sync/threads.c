// SPDX-License-Identifier: Apache-2.0
/* One publisher and two workers as threads, on one store in memory: each object belongs to one of
 * them, the store to all. */
#include "base/clock.h"
#include "base/thread.h"
#include "tests/sync/live.h"

#define VERSIONS 40u

/* What a thread does; nothing is asserted before it has ended. */
struct part_of {
    struct trainer *trainer;
    struct worker worker;
    enum ulp_status status;
    unsigned shown, wrong;
};

static void publish_all(void *user) {
    struct part_of *p = user;
    struct trainer *t = p->trainer;
    const struct ulp_run_options options = {.anchor_every = 8, .keep_anchors = 1};
    struct ulp_publisher *publisher = NULL;

    p->status = ulp_publisher_open(t->store, RUN, NULL, &options, &publisher);
    for (unsigned i = 0; !p->status && i < VERSIONS; i++) {
        state_step(&t->state, 30);
        p->status = ulp_publisher_publish(publisher, t->state.tensors, t->state.count, i, NULL);
        if (!p->status)
            p->status = ulp_publisher_anchor(publisher, NULL);
    }
    ulp_publisher_close(publisher);
}

static void follow_all(void *user) {
    struct part_of *p = user;
    struct ulp_run_report report = {0};

    while (!p->status && report.version != VERSIONS - 1) {
        p->status = ulp_follower_poll(p->worker.follower, &report);
        if (p->status == ULP_E_NO_RUN)
            p->status = ULP_OK;
        else if (!p->status && report.ready)
            p->status = ulp_follower_apply(p->worker.follower, &report);
        else
            clock_sleep_ns(100000);
        if (!p->status && report.fresh && report.version == report.head.version) {
            struct ulp_root root = root_of(&p->worker.state);

            p->wrong += memcmp(&root, &report.head.root, sizeof root) != 0;
            p->shown++;
        }
    }
}

static void test_two_workers(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct part_of publisher = {.trainer = &t}, workers[2] = {{0}};
    struct thread threads[3] = {{0}};
    struct ulp_root newest;

    (void)unused;
    for (unsigned i = 0; i < 2; i++)
        workers[i].worker = worker_make(&t, NULL);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(thread_start(&threads[i], follow_all, &workers[i]));
    assert_ok(thread_start(&threads[2], publish_all, &publisher));
    for (unsigned i = 0; i < 3; i++)
        thread_join(&threads[i]);
    assert_int_equal(publisher.status, ULP_OK);
    newest = root_of(&t.state);
    for (unsigned i = 0; i < 2; i++) {
        struct ulp_root root = root_of(&workers[i].worker.state);

        assert_int_equal(workers[i].status, ULP_OK);
        assert_int_equal(workers[i].wrong, 0);
        assert_true(workers[i].shown > 0);
        assert_same_root(&root, &newest);
        worker_free(&workers[i].worker);
    }
    trainer_free(&t);
}

TEST_MAIN(test_two_workers)
