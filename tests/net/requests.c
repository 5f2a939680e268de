// SPDX-License-Identifier: Apache-2.0
/*
 * A publisher and a follower over the store ULPSYNC_TEST_URL; test_requests.py counts what they ask
 * of it. Between two phases an object `mark/N` is looked for.
 */
#include "tests/sync/live.h"

static struct ulp_store *store;
static unsigned marks;

static void mark(void) {
    char key[32];
    uint64_t bytes = 0;

    snprintf(key, sizeof key, "mark/%u", ++marks);
    assert_fails(ulp_store_stat(store, key, &bytes), ULP_E_NOT_FOUND, key);
}

static void test_phases(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;
    struct worker worker;

    (void)unused;
    ulp_store_free(t.store);
    assert_ok(ulp_store_open(getenv("ULPSYNC_TEST_URL"), &store));
    t.store = store;
    assert_ok(ulp_publisher_open(store, RUN, NULL, NULL, &publisher));
    live_publish(&t, publisher);
    mark();
    live_publish(&t, publisher); /* 1 to 2: a step */
    mark();
    live_publish(&t, publisher); /* 2 to 3: a step */
    mark();
    worker = worker_make(&t, NULL);
    assert_worker_follows(&worker, &t);
    mark();
    assert_ok(ulp_follower_poll(worker.follower, NULL)); /* 4 to 5: nothing new */
    mark();
    assert_ok(ulp_follower_poll(worker.follower, NULL)); /* 5 to 6: nothing new */
    mark();
    live_publish(&t, publisher);
    mark();
    assert_ok(ulp_follower_poll(worker.follower, NULL)); /* 7 to 8: one step to take */
    assert_ok(ulp_follower_apply(worker.follower, NULL));
    mark();
    worker_free(&worker);
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

TEST_MAIN(test_phases)
