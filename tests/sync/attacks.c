// SPDX-License-Identifier: Apache-2.0
/*
 * Somebody who has the store in his hands: each attack is refused with a code of its own, whoever
 * follows keeps exactly what it held, and when the store is as it was, goes on to the newest version
 * (I2, I4, I7, I8). The run is signed, and the attacker does not have the key, unless a test says so.
 */
#define _DEFAULT_SOURCE /* readlink */
#include "base/clock.h"
#include "tests/sync/forge.h"
#include "tests/sync/live.h"

#include <dirent.h>
#include <unistd.h>

#define BEHIND 1u
#define VERSIONS 7u

/* A follower in a directory and one in memory that have seen record 2, and a run of 7. */
struct scene {
    struct trainer t;
    struct ulp_key *key, *foreign;
    struct ulp_public_key public_key;
    struct ulp_run_options follow;
    struct worker worker;
    struct objects whole;
};

static void scene_make(struct scene *s, bool store_in_memory, bool is_signed) {
    struct ulp_run_options publish = {0};

    *s = (struct scene){.t = trainer_make(1, store_in_memory),
                        .follow = {.max_age_ms = 3600 * 1000}};
    assert_ok(ulp_key_generate(&s->key));
    assert_ok(ulp_key_generate(&s->foreign));
    assert_ok(ulp_key_public(s->key, &s->public_key));
    if (is_signed) {
        publish.sign = s->key;
        s->follow.trusted = &s->public_key;
        s->follow.trusted_count = 1;
    }
    live_versions(&s->t, BEHIND + 1, &publish);
    assert_ok(ulp_follow(s->t.store, RUN, below(&s->t, "f").text, &s->follow, NULL));
    s->worker = worker_make(&s->t, &s->follow);
    assert_worker_follows(&s->worker, &s->t);
    live_versions(&s->t, VERSIONS - BEHIND - 1, &publish);
    s->whole = objects_of(s->t.store);
}

static void scene_free(struct scene *s) {
    objects_free(&s->whole);
    worker_free(&s->worker);
    ulp_key_free(s->key);
    ulp_key_free(s->foreign);
    trainer_free(&s->t);
}

/* Twice, since what the first try left must not make the second succeed. */
static void assert_refused(struct scene *s, const char *name, unsigned held,
                           enum ulp_status expected) {
    struct path directory = below(&s->t, name);
    struct bytes before = directory_bytes(path_of(directory.text, "current").text), after;

    for (unsigned i = 0; i < 2; i++) {
        assert_fails(ulp_follow(s->t.store, RUN, directory.text, &s->follow, NULL), expected, "");
        assert_at(&s->t, name, held);
    }
    after = directory_bytes(path_of(directory.text, "current").text);
    assert_same_bytes(&before, &after);
    bytes_free(&before);
    bytes_free(&after);
}

static void assert_worker_refuses(struct scene *s, enum ulp_status expected) {
    struct state before = state_copy(&s->worker.state);

    for (unsigned i = 0; i < 2; i++) {
        assert_fails(ulp_follower_poll(s->worker.follower, NULL), expected, "");
        assert_fails(ulp_follower_apply(s->worker.follower, NULL), ULP_E_USAGE, "");
    }
    assert_same_state(&s->worker.state, &before);
    state_free(&before);
}

static void assert_recovers(struct scene *s) {
    objects_restore(s->t.store, &s->whole);
    assert_ok(ulp_follow(s->t.store, RUN, below(&s->t, "f").text, &s->follow, NULL));
    assert_at(&s->t, "f", VERSIONS - 1);
    assert_worker_follows(&s->worker, &s->t);
}

static void hide_records_behind(struct scene *s, uint64_t last) {
    for (uint64_t sequence = VERSIONS; sequence > last; sequence--) {
        char key[ULP_KEY_BYTES_MAX + 1];

        record_key(RUN, sequence, key);
        assert_ok(ulp_store_remove(s->t.store, key));
    }
}

typedef void (*attack)(struct scene *scene);

static void check(attack attack, enum ulp_status expected, bool is_signed) {
    for (unsigned i = 0; i < 2; i++) {
        struct scene s;

        scene_make(&s, i == 0, is_signed);
        attack(&s);
        assert_refused(&s, "f", BEHIND, expected);
        assert_worker_refuses(&s, expected);
        assert_recovers(&s);
        scene_free(&s);
    }
}

/* ---- rollback: the store as it was ---- */

static void check_rollback(bool store_in_memory) {
    struct scene s;

    scene_make(&s, store_in_memory, true);
    assert_ok(ulp_follow(s.t.store, RUN, below(&s.t, "ahead").text, &s.follow, NULL));
    hide_records_behind(&s, 3);
    assert_refused(&s, "ahead", VERSIONS - 1, ULP_E_ROLLBACK);
    assert_recovers(&s);
    assert_ok(ulp_follow(s.t.store, RUN, below(&s.t, "ahead").text, &s.follow, NULL));
    scene_free(&s);
}

static void test_rollback(void **unused) {
    (void)unused;
    check_rollback(true);
    check_rollback(false);
}

/* ---- freeze: newer records are hidden ---- */

static uint64_t late_ns;

static uint64_t no_time(void *user) {
    (void)user;
    return 0;
}

static uint64_t later(void *user) {
    (void)user;
    return late_ns;
}

static void no_sleep(void *user, uint64_t duration_ns) {
    (void)user;
    (void)duration_ns;
}

static void check_freeze(bool store_in_memory) {
    static const struct clock_hooks hooks = {no_time, later, no_sleep, NULL};
    struct scene s;

    scene_make(&s, store_in_memory, true);
    hide_records_behind(&s, BEHIND + 1);
    late_ns = clock_wall_ns() + (uint64_t)2 * 3600 * 1000000000;
    clock_install(&hooks);
    assert_refused(&s, "f", BEHIND, ULP_E_FROZEN);
    assert_worker_refuses(&s, ULP_E_FROZEN);
    clock_install(NULL);
    assert_recovers(&s);
    scene_free(&s);
}

static void test_freeze(void **unused) {
    (void)unused;
    check_freeze(true);
    check_freeze(false);
}

/* ---- fast-forward: versions are left out ---- */

static void skip_a_version(struct record *record) {
    record->version += 2;
}

static void fast_forward(struct scene *s) {
    hide_records_behind(s, BEHIND + 2);
    forge(s->t.store, BEHIND + 2, s->key, skip_a_version);
}

/* Where records that only changed the map came before, the number alone does not tell. */
static void check_fast_forward_by_little(bool store_in_memory) {
    struct scene s;
    char key[ULP_KEY_BYTES_MAX + 1];

    scene_make(&s, store_in_memory, true);
    hide_records_behind(&s, BEHIND + 1);
    forge_next(s.t.store, s.key, unchanged);
    forge_next(s.t.store, s.key, unchanged);
    s.t.count = BEHIND + 1;
    assert_ok(ulp_follow(s.t.store, RUN, below(&s.t, "f").text, &s.follow, NULL));
    assert_worker_follows(&s.worker, &s.t);
    forge_next(s.t.store, s.key, skip_a_version);
    assert_refused(&s, "f", BEHIND, ULP_E_JUMP);
    assert_worker_refuses(&s, ULP_E_JUMP);
    record_key(RUN, BEHIND + 4, key);
    assert_ok(ulp_store_remove(s.t.store, key));
    live_versions(&s.t, 1, &(struct ulp_run_options){.sign = s.key});
    assert_ok(ulp_follow(s.t.store, RUN, below(&s.t, "f").text, &s.follow, NULL));
    assert_at(&s.t, "f", BEHIND + 1);
    assert_worker_follows(&s.worker, &s.t);
    scene_free(&s);
}

static void test_fast_forward(void **unused) {
    (void)unused;
    check(fast_forward, ULP_E_JUMP, true);
    check_fast_forward_by_little(true);
    check_fast_forward_by_little(false);
}

/* ---- parts ---- */

static const struct part *patch_part(const struct log_entry *head, unsigned way) {
    return &head->record.ways[way].patches[0].parts[0];
}

/* The bytes of one patch where another should be. */
static void mix_and_match(struct scene *s) {
    struct log_entry head = newest_record(s->t.store);
    char one[ULP_KEY_BYTES_MAX + 1], other[ULP_KEY_BYTES_MAX + 1];

    part_key(RUN, patch_part(&head, BEHIND), one);
    part_key(RUN, patch_part(&head, BEHIND + 1), other);
    for (size_t i = 0; i < s->whole.count; i++) {
        const struct object *object = &s->whole.list[i];

        if (!strcmp(object->key, one))
            assert_ok(ulp_store_put(s->t.store, other, object->bytes.data, object->bytes.used));
        if (!strcmp(object->key, other))
            assert_ok(ulp_store_put(s->t.store, one, object->bytes.data, object->bytes.used));
    }
    log_entry_release(&head);
}

static void test_mix_and_match(void **unused) {
    (void)unused;
    check(mix_and_match, ULP_E_PART, true);
}

static void lose_a_part(struct scene *s) {
    struct log_entry head = newest_record(s->t.store);
    char key[ULP_KEY_BYTES_MAX + 1];

    for (unsigned i = 0; i < 2; i++) { /* the next patch, and the anchor's file */
        part_key(RUN, i ? &head.record.anchors[0].files[0].part : patch_part(&head, BEHIND), key);
        assert_ok(ulp_store_remove(s->t.store, key));
    }
    log_entry_release(&head);
}

static void test_a_missing_part(void **unused) {
    (void)unused;
    check(lose_a_part, ULP_E_PART_MISSING, true);
}

/* ---- the log ---- */

static void another_time(struct record *record) {
    record->time_ms++;
}

/* Whether a file in the directory holds these bytes. */
static bool is_kept(struct path directory, const struct bytes *record) {
    DIR *list = opendir(directory.text);
    struct dirent *entry;
    bool found = false;

    assert_non_null(list);
    while ((entry = readdir(list))) {
        struct bytes bytes;

        if (strncmp(entry->d_name, "fork-", 5) != 0)
            continue;
        assert_non_null(strstr(entry->d_name, ".record"));
        bytes = file_bytes(path_of(directory.text, entry->d_name).text);
        found = found ||
                (bytes.used == record->used && !memcmp(bytes.data, record->data, record->used));
        bytes_free(&bytes);
    }
    closedir(list);
    return found;
}

/* The publisher itself, or who has its key, signs two records with one number: both are kept. */
static void check_equivocation(bool store_in_memory, bool goes_on) {
    struct scene s;
    struct objects forked;
    struct path f;
    char key[ULP_KEY_BYTES_MAX + 1];
    unsigned kept = 0;

    scene_make(&s, store_in_memory, true);
    f = below(&s.t, "f");
    hide_records_behind(&s, BEHIND + 1);
    forge(s.t.store, BEHIND + 1, s.key, another_time);
    if (goes_on)
        forge_next(s.t.store, s.key, unchanged);
    forked = objects_of(s.t.store);
    assert_refused(&s, "f", BEHIND, ULP_E_FORK);
    if (goes_on)
        assert_worker_refuses(&s, ULP_E_FORK);
    record_key(RUN, BEHIND + 1, key);
    for (size_t i = 0; i < s.whole.count; i++)
        kept += !strcmp(s.whole.list[i].key, key) && is_kept(f, &s.whole.list[i].bytes);
    for (size_t i = 0; i < forked.count; i++)
        kept += !strcmp(forked.list[i].key, key) && is_kept(f, &forked.list[i].bytes);
    assert_int_equal(kept, 2);
    assert_recovers(&s);
    objects_free(&forked);
    scene_free(&s);
}

static void test_equivocation(void **unused) {
    (void)unused;
    check_equivocation(true, false);
    check_equivocation(false, false);
    check_equivocation(true, true);
}

/* Another run of the same trainer, with the same key, under this one's name. */
static void replay(struct scene *s) {
    struct trainer other = trainer_make(1, true);
    const struct ulp_run_options publish = {.sign = s->key};
    struct objects objects;

    live_versions(&other, VERSIONS, &publish);
    objects = objects_of(other.store);
    for (size_t i = 0; i < objects.count; i++)
        assert_ok(ulp_store_put(s->t.store, objects.list[i].key, objects.list[i].bytes.data,
                                objects.list[i].bytes.used));
    objects_free(&objects);
    trainer_free(&other);
}

static void test_cross_run_replay(void **unused) {
    (void)unused;
    check(replay, ULP_E_OTHER_RUN, true);
}

static void strip(struct scene *s) {
    forge(s->t.store, VERSIONS, NULL, unchanged);
}

static void test_stripped_signature(void **unused) {
    (void)unused;
    check(strip, ULP_E_UNSIGNED, true);
}

static void sign_foreign(struct scene *s) {
    forge(s->t.store, VERSIONS, s->foreign, unchanged);
}

static void test_foreign_signature(void **unused) {
    (void)unused;
    check(sign_foreign, ULP_E_SIGNATURE, true);
}

/* Between record 7 and record 2, which was seen, lies 4: it is another one. */
static void forge_a_link(struct scene *s) {
    forge(s->t.store, 4, NULL, another_time);
}

static void test_forged_link(void **unused) {
    (void)unused;
    check(forge_a_link, ULP_E_CHAIN, true);
    check(forge_a_link, ULP_E_CHAIN, false);
}

static void damage_the_head(struct scene *s) {
    struct log_entry head = newest_record(s->t.store);
    uint8_t bytes[8192];
    char key[ULP_KEY_BYTES_MAX + 1];

    assert_true(head.byte_count <= sizeof bytes);
    memcpy(bytes, head.bytes, head.byte_count);
    bytes[head.byte_count / 2] ^= 0x10;
    record_key(RUN, VERSIONS, key);
    assert_ok(ulp_store_put(s->t.store, key, bytes, head.byte_count));
    log_entry_release(&head);
}

static void test_damaged_record(void **unused) {
    (void)unused;
    check(damage_the_head, ULP_E_CHECKSUM, true);
    check(damage_the_head, ULP_E_CHECKSUM, false);
}

TEST_MAIN(test_rollback, test_freeze, test_fast_forward, test_mix_and_match, test_a_missing_part,
          test_equivocation, test_cross_run_replay, test_stripped_signature, test_foreign_signature,
          test_forged_link, test_damaged_record)
