// SPDX-License-Identifier: Apache-2.0
/* Copies of a run in another store: the same records, and every byte verified on the way. */
#include "tests/sync/career.h"

struct site {
    struct career career;
    struct ulp_store *copy;
};

static struct site site_make(const struct ulp_run_options *options) {
    struct site site = {.career = career_make(options)};

    assert_ok(ulp_store_memory(&site.copy));
    return site;
}

static void site_free(struct site *site) {
    ulp_store_free(site->copy);
    career_free(&site->career);
}

static struct ulp_run_report mirror(const struct site *site) {
    struct ulp_run_report report = {0};

    assert_ok(ulp_run_mirror(site->career.store, site->copy, "rl", NULL, &report));
    return report;
}

static void test_each_step(void **unused) {
    static const struct ulp_run_options options = {.anchor_every = 1000, .anchor_share = 1000000};
    struct site site = site_make(&options);

    (void)unused;
    career_publish(&site.career, 1);
    mirror(&site);
    career_follow(&site.career, site.copy, "f");
    for (unsigned i = 0; i < 20; i++) {
        struct ulp_run_report report;

        career_publish(&site.career, 1);
        report = mirror(&site);
        assert_int_equal(report.fresh, 1);
        assert_int_equal(report.fetched_bytes, site.career.bytes[site.career.versions - 1]);
        assert_int_equal(mirror(&site).fresh, 0);
        career_follow(&site.career, site.copy, "f");
    }
    site_free(&site);
}

/* A mirror that comes late, or was away, fetches what the newest record names and nothing else. */
static void test_late(void **unused) {
    static const struct ulp_run_options options = {.anchor_every = 16};
    struct site site = site_make(&options);
    const struct ulp_collect_options now = {.now = 1, .keep_anchors = 1};
    struct ulp_run_health health = {0};

    (void)unused;
    career_publish(&site.career, 70);
    assert_ok(ulp_run_collect(site.career.store, "rl", &now, NULL));
    mirror(&site);
    career_follow(&site.career, site.copy, "f");
    assert_ok(ulp_run_check(site.copy, "rl", NULL, NULL, &health));
    assert_int_equal(health.damaged, 0);
    assert_true(health.reachable);
    career_publish(&site.career, 40);
    assert_ok(
        ulp_run_tend(site.career.store, "rl", path_of(site.career.top, "t").text, NULL, NULL));
    mirror(&site);
    career_follow(&site.career, site.copy, "f");
    site_free(&site);
}

/* What was announced in the original is deleted in the copy, and nothing is added there. */
static void test_collect(void **unused) {
    static const struct ulp_run_options options = {.anchor_every = 16};
    struct site site = site_make(&options);
    const struct ulp_collect_options now = {.now = 1, .keep_anchors = 1};
    const struct ulp_collect_options there = {.now = 1, .only_delete = 1};
    struct ulp_collect_report report = {0};

    (void)unused;
    for (unsigned i = 0; i < 12; i++) {
        career_publish(&site.career, 5);
        mirror(&site);
    }
    assert_ok(ulp_run_collect(site.career.store, "rl", &now, &report));
    assert_true(report.deleted > 20);
    mirror(&site);
    assert_ok(ulp_run_collect(site.copy, "rl", &there, &report));
    assert_true(report.deleted > 20);
    assert_false(report.announced);
    career_publish(&site.career, 3);
    mirror(&site);
    career_follow(&site.career, site.copy, "f");
    site_free(&site);
}

/* ---- what is wrong with the original ---- */

static int take_last(void *user, const char *key, uint64_t bytes) {
    (void)bytes;
    snprintf(user, 300, "%s", key);
    return 0;
}

/* The copy never shows what it did not verify. */
static void test_damaged_part(void **unused) {
    struct site site = site_make(NULL);
    uint8_t kept[65536];
    size_t bytes = 0;
    uint64_t total = 0;
    char key[300] = "";

    (void)unused;
    career_publish(&site.career, 3);
    mirror(&site);
    career_publish(&site.career, 1);
    assert_ok(ulp_store_list(site.career.store, "rl/part/", "", take_last, key));
    assert_ok(ulp_store_read(site.career.store, key, 0, kept, sizeof kept, &bytes, &total));
    kept[bytes / 2] ^= 1;
    assert_ok(ulp_store_put(site.career.store, key, kept, bytes));
    assert_fails(ulp_run_mirror(site.career.store, site.copy, "rl", NULL, NULL), ULP_E_PART,
                 "another hash");
    assert_fails(ulp_store_stat(site.copy, key, &total), ULP_E_NOT_FOUND, "");
    assert_fails(ulp_store_stat(site.copy, "rl/log/00000000000000000004", &total), ULP_E_NOT_FOUND,
                 "");
    kept[bytes / 2] ^= 1;
    assert_ok(ulp_store_put(site.career.store, key, kept, bytes));
    mirror(&site);
    career_follow(&site.career, site.copy, "f");
    site_free(&site);
}

static void test_forked(void **unused) {
    struct site site = site_make(NULL), other = site_make(NULL);

    (void)unused;
    career_publish(&site.career, 3);
    career_publish(&other.career, 5);
    mirror(&site);
    assert_fails(ulp_run_mirror(other.career.store, site.copy, "rl", NULL, NULL), ULP_E_OTHER_RUN,
                 "another");
    site_free(&site);
    site_free(&other);
}

/* Whoever publishes to the copy forks the run, and the mirror says so. */
static void test_published_to(void **unused) {
    struct site site = site_make(NULL);
    struct ulp_publisher *stray = NULL;

    (void)unused;
    career_publish(&site.career, 3);
    mirror(&site);
    assert_ok(ulp_publisher_open(site.copy, "rl", NULL, NULL, &stray));
    state_step(&site.career.state, 20);
    assert_ok(
        ulp_publisher_publish(stray, site.career.state.tensors, site.career.state.count, 3, NULL));
    ulp_publisher_close(stray);
    assert_fails(ulp_run_mirror(site.career.store, site.copy, "rl", NULL, NULL), ULP_E_ROLLBACK,
                 "fewer");
    career_publish(&site.career, 2);
    assert_fails(ulp_run_mirror(site.career.store, site.copy, "rl", NULL, NULL), ULP_E_FORK,
                 "not the one");
    site_free(&site);
}

static void test_signed(void **unused) {
    struct ulp_key *key = NULL, *foreign = NULL;
    struct ulp_public_key trusted;
    struct ulp_run_options options = {.trusted = &trusted, .trusted_count = 1}, signing = {0};
    struct site site;

    (void)unused;
    assert_ok(ulp_key_generate(&key));
    assert_ok(ulp_key_generate(&foreign));
    signing.sign = key;
    site = site_make(&signing);
    career_publish(&site.career, 4);
    ulp_key_public(foreign, &trusted);
    assert_fails(ulp_run_mirror(site.career.store, site.copy, "rl", &options, NULL),
                 ULP_E_SIGNATURE, "not trusted");
    ulp_key_public(key, &trusted);
    assert_ok(ulp_run_mirror(site.career.store, site.copy, "rl", &options, NULL));
    assert_ok(ulp_follow(site.copy, "rl", path_of(site.career.top, "f").text, &options, NULL));
    ulp_key_free(key);
    ulp_key_free(foreign);
    site_free(&site);
}

TEST_MAIN(test_each_step, test_late, test_collect, test_damaged_part, test_forked,
          test_published_to, test_signed)
