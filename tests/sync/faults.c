// SPDX-License-Identifier: Apache-2.0
/* Stores that lost, changed or went back on something, and directories that are not what they
 * should be: whoever follows says so and stays where it is (I2, I4, I7), and goes on when the
 * damage is repaired (I8). */
#define _DEFAULT_SOURCE /* flock, symlink */
#include "base/limits.h"
#include "tests/sync/forge.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define VERSIONS 4u
#define BEHIND 1u

/* A run of a few versions, and a follower that stopped at an early one. */
struct fixture {
    struct trainer trainer;
    struct objects objects;
};

static struct fixture fixture_make(bool in_memory) {
    struct fixture f = {.trainer = trainer_make(2, in_memory)};

    for (unsigned i = 0; i < VERSIONS; i++) {
        trainer_publish(&f.trainer, NULL);
        if (i == BEHIND)
            assert_follows(&f.trainer, "kept");
    }
    f.objects = objects_of(f.trainer.store);
    return f;
}

static void fixture_free(struct fixture *f) {
    objects_free(&f->objects);
    trainer_free(&f->trainer);
}

/* The one that is behind, as it was, and one that holds nothing. */
static void put_followers_back(const struct fixture *f) {
    tree_copy(below(&f->trainer, "kept").text, below(&f->trainer, "behind").text);
    tree_remove(below(&f->trainer, "fresh").text);
}

static bool is_proper(enum ulp_status status) {
    static const enum ulp_status proper[] = {ULP_E_NO_RUN,   ULP_E_RECORD,  ULP_E_CHAIN,
                                             ULP_E_ROLLBACK, ULP_E_PART,    ULP_E_PART_MISSING,
                                             ULP_E_CHECKSUM, ULP_E_VERSION, ULP_E_UNREACHABLE};

    for (size_t i = 0; i < COUNT(proper); i++) {
        if (status == proper[i])
            return true;
    }
    return false;
}

struct outcomes {
    unsigned refused, unharmed, stale;
};

/* A follower that was stopped is where it was or at a complete version further on, never behind. */
static void assert_on_the_way(const struct trainer *t, const char *name, unsigned from,
                              bool holds) {
    char target[64] = "";
    struct path current = path_of(below(t, name).text, "current");
    unsigned version;

    if (readlink(current.text, target, sizeof target - 1) < 0) {
        assert_false(holds);
        return;
    }
    version = (unsigned)strtoul(target + strlen("versions/"), NULL, 10);
    assert_in_range(version, from, VERSIONS - 2);
    assert_at(t, name, version);
}

/* Refused, and nothing has changed; or a version that is what it says. */
static void check_follower(const struct fixture *f, const char *name, bool holds,
                           struct outcomes *seen) {
    const struct trainer *t = &f->trainer;
    struct ulp_run_report report = {0};
    enum ulp_status status = ulp_follow(t->store, RUN, below(t, name).text, NULL, &report);

    if (!status) {
        assert_true(report.head.version < VERSIONS);
        assert_same_root(&report.head.root, &t->roots[report.head.version]);
        assert_at(t, name, (unsigned)report.head.version);
        if (report.head.version == VERSIONS - 1)
            seen->unharmed++;
        else
            seen->stale++;
        return;
    }
    if (!is_proper(status))
        fail_msg("%s: %s", ulp_status_name(status), ulp_last_error());
    seen->refused++;
    assert_on_the_way(t, name, holds ? BEHIND : 0, holds);
}

static void check_both(const struct fixture *f, struct outcomes *seen) {
    put_followers_back(f);
    check_follower(f, "behind", true, seen);
    check_follower(f, "fresh", false, seen);
}

static void check_repaired(const struct fixture *f, const struct object *object) {
    assert_ok(ulp_store_put(f->trainer.store, object->key, object->bytes.data, object->bytes.used));
    assert_follows(&f->trainer, "behind");
    assert_follows(&f->trainer, "fresh");
}

static void flip(const struct fixture *f, size_t index, size_t bit, struct outcomes *seen) {
    const struct object *object = &f->objects.list[index];

    object->bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_ok(ulp_store_put(f->trainer.store, object->key, object->bytes.data, object->bytes.used));
    object->bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    check_both(f, seen);
    check_repaired(f, object);
}

static void check_flips(bool in_memory, unsigned tries) {
    struct fixture f = fixture_make(in_memory);
    struct outcomes seen = {0};
    unsigned objects = 0;

    for (size_t i = 0; i < f.objects.count; i++) {
        size_t bits = 8 * f.objects.list[i].bytes.used;

        objects += bits != 0;
        for (unsigned k = 0; bits && k < tries; k++)
            flip(&f, i, (size_t)(test_random() % bits), &seen);
    }
    print_message("%u refused, %u unharmed\n", seen.refused, seen.unharmed);
    assert_int_equal(seen.stale, 0);
    assert_true(objects >= 4 + 3 + 4); /* shards, index, config; patches; records */
    assert_true(seen.refused > objects * tries / 2 && seen.unharmed > 0);
    fixture_free(&f);
}

static void test_flipped_bits(void **unused) {
    (void)unused;
    check_flips(true, 8);
    check_flips(false, 2);
}

/* All bits of the newest record, which no other record vouches for. */
static void test_every_bit_of_the_head(void **unused) {
    struct fixture f = fixture_make(true);
    const struct object *head = NULL;
    struct path kept = below(&f.trainer, "kept");

    (void)unused;
    for (size_t i = 0; i < f.objects.count; i++)
        head = strstr(f.objects.list[i].key, "/log/") ? &f.objects.list[i] : head;
    assert_non_null(strstr(head->key, "00000004"));
    for (size_t bit = 0; bit < 8 * head->bytes.used; bit++) {
        head->bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_ok(ulp_store_put(f.trainer.store, head->key, head->bytes.data, head->bytes.used));
        head->bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(is_proper(ulp_follow(f.trainer.store, RUN, kept.text, NULL, NULL)));
    }
    assert_at(&f.trainer, "kept", BEHIND);
    assert_ok(ulp_store_put(f.trainer.store, head->key, head->bytes.data, head->bytes.used));
    assert_follows(&f.trainer, "kept");
    fixture_free(&f);
}

static void test_truncated_objects(void **unused) {
    struct fixture f = fixture_make(true);
    struct outcomes seen = {0};

    (void)unused;
    for (size_t i = 0; i < f.objects.count; i++) {
        const struct object *object = &f.objects.list[i];
        const size_t lengths[] = {0, object->bytes.used / 2, object->bytes.used - 1};

        for (size_t k = 0; object->bytes.used && k < COUNT(lengths); k++) {
            assert_ok(ulp_store_put(f.trainer.store, object->key, object->bytes.data, lengths[k]));
            check_both(&f, &seen);
            check_repaired(&f, object);
        }
    }
    assert_int_equal(seen.stale, 0);
    assert_true(seen.refused > 30 && seen.unharmed > 0);
    fixture_free(&f);
}

static void test_longer_objects(void **unused) {
    struct fixture f = fixture_make(true);
    struct outcomes seen = {0};

    (void)unused;
    for (size_t i = 0; i < f.objects.count; i++) {
        const struct object *object = &f.objects.list[i];

        object->bytes.data[object->bytes.used] = 0; /* there is room for one */
        assert_ok(ulp_store_put(f.trainer.store, object->key, object->bytes.data,
                                object->bytes.used + 1));
        check_both(&f, &seen);
        check_repaired(&f, object);
    }
    assert_int_equal(seen.stale, 0);
    assert_true(seen.refused > 10);
    fixture_free(&f);
}

/* Without a record a fresh follower may believe that the run ends in front of it. */
static void test_missing_objects(void **unused) {
    struct fixture f = fixture_make(true);
    struct outcomes seen = {0};

    (void)unused;
    for (size_t i = 0; i < f.objects.count; i++) {
        assert_ok(ulp_store_remove(f.trainer.store, f.objects.list[i].key));
        check_both(&f, &seen);
        check_repaired(&f, &f.objects.list[i]);
    }
    assert_true(seen.refused > 10 && seen.stale > 0);
    fixture_free(&f);
}

/* Each object under each other's name. */
static void test_swapped_objects(void **unused) {
    struct fixture f = fixture_make(true);
    struct outcomes seen = {0};

    (void)unused;
    for (size_t i = 0; i < f.objects.count; i++) {
        const struct object *other = &f.objects.list[(i + 1) % f.objects.count];

        assert_ok(ulp_store_put(f.trainer.store, f.objects.list[i].key, other->bytes.data,
                                other->bytes.used));
        check_both(&f, &seen);
        check_repaired(&f, &f.objects.list[i]);
    }
    assert_int_equal(seen.stale, 0);
    assert_true(seen.refused > 10);
    fixture_free(&f);
}

/* ---- logs that go back or fork ---- */

static void check_rollback(bool in_memory) {
    struct trainer t = trainer_make(1, in_memory);
    struct objects old, empty = {0};
    struct path state = below(&t, "state");

    trainer_publish(&t, NULL);
    trainer_publish(&t, NULL);
    old = objects_of(t.store);
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    objects_restore(t.store, &old);
    assert_fails(follow_to(&t, "f"), ULP_E_ROLLBACK, "3 records");
    assert_at(&t, "f", 2);
    assert_fails(ulp_publish(t.store, RUN, state.text, model_of(&t).text, 9, NULL, NULL),
                 ULP_E_ROLLBACK, "3 records");
    objects_restore(t.store, &empty);
    assert_fails(follow_to(&t, "f"), ULP_E_ROLLBACK, "3 records");
    assert_fails(ulp_publish(t.store, RUN, state.text, model_of(&t).text, 9, NULL, NULL),
                 ULP_E_ROLLBACK, "3 records");
    assert_at(&t, "f", 2);
    objects_free(&old);
    trainer_free(&t);
}

static void test_rollback(void **unused) {
    (void)unused;
    check_rollback(true);
    check_rollback(false);
}

/* The store is put back, and a publisher that does not know goes on from there: another history. */
static void test_forked_log(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct objects old;

    (void)unused;
    trainer_publish(&t, NULL);
    trainer_publish(&t, NULL);
    old = objects_of(t.store);
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    objects_restore(t.store, &old);
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(ulp_publish(t.store, RUN, below(&t, "other").text, model_of(&t).text, 50 + i,
                              NULL, NULL));
        assert_fails(follow_to(&t, "f"), ULP_E_FORK, "record 3");
        assert_at(&t, "f", 2);
    }
    assert_fails(
        ulp_publish(t.store, RUN, below(&t, "state").text, model_of(&t).text, 9, NULL, NULL),
        ULP_E_FORK, "record 3");
    objects_free(&old);
    trainer_free(&t);
}

/* Whether the other run is longer, shorter, or not there. */
static void test_the_directory_of_another_run(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct path f = below(&t, "f"), state2 = below(&t, "state2");

    (void)unused;
    trainer_publish(&t, NULL);
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    for (unsigned i = 0; i < 3; i++) {
        const enum ulp_status expected = i ? ULP_E_OTHER_RUN : ULP_E_ROLLBACK; /* shorter? */

        assert_ok(ulp_publish(t.store, "rl2", state2.text, model_of(&t).text, i, NULL, NULL));
        assert_fails(ulp_follow(t.store, "rl2", f.text, NULL, NULL), expected, "");
        assert_fails(ulp_publish(t.store, "rl2", f.text, model_of(&t).text, 9, NULL, NULL),
                     expected, "");
    }
    assert_fails(ulp_publish(t.store, "rl3", f.text, model_of(&t).text, 9, NULL, NULL),
                 ULP_E_ROLLBACK, "");
    assert_follows(&t, "f");
    trainer_free(&t);
}

/* ---- forged records ---- */

static void another_root(struct record *record) {
    record->root.bytes[3] ^= 1;
}

static void other_links(struct record *record) {
    record->ancestors[0].bytes[3] ^= 1;
    record->ancestors[1].bytes[3] ^= 1;
}

static void a_link_nobody_takes(struct record *record) {
    record->ancestors[0].bytes[3] ^= 1;
}

static void another_run(struct record *record) {
    record->run[3] ^= 1;
}

static void another_sequence(struct record *record) {
    record->sequence++;
}

static void no_anchors(struct record *record) {
    record->anchor_count = 0;
}

static void no_ways(struct record *record) {
    record->way_count = 0;
    record->anchor_count = 0;
}

/* Twice, since what the first try left must not make the second succeed. */
static void check_forged(void (*change)(struct record *), enum ulp_status behind,
                         enum ulp_status fresh) {
    struct fixture f = fixture_make(true);
    struct trainer *t = &f.trainer;

    put_followers_back(&f);
    forge(t->store, VERSIONS, NULL, change);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(follow_to(t, "behind"), behind);
        assert_on_the_way(t, "behind", BEHIND, true);
        assert_int_equal(follow_to(t, "fresh"), fresh);
        assert_on_the_way(t, "fresh", 0, false);
    }
    fixture_free(&f);
}

static void test_forged_records(void **unused) {
    (void)unused;
    check_forged(another_root, ULP_E_WRONG_RESULT, ULP_E_WRONG_RESULT);
    check_forged(other_links, ULP_E_FORK, ULP_E_CHAIN);
    check_forged(another_run, ULP_E_OTHER_RUN, ULP_E_OTHER_RUN);
    check_forged(another_sequence, ULP_E_CHAIN, ULP_E_CHAIN);
    check_forged(no_ways, ULP_E_UNREACHABLE, ULP_E_UNREACHABLE);
}

/* From record 4 everybody goes back to 2, and not over 3: only who checks the whole log sees it. */
static void test_a_link_nobody_takes(void **unused) {
    struct fixture f = fixture_make(true);
    struct ulp_run_health health = {0};

    (void)unused;
    put_followers_back(&f);
    forge(f.trainer.store, VERSIONS, NULL, a_link_nobody_takes);
    assert_follows(&f.trainer, "behind");
    assert_follows(&f.trainer, "fresh");
    assert_ok(ulp_run_check(f.trainer.store, RUN, NULL, NULL, &health));
    assert_int_equal(health.damaged, 1);
    fixture_free(&f);
}

/* Whoever holds the version before needs no anchor; a publisher does not go on without one. */
static void test_a_record_without_anchors(void **unused) {
    struct fixture f = fixture_make(true);
    struct trainer *t = &f.trainer;

    (void)unused;
    put_followers_back(&f);
    forge(t->store, VERSIONS, NULL, no_anchors);
    assert_follows(t, "behind");
    assert_fails(follow_to(t, "fresh"), ULP_E_UNREACHABLE, "anchor");
    assert_fails(
        ulp_publish(t->store, RUN, below(t, "behind").text, model_of(t).text, 9, NULL, NULL),
        ULP_E_UNREACHABLE, "without an anchor");
    fixture_free(&f);
}

/* The anchor of the only version has another root than the record says. */
static void test_an_anchor_of_another_root(void **unused) {
    struct trainer t = trainer_make(1, true);

    (void)unused;
    trainer_publish(&t, NULL);
    forge(t.store, 1, NULL, another_root);
    for (unsigned i = 0; i < 2; i++) {
        assert_fails(follow_to(&t, "f"), ULP_E_WRONG_RESULT, "root");
        assert_holds_nothing(&t, "f");
    }
    trainer_free(&t);
}

/* What nobody could read must not be written: it would be there for ever. */
static void test_a_record_that_is_too_large(void **unused) {
    struct trainer t = trainer_make(1, true);
    static struct way ways[LIMIT_WAYS + 1];
    static const struct part part = {.bytes = 1};
    static const struct stored_patch patch = {&part, 1};
    static const struct anchor anchor = {.reference = ""};
    struct record record = {
        .sequence = LIMIT_WAYS + 2, .ways = ways, .anchors = &anchor, .anchor_count = 1};
    struct log_entry entry = {0};

    (void)unused;
    for (size_t i = 0; i <= LIMIT_WAYS; i++)
        ways[i] = (struct way){.from = i, .to = i + 1, .patches = &patch, .patch_count = 1};
    record.version = record.way_count = LIMIT_WAYS + 1;
    assert_int_not_equal(log_append(t.store, RUN, &record, NULL, &entry), ULP_OK);
    assert_fails(log_read(t.store, RUN, record.sequence, &entry), ULP_E_NOT_FOUND, "");
    record.version = record.way_count = LIMIT_WAYS;
    assert_ok(log_append(t.store, RUN, &record, NULL, &entry));
    log_entry_release(&entry);
    assert_ok(log_read(t.store, RUN, record.sequence, &entry));
    log_entry_release(&entry);
    trainer_free(&t);
}

/* ---- directories ---- */

static void test_busy(void **unused) {
    struct trainer t = trainer_make(1, true);
    int lock;

    (void)unused;
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    lock = open(below(&t, "f/lock").text, O_RDWR);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    assert_fails(follow_to(&t, "f"), ULP_E_BUSY, "in use");
    assert_fails(ulp_publish(t.store, RUN, below(&t, "f").text, model_of(&t).text, 1, NULL, NULL),
                 ULP_E_BUSY, "in use");
    close(lock);
    assert_follows(&t, "f");
    trainer_free(&t);
}

static void test_a_damaged_mark(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct path seen = below(&t, "f/seen");
    struct bytes bytes;

    (void)unused;
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    bytes = file_bytes(seen.text);
    write_file(seen.text, bytes.data, bytes.used - 1);
    assert_fails(follow_to(&t, "f"), ULP_E_RECORD, "damaged");
    bytes.data[0] ^= 1;
    write_file(seen.text, bytes.data, bytes.used);
    assert_fails(follow_to(&t, "f"), ULP_E_RECORD, "damaged");
    assert_int_equal(unlink(seen.text), 0);
    assert_fails(follow_to(&t, "f"), ULP_E_OTHER_RUN, "of which run");
    bytes.data[0] ^= 1;
    write_file(seen.text, bytes.data, bytes.used);
    assert_follows(&t, "f");
    bytes_free(&bytes);
    trainer_free(&t);
}

static void test_a_foreign_link(void **unused) {
    struct trainer t = trainer_make(1, true);

    (void)unused;
    trainer_publish(&t, NULL);
    assert_ok(ulp_directory_make(below(&t, "f").text));
    assert_int_equal(symlink("../model", below(&t, "f/current").text), 0);
    assert_fails(follow_to(&t, "f"), ULP_E_FILE_KIND, "not ours");
    assert_holds_root(model_of(&t).text, &t.roots[0]);
    trainer_free(&t);
}

/* Weights on disk that are not what they were: it says so, and does not build on them. */
static void test_rotten_weights(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct path file = below(&t, "f/current/model.safetensors");
    struct bytes bytes;

    (void)unused;
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    bytes = file_bytes(file.text);
    bytes.data[bytes.used - 100] ^= 4;
    write_file(file.text, bytes.data, bytes.used);
    trainer_publish(&t, NULL);
    assert_fails(follow_to(&t, "f"), ULP_E_WRONG_BASE, "");
    bytes.data[bytes.used - 100] ^= 4;
    write_file(file.text, bytes.data, bytes.used);
    assert_follows(&t, "f");
    bytes_free(&bytes);
    trainer_free(&t);
}

static void test_rubbish_beside_the_versions(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct path rubbish = below(&t, "f/versions/00000000000000000001");

    (void)unused;
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    assert_ok(ulp_directory_make(rubbish.text));
    write_file(path_of(rubbish.text, "model.safetensors").text, "no", 2);
    assert_ok(ulp_directory_make(below(&t, "f/versions/.00000000000000000001.unfinished").text));
    trainer_publish(&t, NULL);
    assert_follows(&t, "f");
    assert_int_equal(entries_in(below(&t, "f/versions").text), 2);
    trainer_free(&t);
}

TEST_MAIN(test_flipped_bits, test_every_bit_of_the_head, test_truncated_objects,
          test_longer_objects, test_missing_objects, test_swapped_objects, test_rollback,
          test_forked_log, test_the_directory_of_another_run, test_forged_records,
          test_a_link_nobody_takes, test_a_record_without_anchors, test_an_anchor_of_another_root,
          test_a_record_that_is_too_large, test_busy, test_a_damaged_mark, test_a_foreign_link,
          test_rotten_weights, test_rubbish_beside_the_versions)
