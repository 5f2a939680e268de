// SPDX-License-Identifier: Apache-2.0
/* How often a store is asked: on the way of a step nothing that could be left out. */
#include "tests/sync/live.h"

static void assert_requests(const struct requests *requests, unsigned reads, unsigned stats,
                            unsigned creates, unsigned puts) {
    assert_int_equal(requests->by_op[ULP_STORE_READ], reads);
    assert_int_equal(requests->by_op[ULP_STORE_STAT], stats);
    assert_int_equal(requests->by_op[ULP_STORE_CREATE], creates);
    assert_int_equal(requests->by_op[ULP_STORE_PUT_BEGIN], puts);
    assert_int_equal(requests->by_op[ULP_STORE_PUT_END], puts);
    assert_int_equal(requests->by_op[ULP_STORE_LIST] + requests->by_op[ULP_STORE_REMOVE], 0);
}

/* One part and one record. */
static void check_publish(const char *directory, bool store_in_memory) {
    struct trainer t = trainer_make(1, store_in_memory);
    struct requests requests = {0};
    struct ulp_publisher *publisher = NULL;

    count_requests(&t, &requests);
    assert_ok(ulp_publisher_open(t.store, RUN, directory ? below(&t, directory).text : NULL, NULL,
                                 &publisher));
    for (unsigned i = 0; i < 12; i++) {
        live_publish(&t, publisher);
        if (i)
            assert_requests(&requests, 0, 0, 1, 1);
        requests_clear(&requests);
    }
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

static void test_publish(void **unused) {
    (void)unused;
    check_publish(NULL, true);
    check_publish("state", true);
    check_publish(NULL, false);
}

/* One read that finds nothing when there is nothing; else the record, a look behind it, and the
 * patch. */
static void check_poll(bool store_in_memory) {
    struct trainer t = trainer_make(1, store_in_memory);
    struct requests requests = {0};
    struct worker worker;
    struct ulp_follower *follower = NULL;

    count_requests(&t, &requests);
    live_versions(&t, 1, NULL);
    worker = worker_make(&t, NULL);
    assert_worker_follows(&worker, &t);
    assert_ok(ulp_follower_open(t.store, RUN, below(&t, "f").text, NULL, &follower));
    assert_ok(ulp_follower_poll(follower, NULL));
    assert_ok(ulp_follower_apply(follower, NULL));
    for (unsigned i = 0; i < 12; i++) {
        requests_clear(&requests);
        assert_ok(ulp_follower_poll(worker.follower, NULL));
        assert_requests(&requests, 1, 0, 0, 0);
        assert_ok(ulp_follower_poll(follower, NULL));
        assert_requests(&requests, 2, 0, 0, 0);
        live_versions(&t, 1, NULL);
        requests_clear(&requests);
        assert_ok(ulp_follower_poll(worker.follower, NULL));
        assert_requests(&requests, 2, 1, 0, 0);
        assert_ok(ulp_follower_apply(worker.follower, NULL));
        assert_ok(ulp_follower_poll(follower, NULL));
        assert_requests(&requests, 4, 2, 0, 0);
        assert_ok(ulp_follower_apply(follower, NULL));
        assert_requests(&requests, 4, 2, 0, 0);
        assert_worker_at(&worker, &t, i + 1);
    }
    assert_at(&t, "f", 12);
    ulp_follower_close(follower);
    worker_free(&worker);
    trainer_free(&t);
}

static void test_poll(void **unused) {
    (void)unused;
    check_poll(true);
    check_poll(false);
}

/* Whoever comes to a long log reads a few of its records only: about 2 log2 of their number. */
static void test_entering(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct worker worker;
    struct ulp_run_report report = {0};

    (void)unused;
    live_versions(&t, 60, NULL);
    worker = worker_make(&t, NULL);
    assert_ok(ulp_follower_poll(worker.follower, &report));
    assert_in_range(report.fetched_records, 2, 12);
    worker_free(&worker);
    trainer_free(&t);
}

TEST_MAIN(test_publish, test_poll, test_entering)
