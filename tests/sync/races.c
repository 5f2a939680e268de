// SPDX-License-Identifier: Apache-2.0
/* What others do between a look and the next step: records that only change the map are taken in,
 * deletions that were announced make parts be stored again, old parts that vanish make a follower
 * plan anew (I6, I8). */
#include "chain/map.h"
#include "tests/sync/forge.h"
#include "tests/sync/live.h"
#include "tests/sync/odd_store.h"

static const struct ulp_run_options often = {.anchor_every = 8},
                                    only_one = {.anchor_every = 8, .keep_anchors = 1};

/* A publisher whose requests others can overtake. */
struct race {
    struct trainer t;
    struct odd_store odd;
    struct ulp_store *store;
    struct ulp_publisher *publisher;
};

static void race_make(struct race *r, const char *directory, bool store_in_memory,
                      const struct ulp_run_options *options) {
    *r = (struct race){.t = trainer_make(1, store_in_memory)};
    r->odd.inner = r->t.store;
    r->odd.user = r;
    r->store = odd_store_open(&r->odd);
    assert_ok(ulp_publisher_open(r->store, RUN, directory ? below(&r->t, directory).text : NULL,
                                 options, &r->publisher));
}

static void race_free(struct race *r) {
    ulp_publisher_close(r->publisher);
    ulp_store_free(r->store);
    trainer_free(&r->t);
}

/* Each part of the newest record lies in a folder that nobody deletes, and is there. */
static void assert_parts_are_safe(struct ulp_store *store, const struct record *announced) {
    struct ulp_run_health health = {0};
    struct log_entry head = newest_record(store);

    for (size_t i = 0; i < head.record.anchor_count; i++) {
        for (size_t k = 0; k < head.record.anchors[i].file_count; k++) {
            const struct part *part = &head.record.anchors[i].files[k].part;

            assert_true(part->folder >= head.record.boundary || map_names(announced, part));
        }
    }
    for (size_t i = 0; i < head.record.way_count; i++) {
        const struct part *part = &head.record.ways[i].patches[0].parts[0];

        assert_true(part->folder >= head.record.boundary || map_names(announced, part));
    }
    log_entry_release(&head);
    assert_ok(ulp_run_check(store, RUN, NULL, NULL, &health));
    assert_int_equal(health.damaged, 0);
    assert_true(health.reachable);
}

/* ---- records that only change the map ---- */

static void change_the_map(void *user) {
    struct race *r = user;

    forge_next(r->t.store, NULL, unchanged);
}

static void check_taken_in(const char *directory, bool store_in_memory) {
    struct race r;

    race_make(&r, directory, store_in_memory, NULL);
    live_publish(&r.t, r.publisher);
    for (unsigned i = 1; i < 4; i++) {
        struct ulp_run_report report;

        r.odd.before_create = change_the_map;
        r.odd.puts = 0;
        report = live_publish(&r.t, r.publisher);
        assert_int_equal(report.head.sequence, 1 + 2 * i);
        assert_int_equal(r.odd.puts, 1);
        assert_follows(&r.t, "f");
    }
    race_free(&r);
}

static void test_a_map_record_is_taken_in(void **unused) {
    (void)unused;
    check_taken_in(NULL, true);
    check_taken_in("state", true);
    check_taken_in(NULL, false);
}

static void change_it_again(void *user) {
    struct race *r = user;

    change_the_map(r);
    if (r->odd.creates < 6)
        r->odd.before_create = change_it_again;
}

/* Several in a row. */
static void test_several_map_records(void **unused) {
    struct race r;
    struct ulp_run_report report;

    (void)unused;
    race_make(&r, NULL, true, NULL);
    live_publish(&r.t, r.publisher);
    r.odd.before_create = change_it_again;
    report = live_publish(&r.t, r.publisher);
    assert_int_equal(report.head.sequence, 7);
    assert_follows(&r.t, "f");
    race_free(&r);
}

/* ---- deletions that are announced ---- */

/* Our parts are in the folder of record N; it is N + 1 that announces, so they may go. */
static void announce_and_delete(void *user) {
    struct race *r = user;

    forge_next(r->t.store, NULL, unchanged);
    forge_next(r->t.store, NULL, announce);
    remove_useless_parts(r->t.store);
}

static void check_stored_again(const char *directory, bool store_in_memory) {
    struct race r;
    struct ulp_run_report report;
    struct log_entry announced, head;

    race_make(&r, directory, store_in_memory, NULL);
    live_publish(&r.t, r.publisher);
    live_publish(&r.t, r.publisher);
    r.odd.before_create = announce_and_delete;
    r.odd.puts = 0;
    report = live_publish(&r.t, r.publisher);
    assert_int_equal(r.odd.puts, 2);
    assert_int_equal(report.head.sequence, 5);
    assert_int_equal(report.head.boundary, 4);
    head = newest_record(r.t.store);
    assert_int_equal(head.record.ways[1].patches[0].parts[0].folder, 5);
    assert_ok(log_read(r.t.store, RUN, 4, &announced));
    assert_parts_are_safe(r.t.store, &announced.record);
    assert_follows(&r.t, "f");
    live_publish(&r.t, r.publisher);
    assert_follows(&r.t, "f");
    log_entry_release(&announced);
    log_entry_release(&head);
    race_free(&r);
}

static void test_parts_are_stored_again(void **unused) {
    (void)unused;
    check_stored_again(NULL, true);
    check_stored_again("state", true);
    check_stored_again(NULL, false);
}

/* Record N itself announces: what lies in its folder stays. */
static void announce_only(void *user) {
    struct race *r = user;

    forge_next(r->t.store, NULL, announce);
}

static void test_a_boundary_at_the_folder(void **unused) {
    struct race r;
    struct ulp_run_report report;

    (void)unused;
    race_make(&r, NULL, true, NULL);
    live_publish(&r.t, r.publisher);
    r.odd.before_create = announce_only;
    r.odd.puts = 0;
    report = live_publish(&r.t, r.publisher);
    assert_int_equal(r.odd.puts, 1);
    assert_int_equal(report.head.sequence, 3);
    assert_int_equal(report.head.boundary, 2);
    assert_follows(&r.t, "f");
    race_free(&r);
}

/* For ever: whoever never gets through stops, and has added nothing. */
static void announce_for_ever(void *user) {
    struct race *r = user;

    announce_and_delete(r);
    r->odd.before_create = announce_for_ever;
}

static void test_deletion_without_end(void **unused) {
    struct race r;
    struct ulp_run_record head;

    (void)unused;
    race_make(&r, NULL, true, NULL);
    live_publish(&r.t, r.publisher);
    r.odd.before_create = announce_for_ever;
    state_step(&r.t.state, 30);
    assert_fails(ulp_publisher_publish(r.publisher, r.t.state.tensors, r.t.state.count, 1, NULL),
                 ULP_E_FENCED, "faster");
    assert_ok(ulp_run_head(r.t.store, RUN, &head));
    assert_int_equal(head.version, 0);
    race_free(&r);
}

/* ---- anchors ---- */

static void publish_first(void *user) {
    struct race *r = user;

    live_versions(&r->t, 1, NULL);
}

/* A version comes while an anchor is made: whoever makes it was overtaken, as a publisher. */
static void test_a_version_before_the_anchor(void **unused) {
    struct race r;

    (void)unused;
    race_make(&r, NULL, true, &often);
    for (unsigned i = 0; i < 9; i++)
        live_publish(&r.t, r.publisher);
    r.odd.before_create = publish_first;
    assert_fails(ulp_publisher_anchor(r.publisher, NULL), ULP_E_FENCED, "somebody else");
    assert_fails(ulp_publisher_publish(r.publisher, r.t.state.tensors, r.t.state.count, 99, NULL),
                 ULP_E_FENCED, "somebody else");
    assert_follows(&r.t, "f");
    live_versions(&r.t, 1, NULL);
    assert_follows(&r.t, "f");
    race_free(&r);
}

static void anchor_first(void *user) {
    struct race *r = user;

    live_anchor(&r->t, &often);
}

/* An anchor comes while a version is made: it is taken in. Our patch from that version may have
 * history all the same, for who starts from the anchor it must not. */
static void test_an_anchor_before_the_version(void **unused) {
    struct race r;
    struct ulp_run_report report;

    (void)unused;
    race_make(&r, NULL, true, &often);
    for (unsigned i = 0; i < 9; i++)
        live_publish(&r.t, r.publisher);
    r.odd.before_create = anchor_first;
    report = live_publish(&r.t, r.publisher);
    assert_int_equal(report.head.sequence, 11);
    assert_false(report.head.history);
    assert_int_equal(assert_follows(&r.t, "f").fetched_patches, 1);
    race_free(&r);
}

/* Lets go of the older one, so that it is not the very record that the other makes. */
static void anchor_only(void *user) {
    struct race *r = user;

    live_anchor(&r->t, &only_one);
}

/* Two make the same one: one of them is enough. */
static void test_two_anchors(void **unused) {
    struct race r;
    struct ulp_run_report report = {0};

    (void)unused;
    race_make(&r, NULL, true, &often);
    for (unsigned i = 0; i < 9; i++)
        live_publish(&r.t, r.publisher);
    r.odd.before_create = anchor_only;
    assert_ok(ulp_publisher_anchor(r.publisher, &report));
    assert_false(report.fresh);
    assert_int_equal(report.head.sequence, 10);
    live_publish(&r.t, r.publisher);
    assert_follows(&r.t, "f");
    race_free(&r);
}

/* The first anchor loses the file beside the weights, which ours wants to share. */
static void drop_the_file(struct record *record) {
    static struct anchor_file weights;
    static struct anchor anchor;

    anchor = record->anchors[0];
    for (size_t i = 0; i < anchor.file_count; i++) {
        if (strstr(anchor.files[i].name, ".safetensors"))
            weights = anchor.files[i];
    }
    anchor.files = &weights;
    anchor.file_count = 1;
    record->anchors = &anchor;
    record->anchor_count = 1;
    announce(record);
}

static void delete_the_file(void *user) {
    struct race *r = user;

    forge_next(r->t.store, NULL, drop_the_file);
    remove_useless_parts(r->t.store);
}

/* An anchor must not name a file that was only known from a map that is gone. */
static void test_a_shared_file(void **unused) {
    struct race r;
    struct ulp_run_report report = {0};
    struct log_entry announced = {0};

    (void)unused;
    race_make(&r, "state", true, &often);
    for (unsigned i = 0; i < 9; i++) {
        trainer_step(&r.t);
        assert_ok(ulp_publisher_publish_model(r.publisher, model_of(&r.t).text, i, &report));
    }
    r.odd.before_create = delete_the_file;
    assert_ok(ulp_publisher_anchor(r.publisher, &report));
    assert_false(report.fresh);
    assert_int_equal(report.head.sequence, 10);
    assert_ok(ulp_publisher_anchor(r.publisher, &report));
    assert_true(report.fresh);
    assert_ok(log_read(r.t.store, RUN, 10, &announced));
    assert_parts_are_safe(r.t.store, &announced.record);
    assert_follows(&r.t, "f");
    log_entry_release(&announced);
    race_free(&r);
}

/* ---- slow followers ---- */

/* The map begins anew with an anchor, and all older parts go. */
static void retain(void *user) {
    struct race *r = user;

    live_anchor(&r->t, &only_one);
    remove_useless_parts(r->t.store);
}

/* A follower on its way from version 2 to 16, overtaken in front of part number `at`. */
static bool check_overtaken(unsigned at, bool store_in_memory, uint64_t ahead_bytes) {
    const struct ulp_run_options options = {.ahead_bytes = ahead_bytes};
    struct race r;
    struct worker worker = {0};
    struct ulp_follower *follower = NULL;
    struct trainer through;
    bool overtaken;

    race_make(&r, NULL, store_in_memory, NULL);
    for (unsigned i = 0; i < 3; i++)
        live_publish(&r.t, r.publisher);
    through = r.t;
    through.store = r.store;
    worker = worker_make(&through, &options);
    assert_worker_follows(&worker, &r.t);
    assert_ok(ulp_follow(r.store, RUN, below(&r.t, "f").text, NULL, NULL));
    for (unsigned i = 3; i <= 16; i++)
        live_publish(&r.t, r.publisher);
    assert_ok(ulp_follower_open(r.store, RUN, below(&r.t, "f").text, &options, &follower));
    r.odd.part_reads = 0;
    r.odd.part_at = at;
    r.odd.before_part_read = retain;
    if (at % 2) {
        assert_ok(ulp_follower_poll(follower, NULL));
        assert_ok(ulp_follower_apply(follower, NULL));
        assert_at(&r.t, "f", 16);
    } else {
        assert_worker_follows(&worker, &r.t);
    }
    overtaken = !r.odd.before_part_read;
    ulp_follower_close(follower);
    worker_free(&worker);
    race_free(&r);
    return overtaken;
}

static void test_retention_races_a_follower(void **unused) {
    unsigned at = 0, overtaken = 0;

    (void)unused;
    for (; at < 14; at++)
        overtaken += check_overtaken(at, at % 4 < 2, at % 3 ? 1 : 0);
    assert_int_equal(overtaken, 14);
}

/* With nothing newer in the log it is just missing; with something newer it arrives. */
static void test_missing_until_something_newer_comes(void **unused) {
    struct race r;
    struct worker worker;
    struct log_entry head;
    char key[ULP_KEY_BYTES_MAX + 1];

    (void)unused;
    race_make(&r, NULL, true, &only_one);
    live_publish(&r.t, r.publisher);
    worker = worker_make(&r.t, NULL);
    assert_worker_follows(&worker, &r.t);
    assert_follows(&r.t, "f");
    for (unsigned i = 1; i < 9; i++)
        live_publish(&r.t, r.publisher);
    head = newest_record(r.t.store);
    part_key(RUN, &head.record.ways[5].patches[0].parts[0], key);
    assert_ok(ulp_store_remove(r.t.store, key));
    assert_fails(follow_to(&r.t, "f"), ULP_E_PART_MISSING, key);
    assert_at(&r.t, "f", 0);
    for (unsigned i = 0; i < 5; i++) { /* one patch at a time, as far as it goes */
        assert_ok(ulp_follower_poll(worker.follower, NULL));
        assert_ok(ulp_follower_apply(worker.follower, NULL));
        assert_worker_at(&worker, &r.t, i + 1);
    }
    assert_fails(ulp_follower_poll(worker.follower, NULL), ULP_E_PART_MISSING, key);
    assert_worker_at(&worker, &r.t, 5);
    assert_ok(ulp_publisher_anchor(r.publisher, NULL));
    assert_follows(&r.t, "f");
    assert_worker_follows(&worker, &r.t);
    log_entry_release(&head);
    worker_free(&worker);
    race_free(&r);
}

TEST_MAIN(test_a_map_record_is_taken_in, test_several_map_records, test_parts_are_stored_again,
          test_a_boundary_at_the_folder, test_deletion_without_end,
          test_a_version_before_the_anchor, test_an_anchor_before_the_version, test_two_anchors,
          test_a_shared_file, test_retention_races_a_follower,
          test_missing_until_something_newer_comes)
