// SPDX-License-Identifier: Apache-2.0
/* Publishers that stay: in memory and on a directory they make the same stream, and go on with it
 * after a restart. */
#include "tests/sync/live.h"

static const struct ulp_run_options often = {.anchor_every = 8};

static struct ulp_publisher *open_publisher(const struct trainer *t, const char *directory,
                                            const struct ulp_run_options *options) {
    struct ulp_publisher *publisher = NULL;

    assert_ok(ulp_publisher_open(t->store, RUN, directory ? below(t, directory).text : NULL,
                                 options, &publisher));
    return publisher;
}

static enum ulp_status publish_state(struct ulp_publisher *publisher, const struct state *state,
                                     uint64_t step, struct ulp_run_report *ret_report) {
    return ulp_publisher_publish(publisher, state->tensors, state->count, step, ret_report);
}

/* Each version is one patch for who is there, and a start for who is not. */
static void check_stream(const char *directory, bool store_in_memory) {
    struct trainer t = trainer_make(1, store_in_memory);
    struct ulp_publisher *publisher = open_publisher(&t, directory, &often);

    for (unsigned i = 0; i < 20; i++) {
        struct ulp_run_report report = live_publish(&t, publisher), own;

        assert_int_equal(report.head.history, i && (i - 1) % 8 != 0);
        assert_int_equal(report.stored_bytes,
                         i ? report.head.patch_bytes : report.head.anchor_bytes);
        own = assert_follows(&t, "each");
        assert_int_equal(own.fetched_bytes, report.stored_bytes);
        assert_ok(ulp_publisher_anchor(publisher, &report));
        assert_int_equal(report.fresh, i && i % 8 == 0);
        assert_int_equal(report.head.sequence, i + 1 + i / 8);
        tree_remove(below(&t, "fresh").text);
        assert_follows(&t, "fresh");
    }
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

static void test_in_memory(void **unused) {
    (void)unused;
    check_stream(NULL, true);
    check_stream(NULL, false);
}

static void test_on_a_directory(void **unused) {
    (void)unused;
    check_stream("state", true);
    check_stream("state", false);
}

/* Whoever goes on may keep its base in memory or on disk, anew or again. */
static void test_restarts(void **unused) {
    static const char *const places[] = {NULL, NULL, "a", NULL, "a", "b", NULL, "b"};
    struct trainer t = trainer_make(1, true);

    (void)unused;
    for (unsigned i = 0; i < 4 * COUNT(places); i++) {
        struct ulp_publisher *publisher = open_publisher(&t, places[i % COUNT(places)], &often);

        live_publish(&t, publisher);
        assert_ok(ulp_publisher_anchor(publisher, NULL));
        ulp_publisher_close(publisher);
        assert_follows(&t, "f");
    }
    trainer_free(&t);
}

/* The stream goes on where it was, with history. */
static void test_a_restart_in_memory(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = open_publisher(&t, NULL, NULL);
    struct ulp_run_report report;

    (void)unused;
    for (unsigned i = 0; i < 4; i++)
        live_publish(&t, publisher);
    ulp_publisher_close(publisher);
    publisher = open_publisher(&t, NULL, NULL);
    report = live_publish(&t, publisher);
    assert_int_equal(report.head.sequence, 5);
    assert_true(report.head.history);
    assert_int_equal(report.fetched_patches, 3);
    assert_int_equal(report.fetched_anchors, 1);
    assert_int_equal(live_publish(&t, publisher).fetched_objects, 0);
    assert_follows(&t, "f");
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

/* Of two that stay the one that was slower stops for good, and asks nothing more of the store. */
static void check_fenced(const char *directory, bool store_in_memory) {
    struct trainer t = trainer_make(1, store_in_memory);
    struct requests requests = {0};
    struct ulp_publisher *slow, *fast;
    struct ulp_run_report report;
    struct state own = state_copy(&t.state);

    count_requests(&t, &requests);
    slow = open_publisher(&t, directory, NULL);
    live_publish(&t, slow);
    fast = open_publisher(&t, NULL, NULL);
    live_publish(&t, fast);
    state_step(&own, 20);
    assert_fails(publish_state(slow, &own, 7, NULL), ULP_E_FENCED, "somebody else");
    requests_clear(&requests);
    assert_fails(publish_state(slow, &own, 7, NULL), ULP_E_FENCED, "somebody else");
    assert_fails(ulp_publisher_anchor(slow, NULL), ULP_E_FENCED, "somebody else");
    assert_int_equal(requests_total(&requests), 0);
    report = live_publish(&t, fast);
    assert_int_equal(report.head.sequence, 3);
    assert_follows(&t, "f");
    ulp_publisher_close(slow);
    slow = open_publisher(&t, directory, NULL); /* who starts again follows first */
    live_publish(&t, slow);
    assert_follows(&t, "f");
    ulp_publisher_close(slow);
    ulp_publisher_close(fast);
    state_free(&own);
    trainer_free(&t);
}

static void test_fenced(void **unused) {
    (void)unused;
    check_fenced(NULL, true);
    check_fenced("state", true);
    check_fenced(NULL, false);
}

static void check_again(const char *directory) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = open_publisher(&t, directory, NULL);
    struct requests requests = {0};
    struct ulp_run_report report = {0};

    count_requests(&t, &requests);
    live_publish(&t, publisher);
    live_publish(&t, publisher);
    for (unsigned i = 0; i < 3; i++) {
        if (i == 2) { /* also who starts again, after it was told nothing */
            ulp_publisher_close(publisher);
            publisher = open_publisher(&t, directory, NULL);
        }
        requests_clear(&requests);
        assert_ok(publish_state(publisher, &t.state, 1, &report));
        assert_false(report.fresh);
        assert_int_equal(report.head.sequence, 2);
        assert_int_equal(report.stored_objects, 0);
        assert_int_equal(requests.by_op[ULP_STORE_CREATE] + requests.by_op[ULP_STORE_PUT_BEGIN], 0);
    }
    assert_ok(
        publish_state(publisher, &t.state, 2, &report)); /* the same weights at another step */
    assert_true(report.fresh);
    assert_int_equal(report.head.sequence, 3);
    assert_int_equal(report.head.changed, 0);
    t.roots[t.count++] = root_of(&t.state);
    assert_follows(&t, "f");
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

static void test_the_same_again(void **unused) {
    (void)unused;
    check_again(NULL);
    check_again("state");
}

static void test_tensors_in_any_order(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = open_publisher(&t, NULL, NULL);

    (void)unused;
    for (unsigned i = 0; i < 4; i++) {
        state_reverse(&t.state);
        live_publish(&t, publisher);
        assert_follows(&t, "f");
    }
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

/* A state that does not fit is refused, and the publisher is as it was. */
static void check_another_layout(const char *directory) {
    static const struct form forms[] = {{"embed", "BF16", {41, 32}, 2, 0}};
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = open_publisher(&t, directory, NULL);
    struct state other = state_make(forms, 1, 0);

    live_publish(&t, publisher);
    assert_fails(publish_state(publisher, &other, 1, NULL), ULP_E_LAYOUT, "");
    assert_fails(ulp_publisher_publish(publisher, t.state.tensors, t.state.count - 1, 1, NULL),
                 ULP_E_LAYOUT, "");
    live_publish(&t, publisher);
    assert_follows(&t, "f");
    ulp_publisher_close(publisher);
    state_free(&other);
    trainer_free(&t);
}

static void test_another_layout(void **unused) {
    (void)unused;
    check_another_layout(NULL);
    check_another_layout("state");
}

/* Patches that amount to so many percent of an anchor make one due, at the next multiple of 8. */
static void test_anchors_by_bytes(void **unused) {
    static const struct ulp_run_options options = {.anchor_every = 1000, .anchor_share = 10};
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = open_publisher(&t, NULL, &options);
    struct ulp_run_report report;
    uint64_t anchor = 0, since = 0;
    unsigned made = 0;

    (void)unused;
    for (unsigned i = 0; i < 40; i++) {
        report = live_publish(&t, publisher);
        anchor = i ? anchor : report.head.anchor_bytes;
        since += report.head.patch_bytes;
        assert_ok(ulp_publisher_anchor(publisher, &report));
        assert_int_equal(report.fresh, i && i % 8 == 0 && since >= anchor / 100 * 10);
        since = report.fresh ? 0 : since;
        made += report.fresh != 0;
    }
    assert_true(made > 0);
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

static enum ulp_fault force_creation(void *user, enum ulp_store_op op, const char *key) {
    (void)user;
    (void)key;
    return op == ULP_STORE_CREATE ? ULP_FAULT_FORCE : ULP_FAULT_NONE;
}

/* A store that lets everybody create everything is refused where several may publish. */
static void test_several(void **unused) {
    static const struct ulp_run_options several = {.several = 1};
    struct trainer t = trainer_make(1, true);
    struct ulp_store *inner = NULL, *loose = NULL;
    struct ulp_publisher *publisher = open_publisher(&t, NULL, &several);

    (void)unused;
    live_publish(&t, publisher);
    ulp_publisher_close(publisher);
    publisher = NULL;
    assert_ok(ulp_store_memory(&inner));
    assert_ok(ulp_store_fault(inner, force_creation, NULL, &loose));
    assert_fails(ulp_publisher_open(loose, RUN, NULL, &several, &publisher), ULP_E_UNSUPPORTED,
                 "several publishers");
    assert_null(publisher);
    assert_ok(ulp_publisher_open(loose, RUN, NULL, NULL, &publisher));
    ulp_publisher_close(publisher);
    ulp_store_free(loose);
    trainer_free(&t);
}

static void test_arguments(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = open_publisher(&t, NULL, NULL);
    struct ulp_publisher *other = NULL;
    struct ulp_run_report report = {0};

    (void)unused;
    assert_fails(ulp_publisher_open(NULL, RUN, NULL, NULL, &other), ULP_E_USAGE, "NULL");
    assert_fails(ulp_publisher_open(t.store, RUN, NULL, NULL, NULL), ULP_E_USAGE, "NULL");
    assert_fails(publish_state(NULL, &t.state, 0, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_publisher_publish(publisher, NULL, 0, 0, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_publisher_publish_model(publisher, NULL, 0, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_publisher_anchor(NULL, NULL), ULP_E_USAGE, "NULL");
    assert_ok(ulp_publisher_anchor(publisher, &report)); /* there is no run yet */
    assert_false(report.fresh);
    ulp_publisher_close(publisher);
    ulp_publisher_close(NULL);
    trainer_free(&t);
}

TEST_MAIN(test_in_memory, test_on_a_directory, test_restarts, test_a_restart_in_memory, test_fenced,
          test_the_same_again, test_tensors_in_any_order, test_another_layout,
          test_anchors_by_bytes, test_several, test_arguments)
