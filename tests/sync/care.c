// SPDX-License-Identifier: Apache-2.0
/* Care of a run: long ways for who lags, and parts that are deleted without harm (I6). */
#include "base/clock.h"
#include "sync/run_log.h"
#include "tests/sync/career.h"

static struct ulp_run_report tend(const struct career *c) {
    struct ulp_run_report report = {0};

    assert_ok(ulp_run_tend(c->store, "rl", path_of(c->top, "tender").text, NULL, &report));
    return report;
}

static struct ulp_run_report follow(const struct career *c, const char *name) {
    return career_follow(c, c->store, name);
}

/* ---- long ways ---- */

/* From wherever one is 100 versions behind. */
static void check_lag(unsigned start) {
    static const struct ulp_run_options options = {.anchor_every = 1000, .anchor_share = 1000000};
    struct career c = career_make(&options);
    struct ulp_run_report report;
    uint64_t replay = 0;

    career_publish(&c, start + 1);
    follow(&c, "f");
    for (unsigned i = 0; i < 100; i++) {
        career_publish(&c, 1);
        replay += c.bytes[c.versions - 1];
        if (i % 7 == 0)
            tend(&c);
    }
    tend(&c);
    report = follow(&c, "f");
    assert_int_equal(report.fetched_anchors, 0);
    assert_in_range(report.fetched_objects, 3, 25);
    assert_true(report.patch_bytes + report.record_bytes < replay + report.record_bytes);
    assert_true(report.patch_bytes < replay);
    if (!start)
        print_message("100 behind: %u objects, %llu bytes of patches; one by one %llu\n",
                      report.fetched_objects, (unsigned long long)report.patch_bytes,
                      (unsigned long long)replay);
    assert_int_equal(tend(&c).fresh, 0); /* nothing is left to do */
    career_free(&c);
}

static void test_a_hundred_behind(void **unused) {
    (void)unused;
    for (unsigned start = 0; start < 33; start += 3)
        check_lag(start);
}

/* Two who tend one run, and one who comes late, do not get into each other's way. */
static void test_two_tenders(void **unused) {
    struct career c = career_make(NULL);
    struct ulp_run_report report = {0};

    (void)unused;
    career_publish(&c, 41);
    tend(&c);
    assert_ok(ulp_run_tend(c.store, "rl", path_of(c.top, "other").text, NULL, &report));
    assert_int_equal(report.fresh, 0);
    career_publish(&c, 40);
    assert_ok(ulp_run_tend(c.store, "rl", path_of(c.top, "other").text, NULL, &report));
    assert_int_equal(report.fresh, 1);
    assert_int_equal(tend(&c).fresh, 0);
    follow(&c, "f");
    career_free(&c);
}

/* ---- deletion ---- */

static uint64_t now_ms = 1000000;

static uint64_t simulated(void *user) {
    (void)user;
    return now_ms * 1000000;
}

static void simulated_sleep(void *user, uint64_t duration_ns) {
    (void)user;
    now_ms += duration_ns / 1000000;
}

static const struct clock_hooks hooks = {simulated, simulated, simulated_sleep, NULL};

static int count_entry(void *user, const char *key, uint64_t bytes) {
    (void)key;
    (void)bytes;
    ++*(unsigned *)user;
    return 0;
}

static unsigned objects(const struct career *c, const char *prefix) {
    unsigned count = 0;

    assert_ok(ulp_store_list(c->store, prefix, "", count_entry, &count));
    return count;
}

static struct ulp_collect_report collect(const struct career *c, unsigned keep) {
    const struct ulp_collect_options options = {.grace_ms = 60000, .keep_anchors = keep};
    struct ulp_collect_report report = {0};

    assert_ok(ulp_run_collect(c->store, "rl", &options, &report));
    return report;
}

static void test_collect(void **unused) {
    static const struct ulp_run_options options = {.anchor_every = 16};
    struct career c = career_make(&options);
    struct ulp_collect_report report;
    unsigned before, records;

    (void)unused;
    clock_install(&hooks);
    career_publish(&c, 3);
    follow(&c, "slow");
    career_publish(&c, 60);
    assert_int_equal(objects(&c, "rl/log/"), 63 + 3); /* three anchors */
    before = objects(&c, "rl/part/");
    report = collect(&c, 1); /* announces only */
    assert_true(report.announced);
    assert_int_equal(report.deleted, 0);
    assert_true(report.condemned > 40);
    assert_int_equal(report.wait_ms, 60000);
    assert_int_equal(objects(&c, "rl/part/"), before);
    now_ms += 30000;
    report = collect(&c, 1); /* not yet */
    assert_false(report.announced);
    assert_int_equal(report.deleted, 0);
    assert_int_equal(report.wait_ms, 30000);
    career_publish(&c, 2);
    records = objects(&c, "rl/log/");
    before = objects(&c, "rl/part/");
    now_ms += 30001;
    report = collect(&c, 1);
    assert_true(report.deleted > 40);
    assert_int_equal(objects(&c, "rl/part/"), before - report.deleted);
    assert_in_range(objects(&c, "rl/log/"), records, records + 1);
    follow(&c, "fresh");
    assert_int_equal(follow(&c, "slow").fetched_anchors, 1); /* the old ways are gone */
    career_publish(&c, 20);
    follow(&c, "fresh");
    clock_install(NULL);
    career_free(&c);
}

/* What a publisher that died left in the store goes too, but nothing that is still to be named. */
static void test_orphans(void **unused) {
    struct career c = career_make(NULL);
    const struct ulp_collect_options now = {.now = 1}, dry = {.dry_run = 1, .now = 1};
    struct ulp_collect_report report = {0};
    char key[ULP_KEY_BYTES_MAX + 1];
    struct part old = {.folder = 2}, young = {.folder = 1000};
    uint64_t bytes;

    (void)unused;
    career_publish(&c, 5);
    part_key("rl", &old, key);
    assert_ok(ulp_store_put(c.store, key, "orphan", 6));
    part_key("rl", &young, key);
    assert_ok(ulp_store_put(c.store, key, "young", 5));
    assert_ok(ulp_store_put(c.store, "rl/part/foreign", "other", 5));
    assert_ok(ulp_run_collect(c.store, "rl", &dry, &report));
    assert_int_equal(report.condemned, 1);
    assert_false(report.announced);
    assert_ok(ulp_run_collect(c.store, "rl", &now, &report));
    assert_int_equal(report.deleted, 1);
    assert_int_equal(report.bytes, 6);
    assert_ok(ulp_store_stat(c.store, key, &bytes));
    assert_ok(ulp_store_stat(c.store, "rl/part/foreign", &bytes));
    part_key("rl", &old, key);
    assert_fails(ulp_store_stat(c.store, key, &bytes), ULP_E_NOT_FOUND, "");
    assert_ok(ulp_run_collect(c.store, "rl", &now, &report));
    assert_int_equal(report.deleted, 0);
    assert_false(report.announced);
    career_publish(&c, 3);
    follow(&c, "f");
    career_free(&c);
}

/* ---- keys ---- */

static void test_rekey(void **unused) {
    struct ulp_key *first = NULL, *second = NULL, *third = NULL;
    struct ulp_public_key trusted;
    struct ulp_run_options options = {.trusted = &trusted, .trusted_count = 1};
    struct ulp_run_options signing = {0};
    struct ulp_run_report report = {0};
    struct career c;

    (void)unused;
    assert_ok(ulp_key_generate(&first));
    assert_ok(ulp_key_generate(&second));
    assert_ok(ulp_key_generate(&third));
    ulp_key_public(first, &trusted);
    signing.sign = first;
    c = career_make(&signing);
    career_publish(&c, 3);
    assert_ok(ulp_follow(c.store, "rl", path_of(c.top, "f").text, &options, &report));
    assert_fails(ulp_run_rekey(c.store, "rl", second, third, NULL), ULP_E_SIGNATURE, "another key");
    assert_ok(ulp_run_rekey(c.store, "rl", first, second, &report));
    assert_true(report.head.is_signed);
    assert_ok(ulp_run_rekey(c.store, "rl", second, third, NULL));
    /* the old publisher is out */
    assert_fails(ulp_publisher_publish(c.publisher, c.state.tensors, c.state.count, 9, NULL),
                 ULP_E_SIGNATURE, "another key");
    ulp_publisher_close(c.publisher);
    signing.sign = third;
    assert_ok(ulp_publisher_open(c.store, "rl", NULL, &signing, &c.publisher));
    career_publish(&c, 3);
    assert_ok(ulp_follow(c.store, "rl", path_of(c.top, "f").text, &options, &report));
    assert_int_equal(report.version, 5);
    ulp_key_public(second, &trusted);
    assert_ok(ulp_follow(c.store, "rl", path_of(c.top, "g").text, &options, &report));
    ulp_key_free(first);
    assert_ok(ulp_key_generate(&first));
    ulp_key_public(first, &trusted);
    assert_fails(ulp_follow(c.store, "rl", path_of(c.top, "h").text, &options, &report),
                 ULP_E_SIGNATURE, "not trusted");
    ulp_key_free(first);
    ulp_key_free(second);
    ulp_key_free(third);
    career_free(&c);
}

TEST_MAIN(test_a_hundred_behind, test_two_tenders, test_collect, test_orphans, test_rekey)
