// SPDX-License-Identifier: Apache-2.0
/* A run whose publisher asks for no anchors gets some all the same, before its map has no room left
 * (I5, I6). */
#include "base/limits.h"
#include "chain/map.h"
#include "sync/run_log.h"
#include "tests/sync/trainer.h"

#include <limits.h>

#define VERSIONS (LIMIT_WAYS + 10)

static const struct ulp_run_options never = {.anchor_every = UINT_MAX, .anchor_share = UINT_MAX};

static void test_the_map_does_not_overflow(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;
    unsigned anchors = 1;
    struct ulp_run_report report = {0};

    (void)unused;
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &never, &publisher));
    for (unsigned i = 0; i < VERSIONS; i++) {
        uint64_t before = report.head.sequence;

        assert_ok(ulp_publisher_publish(publisher, t.state.tensors, t.state.count, i, &report));
        assert_int_equal(report.head.version, i);
        anchors += report.head.sequence == before + 2;
        assert_ok(ulp_publisher_anchor(publisher, &report));
    }
    ulp_publisher_close(publisher);
    assert_int_equal(anchors, 2); /* the first version, and one more */
    t.roots[0] = root_of(&t.state);
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, NULL, &report));
    assert_int_equal(report.head.version, VERSIONS - 1);
    assert_true(report.fetched_patches < 100);
    assert_holds_root(below(&t, "f/current").text, &t.roots[0]);
    trainer_free(&t);
}

/* Fills the map of the newest record with ways that nobody will take. */
static void fill_map(struct ulp_store *store, const struct ulp_run_record *head) {
    static const struct part part = {.bytes = 1u << 30};
    static const struct stored_patch patch = {&part, 1};
    struct log_entry entry = {0}, added = {0};
    struct arena arena = {0};
    struct record record;

    assert_ok(log_read(store, RUN, head->sequence, &entry));
    record_succeed(&entry.record, &entry.hash, &record);
    for (uint64_t to = 2; to <= head->version; to++) {
        for (uint64_t from = 0; from + 1 < to && record.way_count + 60 < LIMIT_WAYS; from++) {
            const struct way way = {
                .from = from, .to = to, .sequence = to + 1, .patches = &patch, .patch_count = 1};

            assert_ok(map_add_way(&record, &way, &arena));
        }
    }
    assert_ok(log_append(store, RUN, &record, NULL, &added));
    arena_release(&arena);
    log_entry_release(&entry);
    log_entry_release(&added);
}

/* Where there is an anchor of the newest version already, old ways are let go and that is all. */
static void test_a_full_map_with_an_anchor(void **unused) {
    static const struct ulp_run_options at_96 = {.anchor_every = 96, .anchor_share = UINT_MAX};
    struct trainer t = trainer_make(1, true);
    struct ulp_publisher *publisher = NULL;
    struct ulp_run_report report = {0};

    (void)unused;
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &at_96, &publisher));
    for (unsigned i = 0; i <= 96; i++)
        assert_ok(ulp_publisher_publish(publisher, t.state.tensors, t.state.count, i, &report));
    assert_ok(ulp_publisher_anchor(publisher, &report));
    assert_true(report.head.anchor_bytes > 0);
    ulp_publisher_close(publisher);
    fill_map(t.store, &report.head);
    assert_ok(ulp_publisher_open(t.store, RUN, NULL, &never, &publisher));
    state_step(&t.state, 30);
    assert_ok(ulp_publisher_publish(publisher, t.state.tensors, t.state.count, 97, &report));
    assert_int_equal(report.head.version, 97);
    assert_int_equal(report.head.oldest, 96);
    ulp_publisher_close(publisher);
    t.roots[0] = root_of(&t.state);
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, NULL, &report));
    assert_holds_root(below(&t, "f/current").text, &t.roots[0]);
    trainer_free(&t);
}

TEST_MAIN(test_the_map_does_not_overflow, test_a_full_map_with_an_anchor)
