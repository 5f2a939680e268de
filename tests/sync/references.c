// SPDX-License-Identifier: Apache-2.0
/* Runs that begin with a model that everybody has: it is named, not stored; and bases on disk. */
#include "sync/run_log.h"
#include "tests/sync/live.h"

static const struct ulp_run_options by_name = {.reference = "example/base-7b"};

/* What the trainer has now, on disk. */
static struct path saved(const struct trainer *t, const char *name) {
    struct path path = below(t, name);

    assert_ok(
        ulp_model_save(path.text, t->state.tensors, t->state.count, NULL, 0, t->shards, NULL));
    return path;
}

/* Versions 0 to 3, of which the first is only named; the base is at top/base, another at
 * top/other. */
static struct trainer trainer_by_name(bool from_memory) {
    struct trainer t = trainer_make(2, true);

    saved(&t, "base");
    state_reverse(&t.state); /* tensors come in any order */
    if (from_memory) {
        live_versions(&t, 4, &by_name);
    } else {
        for (unsigned i = 0; i < 4; i++)
            trainer_publish(&t, &by_name);
    }
    saved(&t, "other");
    return t;
}

static void check_right_base(bool from_memory) {
    struct trainer t = trainer_by_name(from_memory);
    struct path base = below(&t, "base");
    const struct ulp_run_options options = {.base = base.text};
    struct ulp_run_report report = {0};
    struct worker worker = worker_make(&t, &options);
    struct ulp_run_record first;

    assert_ok(ulp_run_read(t.store, RUN, 1, &first));
    assert_true(first.anchor_bytes < 100); /* the weights are not there */
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, &options, &report));
    assert_int_equal(report.fetched_anchors, 0);
    assert_int_equal(report.fetched_patches, 3);
    assert_at(&t, "f", 3);
    assert_worker_follows(&worker, &t);
    assert_holds_root(base.text, &t.roots[0]); /* it was only read */
    live_versions(&t, 2, &options);
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, NULL, &report)); /* not needed again */
    assert_at(&t, "f", 5);
    assert_worker_follows(&worker, &t);
    worker_free(&worker);
    trainer_free(&t);
}

static void test_the_right_base(void **unused) {
    (void)unused;
    check_right_base(true);
    check_right_base(false);
}

/* Memory that holds the model needs no base. */
static void test_memory_that_holds_it(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct worker worker = worker_like(&t, NULL);
    struct ulp_run_report report;

    (void)unused;
    live_versions(&t, 4, &by_name);
    report = worker_catch_up(&worker);
    assert_int_equal(report.fetched_patches, 3);
    assert_int_equal(report.fetched_anchors, 0);
    assert_worker_at(&worker, &t, 3);
    worker_free(&worker);
    trainer_free(&t);
}

static void test_the_wrong_base(void **unused) {
    struct trainer t = trainer_by_name(true);
    struct path other = below(&t, "other"), none = below(&t, "none");
    struct ulp_run_options options = {.base = other.text};
    struct worker worker = worker_make(&t, &options);

    (void)unused;
    assert_fails(ulp_follow(t.store, RUN, below(&t, "f").text, &options, NULL), ULP_E_WRONG_BASE,
                 "none of the states");
    assert_holds_nothing(&t, "f");
    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_WRONG_BASE, "none of the states");
    options.base = none.text;
    assert_fails(ulp_follow(t.store, RUN, below(&t, "f").text, &options, NULL), ULP_E_NOT_FOUND,
                 "none");
    assert_fails(follow_to(&t, "f"), ULP_E_UNREACHABLE, "");
    assert_holds_nothing(&t, "f");
    options.base = below(&t, "base").text;
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, &options, NULL));
    assert_at(&t, "f", 3);
    worker_free(&worker);
    trainer_free(&t);
}

/* The root fits, and the contents are said to be others: for models on disk and in memory. */
static void test_another_content(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct path base = saved(&t, "base");
    const struct ulp_run_options options = {.base = base.text};
    struct worker worker = worker_like(&t, NULL);
    struct log_entry entry = {0};
    struct buffer bytes = BUFFER(1 << 20);
    char key[ULP_KEY_BYTES_MAX + 1];

    (void)unused;
    live_versions(&t, 1, &by_name);
    assert_ok(log_read(t.store, RUN, 1, &entry));
    ((struct anchor *)(uintptr_t)entry.record.anchors)->content.bytes[7] ^= 1;
    assert_ok(record_write(&entry.record, NULL, &bytes));
    record_key(RUN, 1, key);
    assert_ok(ulp_store_put(t.store, key, bytes.data, bytes.used));
    assert_fails(ulp_follow(t.store, RUN, below(&t, "f").text, &options, NULL), ULP_E_WRONG_BASE,
                 "example/base-7b");
    assert_holds_nothing(&t, "f");
    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_WRONG_BASE, "example/base-7b");
    buffer_release(&bytes);
    log_entry_release(&entry);
    worker_free(&worker);
    trainer_free(&t);
}

/* A base also saves the anchor of a run that has its weights. */
static void test_a_base_instead_of_an_anchor(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct path base = saved(&t, "base");
    const struct ulp_run_options options = {.base = base.text};
    struct ulp_run_report report = {0};

    (void)unused;
    live_versions(&t, 3, NULL);
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, &options, &report));
    assert_int_equal(report.anchor_bytes, 0);
    assert_int_equal(report.fetched_patches, 2);
    assert_at(&t, "f", 2);
    trainer_free(&t);
}

/* The first anchor with weights makes it possible to start without the base. */
static void test_an_anchor_later(void **unused) {
    static const struct ulp_run_options options = {.reference = "example/base-7b",
                                                   .anchor_every = 8};
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;

    (void)unused;
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &options, &publisher));
    for (unsigned i = 0; i < 10; i++) {
        if (i && i < 9)
            assert_fails(follow_to(&t, "f"), ULP_E_UNREACHABLE, "");
        live_publish(&t, publisher);
        assert_ok(ulp_publisher_anchor(publisher, NULL));
    }
    assert_follows(&t, "f");
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

/* A publisher that starts again with nothing needs the base, like everybody else. */
static void test_a_publisher_that_starts_again(void **unused) {
    struct trainer t = trainer_by_name(true);
    struct path base = below(&t, "base"), other = below(&t, "other");
    struct ulp_run_options options = {.base = base.text};
    struct ulp_publisher *publisher = NULL;

    (void)unused;
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, NULL, &publisher));
    assert_fails(ulp_publisher_publish(publisher, t.state.tensors, t.state.count, 9, NULL),
                 ULP_E_UNREACHABLE, "");
    ulp_publisher_close(publisher);
    live_versions(&t, 1, &options);
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, &options, NULL));
    assert_at(&t, "f", 4);
    options.base = other.text;
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &options, &publisher));
    assert_fails(ulp_publisher_publish(publisher, t.state.tensors, t.state.count, 9, NULL),
                 ULP_E_WRONG_BASE, "none of the states");
    ulp_publisher_close(publisher);
    trainer_free(&t);
}

TEST_MAIN(test_the_right_base, test_memory_that_holds_it, test_the_wrong_base, test_another_content,
          test_a_base_instead_of_an_anchor, test_an_anchor_later,
          test_a_publisher_that_starts_again)
