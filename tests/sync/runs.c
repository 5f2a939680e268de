// SPDX-License-Identifier: Apache-2.0
/* Publishing and following when nothing is broken: I1, I4, I6; and several publishers, of which one
 * is first. */
#define _XOPEN_SOURCE 700 /* lstat */
#include "sync/run_log.h"
#include "tests/sync/odd_store.h"
#include "tests/sync/trainer.h"

#include <sys/stat.h>
#include <unistd.h>

static const struct ulp_run_options often = {.anchor_every = 8};

static void check_first(bool in_memory) {
    struct trainer t = trainer_make(1, in_memory);
    struct ulp_run_report report = trainer_publish(&t, NULL);
    struct ulp_run_record head = {0};

    assert_int_equal(report.head.sequence, 1);
    assert_int_equal(report.head.epoch, 0);
    assert_int_equal(report.head.patch_bytes, 0);
    assert_int_equal(report.head.changed, 0);
    assert_true(report.head.anchor_bytes > t.state.bytes / 2);
    assert_int_equal(report.stored_bytes, report.head.anchor_bytes);
    assert_true(report.fresh);
    assert_ok(ulp_run_head(t.store, RUN, &head));
    assert_memory_equal(&head, &report.head, sizeof head);
    assert_fails(ulp_run_read(t.store, RUN, 2, &head), ULP_E_NOT_FOUND, "");
    assert_fails(ulp_run_read(t.store, RUN, 0, &head), ULP_E_NOT_FOUND, "");
    trainer_free(&t);
}

static void test_first(void **unused) {
    (void)unused;
    check_first(true);
    check_first(false);
}

static void check_next(bool in_memory) {
    struct trainer t = trainer_make(1, in_memory);
    struct ulp_run_report report;

    trainer_publish(&t, NULL);
    assert_follows(&t, "behind");
    report = trainer_publish(&t, NULL);
    assert_int_equal(report.head.sequence, 2);
    assert_true(report.head.changed > 10);
    assert_true(report.head.patch_bytes > 0);
    assert_int_equal(report.head.anchor_bytes, 0);
    assert_int_equal(report.stored_bytes, report.head.patch_bytes);
    assert_false(report.head.history);
    report = assert_follows(&t, "behind");
    assert_int_equal(report.fetched_bytes, report.head.patch_bytes);
    assert_int_equal(report.fetched_patches, 1);
    assert_int_equal(report.fetched_anchors, 0);
    assert_true(report.fresh);
    report = assert_follows(&t, "fresh");
    assert_int_equal(report.fetched_patches, 1);
    assert_int_equal(report.fetched_anchors, 1);
    assert_true(trainer_publish(&t, NULL).head.history);
    trainer_free(&t);
}

static void test_next(void **unused) {
    (void)unused;
    check_next(true);
    check_next(false);
}

static ino_t inode_of(struct path path) {
    struct stat info;

    assert_int_equal(stat(path.text, &info), 0);
    return info.st_ino;
}

/* Whoever looks every second must neither fetch nor write. */
static void test_from_current(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct odd_store odd = {.inner = t.store};
    struct ulp_store *counted = odd_store_open(&odd);
    struct path directory = below(&t, "f"), seen = path_of(directory.text, "seen");
    struct ulp_run_report report = {0};
    ino_t before;

    (void)unused;
    for (unsigned i = 0; i < 9; i++)
        trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    before = inode_of(seen);
    assert_ok(ulp_follow(counted, RUN, directory.text, NULL, &report));
    assert_false(report.fresh);
    assert_int_equal(report.fetched_bytes, 0);
    assert_int_equal(report.fetched_patches + report.fetched_anchors, 0);
    assert_int_equal(odd.part_reads, 0);
    assert_true(odd.record_reads <= 3);
    assert_int_equal(report.head.version, 8);
    assert_true(inode_of(seen) == before);
    ulp_store_free(counted);
    trainer_free(&t);
}

/* A follower at each step, one every five, and one that begins at each. */
static void check_many(bool in_memory) {
    struct trainer t = trainer_make(2, in_memory);
    unsigned histories = 0, anchors = 0;

    for (unsigned i = 0; i < 30; i++) {
        struct ulp_run_report report = trainer_publish(&t, &often), own;

        assert_int_equal(report.head.sequence, i + 1 + i / 8); /* anchors have their own records */
        histories += report.head.history != 0;
        anchors += report.head.anchor_bytes != 0;
        own = assert_follows(&t, "each");
        assert_int_equal(own.fetched_bytes, i ? report.head.patch_bytes : report.head.anchor_bytes);
        if (i % 5 == 0)
            assert_follows(&t, "some");
        tree_remove(below(&t, "fresh").text);
        assert_follows(&t, "fresh");
        assert_int_equal(entries_in(path_of(below(&t, "each").text, "versions").text), i ? 2 : 1);
    }
    assert_follows(&t, "some");
    assert_int_equal(anchors, 4);
    assert_int_equal(histories, 25); /* all but the first, and those from a multiple of 8 */
    trainer_free(&t);
}

static void test_many(void **unused) {
    (void)unused;
    check_many(true);
    check_many(false);
}

/* The map stays small, and everything in it is needed. */
static void test_the_map(void **unused) {
    struct trainer t = trainer_make(1, true);

    (void)unused;
    for (unsigned i = 0; i < 30; i++) {
        struct log_entry entry = {0};
        struct ulp_run_report report = trainer_publish(&t, &often);

        assert_ok(log_read(t.store, RUN, report.head.sequence, &entry));
        assert_int_equal(entry.record.anchor_count, i < 8 ? 1 : 2);
        assert_true(entry.record.way_count < 16);
        assert_int_equal(entry.record.ways ? entry.record.ways[0].from : 0,
                         entry.record.way_count ? entry.record.anchors[0].version : 0);
        log_entry_release(&entry);
    }
    trainer_free(&t);
}

/* Publishers may change their minds; whoever starts from an anchor can go on all the same, and
 * never goes back. */
static void test_options_change(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_run_options options = {0};

    (void)unused;
    for (unsigned i = 0; i < 40; i++) {
        struct ulp_run_report report;
        char name[16];

        options.anchor_every = 1 + (unsigned)(test_random() % 4);
        report = trainer_publish(&t, &options);
        snprintf(name, sizeof name, "f%u", i);
        report = assert_follows(&t, name);
        assert_int_equal(report.fetched_anchors, 1);
        if (i) {
            snprintf(name, sizeof name, "f%u", i - 1);
            report = assert_follows(&t, name);
            assert_int_equal(report.fetched_anchors, 0); /* one patch, not back to an anchor */
            tree_remove(below(&t, name).text);
        }
    }
    trainer_free(&t);
}

static void test_two_runs(void **unused) {
    struct trainer t = trainer_make(1, false);
    struct ulp_run_report report = {0};
    struct ulp_root other;

    (void)unused;
    trainer_publish(&t, NULL);
    trainer_publish(&t, NULL);
    assert_ok(
        ulp_publish(t.store, "rl2", below(&t, "state2").text, model_of(&t).text, 7, NULL, &report));
    assert_int_equal(report.head.sequence, 1);
    other = report.head.root;
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    assert_ok(ulp_follow(t.store, "rl2", below(&t, "f2").text, NULL, &report));
    assert_int_equal(report.head.step, 7);
    assert_holds_root(path_of(below(&t, "f2").text, "current").text, &other);
    assert_fails(ulp_follow(t.store, "rl3", below(&t, "f3").text, NULL, &report), ULP_E_NO_RUN,
                 "rl3");
    trainer_free(&t);
}

static void assert_file(struct path path, const char *text) {
    struct bytes bytes = file_bytes(path.text);

    assert_int_equal(bytes.used, strlen(text));
    if (bytes.used)
        assert_memory_equal(bytes.data, text, bytes.used);
    bytes_free(&bytes);
}

static void test_shards_and_files_beside_them(void **unused) {
    struct trainer t = trainer_make(3, true);
    struct path current = below(&t, "f/current");

    (void)unused;
    trainer_publish(&t, NULL);
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    assert_file(path_of(current.text, "config.json"), "{}\n");
    assert_file(path_of(current.text, "empty.txt"), "");
    assert_int_equal(entries_in(current.text), 3 + 1 + 2); /* shards, index, two beside them */
    trainer_free(&t);
}

static void test_a_single_file(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct path file = path_of(model_of(&t).text, "model.safetensors");

    (void)unused;
    trainer_step(&t);
    assert_ok(ulp_publish(t.store, RUN, below(&t, "state").text, file.text, 1, NULL, NULL));
    assert_follows(&t, "f");
    trainer_step(&t);
    assert_ok(ulp_publish(t.store, RUN, below(&t, "state").text, file.text, 2, NULL, NULL));
    assert_follows(&t, "f");
    assert_int_equal(entries_in(below(&t, "f/current").text), 1);
    trainer_free(&t);
}

static void test_a_step_back(void **unused) {
    static const uint64_t steps[] = {5, 6, 6, 2, 3, 0}, epochs[] = {0, 0, 0, 1, 1, 2};
    struct trainer t = trainer_make(1, true);

    (void)unused;
    for (unsigned i = 0; i < COUNT(steps); i++) {
        struct ulp_run_report report = {0};

        trainer_step(&t);
        assert_ok(ulp_publish(t.store, RUN, below(&t, "state").text, model_of(&t).text, steps[i],
                              NULL, &report));
        assert_int_equal(report.head.step, steps[i]);
        assert_int_equal(report.head.epoch, epochs[i]);
        assert_int_equal(report.head.version, i);
    }
    assert_follows(&t, "f");
    trainer_free(&t);
}

static void test_an_identical_model(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_run_report report = {0};

    (void)unused;
    trainer_publish(&t, NULL);
    assert_ok(
        ulp_publish(t.store, RUN, below(&t, "state").text, model_of(&t).text, 1, NULL, &report));
    assert_int_equal(report.head.version, 1);
    assert_int_equal(report.head.changed, 0);
    assert_same_root(&report.head.root, &t.roots[0]);
    assert_ok(follow_to(&t, "f"));
    assert_holds_root(below(&t, "f/current").text, &t.roots[0]);
    trainer_free(&t);
}

static void test_another_layout(void **unused) {
    static const struct form forms[] = {{"embed", "BF16", {41, 32}, 2, 0}};
    struct trainer t = trainer_make(1, true);
    struct state other = state_make(forms, 1, 0);
    struct path path = below(&t, "other");
    struct ulp_run_record head = {0};

    (void)unused;
    trainer_publish(&t, NULL);
    assert_ok(ulp_model_save(path.text, other.tensors, other.count, NULL, 0, 1, NULL));
    assert_fails(ulp_publish(t.store, RUN, below(&t, "state").text, path.text, 1, NULL, NULL),
                 ULP_E_LAYOUT, "embed");
    assert_ok(ulp_run_head(t.store, RUN, &head));
    assert_int_equal(head.sequence, 1);
    assert_at(&t, "state", 0);
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    state_free(&other);
    trainer_free(&t);
}

/* ---- several publishers ---- */

struct rival {
    struct trainer *trainer;
    enum ulp_status status;
};

/* Another publisher, with a state of its own and the same weights but one more step. */
static void go_first(void *user) {
    struct rival *rival = user;
    struct trainer *t = rival->trainer;

    rival->status = ulp_publish(t->store, RUN, below(t, "rival").text, below(t, "theirs").text,
                                1000, NULL, NULL);
}

static void check_fenced(bool first, bool in_memory) {
    struct trainer t = trainer_make(1, in_memory);
    struct rival rival = {&t, ULP_E_INTERNAL};
    struct odd_store odd = {.inner = t.store, .before_put = go_first, .user = &rival};
    struct ulp_store *slow = odd_store_open(&odd);
    struct path state = below(&t, "state");

    if (!first)
        trainer_publish(&t, NULL);
    trainer_step(&t);
    tree_copy(model_of(&t).text, below(&t, "theirs").text);
    state_step(&t.state, 30);
    trainer_step(&t);
    assert_fails(ulp_publish(slow, RUN, state.text, model_of(&t).text, 1, NULL, NULL), ULP_E_FENCED,
                 first ? "another publisher"
                       : "version 1 of run 'rl' was published by somebody else");
    assert_ok(rival.status);
    assert_int_equal(odd.creates, 1);
    if (first)
        assert_holds_nothing(&t, "state");
    else
        assert_at(&t, "state", 0);
    t.roots[first ? 0 : 1] = t.roots[t.count - 2]; /* what the rival published */
    t.count = first ? 1 : 2;
    assert_follows(&t, "f");
    assert_ok(ulp_publish(slow, RUN, state.text, model_of(&t).text, 2, NULL, NULL));
    t.roots[t.count++] = root_of(&t.state);
    assert_follows(&t, "f");
    ulp_store_free(slow);
    trainer_free(&t);
}

static void test_fenced(void **unused) {
    (void)unused;
    check_fenced(false, true);
    check_fenced(false, false);
}

static void test_fenced_at_the_beginning(void **unused) {
    (void)unused;
    check_fenced(true, true);
    check_fenced(true, false);
}

/* Of the store's own two tries the second finds the first one's record: equal to ours, so it is
 * ours. */
static void check_tried_again(bool first) {
    struct trainer t = trainer_make(1, true);
    struct odd_store odd = {.inner = t.store, .create = CREATE_TRIES_AGAIN};
    struct ulp_store *store = odd_store_open(&odd);
    struct ulp_run_report report = {0};

    if (!first)
        trainer_publish(&t, NULL);
    trainer_step(&t);
    assert_ok(
        ulp_publish(store, RUN, below(&t, "state").text, model_of(&t).text, 1, NULL, &report));
    assert_int_equal(report.head.sequence, t.count);
    assert_follows(&t, "f");
    ulp_store_free(store);
    trainer_free(&t);
}

static void test_created_twice(void **unused) {
    (void)unused;
    check_tried_again(true);
    check_tried_again(false);
}

/* The record is there, but the answer was lost: the second try finds it and knows it for its own.
 * Whoever publishes the same once more adds nothing. */
static void check_lost(bool first) {
    struct trainer t = trainer_make(1, true);
    struct odd_store odd = {.inner = t.store, .create = CREATE_LOSES_THE_ANSWER};
    struct ulp_store *store = odd_store_open(&odd);
    struct path state = below(&t, "state");
    struct ulp_run_report report = {0};

    if (!first)
        trainer_publish(&t, NULL);
    trainer_step(&t);
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(ulp_publish(store, RUN, state.text, model_of(&t).text, 1, NULL, &report));
        assert_int_equal(report.fresh, i == 0);
        assert_int_equal(report.head.sequence, t.count);
        assert_int_equal(report.head.epoch, 0);
        assert_same_root(&report.head.root, &t.roots[t.count - 1]);
        assert_at(&t, "state", t.count - 1);
    }
    assert_int_equal(odd.creates, 2);
    assert_follows(&t, "f");
    ulp_store_free(store);
    trainer_free(&t);
}

static void test_lost_answers(void **unused) {
    (void)unused;
    check_lost(true);
    check_lost(false);
}

/* The caller hears of a failure after a few tries, and nothing has happened. */
static void check_no_answers(bool first) {
    struct trainer t = trainer_make(1, true);
    struct odd_store odd = {.inner = t.store, .create = CREATE_FAILS};
    struct ulp_store *store = odd_store_open(&odd);
    struct path state = below(&t, "state");
    struct ulp_run_report report = {0};

    if (!first)
        trainer_publish(&t, NULL);
    trainer_step(&t);
    assert_fails(ulp_publish(store, RUN, state.text, model_of(&t).text, 1, NULL, NULL), ULP_E_IO,
                 "does not answer");
    assert_int_equal(odd.creates, 3);
    if (first)
        assert_holds_nothing(&t, "state");
    else
        assert_at(&t, "state", 0);
    odd.create = CREATE_AS_IS;
    assert_ok(ulp_publish(store, RUN, state.text, model_of(&t).text, 1, NULL, &report));
    assert_int_equal(report.head.sequence, t.count);
    assert_int_equal(report.head.epoch, 0);
    assert_same_root(&report.head.root, &t.roots[t.count - 1]);
    assert_follows(&t, "f");
    ulp_store_free(store);
    trainer_free(&t);
}

static void test_no_answers(void **unused) {
    (void)unused;
    check_no_answers(true);
    check_no_answers(false);
}

/* ---- arguments ---- */

static void test_arguments(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct ulp_run_record record;
    struct path state = below(&t, "state"), model = model_of(&t);

    (void)unused;
    trainer_step(&t);
    assert_fails(ulp_publish(NULL, RUN, state.text, model.text, 0, NULL, NULL), ULP_E_USAGE,
                 "NULL");
    assert_fails(ulp_publish(t.store, NULL, state.text, model.text, 0, NULL, NULL), ULP_E_USAGE,
                 "NULL");
    assert_fails(ulp_publish(t.store, RUN, NULL, model.text, 0, NULL, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_publish(t.store, RUN, state.text, NULL, 0, NULL, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_follow(t.store, RUN, NULL, NULL, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_run_head(t.store, RUN, NULL), ULP_E_USAGE, "NULL");
    assert_fails(ulp_run_read(t.store, NULL, 1, &record), ULP_E_USAGE, "NULL");
    assert_fails(ulp_run_head(t.store, RUN, &record), ULP_E_NO_RUN, RUN);
    assert_fails(ulp_publish(t.store, "a/b", state.text, model.text, 0, NULL, NULL), ULP_E_NAME,
                 "a/b");
    assert_fails(ulp_follow(t.store, "..", state.text, NULL, NULL), ULP_E_NAME, "");
    assert_fails(ulp_run_head(t.store, "", &record), ULP_E_NAME, "");
    assert_fails(ulp_publish(t.store, RUN, state.text, below(&t, "none").text, 0, NULL, NULL),
                 ULP_E_NOT_FOUND, "none");
    assert_fails(ulp_run_head(t.store, RUN, &record), ULP_E_NO_RUN, RUN);
    trainer_free(&t);
}

TEST_MAIN(test_first, test_next, test_from_current, test_many, test_the_map, test_options_change,
          test_two_runs, test_shards_and_files_beside_them, test_a_single_file, test_a_step_back,
          test_an_identical_model, test_another_layout, test_fenced, test_fenced_at_the_beginning,
          test_created_twice, test_lost_answers, test_no_answers, test_arguments)
