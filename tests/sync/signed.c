// SPDX-License-Identifier: Apache-2.0
/* Signed runs from end to end: who is trusted, and who may go on with a run. */
#include "hash/key.h"
#include "tests/sync/forge.h"
#include "tests/sync/live.h"

struct keys {
    struct ulp_key *own, *foreign;
    struct ulp_public_key public_own, public_foreign;
    struct ulp_run_options sign, sign_foreign, trust, trust_foreign;
};

static void keys_make(struct keys *keys) {
    *keys = (struct keys){0};
    assert_ok(ulp_key_generate(&keys->own));
    assert_ok(ulp_key_generate(&keys->foreign));
    assert_ok(ulp_key_public(keys->own, &keys->public_own));
    assert_ok(ulp_key_public(keys->foreign, &keys->public_foreign));
    keys->sign.sign = keys->own;
    keys->sign_foreign.sign = keys->foreign;
    keys->trust = (struct ulp_run_options){.trusted = &keys->public_own, .trusted_count = 1};
    keys->trust_foreign =
        (struct ulp_run_options){.trusted = &keys->public_foreign, .trusted_count = 1};
}

static void keys_free(struct keys *keys) {
    ulp_key_free(keys->own);
    ulp_key_free(keys->foreign);
}

static enum ulp_status follow(const struct trainer *t, const char *name,
                              const struct ulp_run_options *options) {
    return ulp_follow(t->store, RUN, below(t, name).text, options, NULL);
}

static enum ulp_status publish_with(struct trainer *t, const struct ulp_run_options *options) {
    struct ulp_publisher *publisher = NULL;
    enum ulp_status status;

    assert_ok(ulp_publisher_open(t->store, RUN, NULL, options, &publisher));
    status = ulp_publisher_publish(publisher, t->state.tensors, t->state.count, 99, NULL);
    if (status)
        assert_int_equal(
            ulp_publisher_publish(publisher, t->state.tensors, t->state.count, 99, NULL), status);
    ulp_publisher_close(publisher);
    return status;
}

static void check_end_to_end(bool store_in_memory) {
    struct trainer t = trainer_make(1, store_in_memory);
    struct keys keys;
    struct worker worker;
    struct ulp_run_record head;

    keys_make(&keys);
    worker = worker_make(&t, &keys.trust);
    for (unsigned i = 0; i < 10; i++) {
        if (i % 2)
            trainer_publish(&t, &keys.sign);
        else
            live_versions(&t, 1, &keys.sign);
        assert_ok(follow(&t, "f", &keys.trust));
        assert_at(&t, "f", i);
        assert_worker_follows(&worker, &t);
    }
    assert_ok(ulp_run_head(t.store, RUN, &head));
    assert_true(head.is_signed);
    assert_memory_equal(&head.signer, &keys.public_own, sizeof head.signer);
    worker_free(&worker);
    keys_free(&keys);
    trainer_free(&t);
}

static void test_end_to_end(void **unused) {
    (void)unused;
    check_end_to_end(true);
    check_end_to_end(false);
}

/* An anchor's record is signed as well. */
static void test_anchors(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;
    struct ulp_run_options options;

    (void)unused;
    keys_make(&keys);
    options = keys.sign;
    options.anchor_every = 8;
    live_versions(&t, 9, &options);
    live_anchor(&t, &options);
    assert_ok(follow(&t, "f", &keys.trust));
    assert_at(&t, "f", 8);
    keys_free(&keys);
    trainer_free(&t);
}

static void test_trusted_keys(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;
    struct ulp_public_key both[2];
    const struct ulp_run_options trust_both = {.trusted = both, .trusted_count = 2};

    (void)unused;
    keys_make(&keys);
    both[0] = keys.public_foreign;
    both[1] = keys.public_own;
    live_versions(&t, 3, &keys.sign);
    assert_fails(follow(&t, "f", &keys.trust_foreign), ULP_E_SIGNATURE, "not trusted");
    assert_holds_nothing(&t, "f");
    assert_ok(follow(&t, "f", &trust_both));
    live_versions(&t, 1, &keys.sign);
    assert_fails(follow(&t, "f", &keys.trust_foreign), ULP_E_SIGNATURE, "not trusted");
    assert_at(&t, "f", 2);
    assert_ok(follow(&t, "f", &keys.trust));
    assert_at(&t, "f", 3);
    keys_free(&keys);
    trainer_free(&t);
}

static void test_an_unsigned_run(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;

    (void)unused;
    keys_make(&keys);
    live_versions(&t, 2, NULL);
    assert_fails(follow(&t, "f", &keys.trust), ULP_E_UNSIGNED, "not signed");
    assert_holds_nothing(&t, "f");
    assert_follows(&t, "f");
    live_versions(&t, 1, NULL);
    assert_fails(follow(&t, "f", &keys.trust), ULP_E_UNSIGNED, "not signed");
    assert_at(&t, "f", 1);
    keys_free(&keys);
    trainer_free(&t);
}

/* Without trusted keys the first signature that was seen decides: in directories, and in memory
 * while the follower stays. */
static void check_first_use(const struct ulp_key *(*other)(const struct keys *),
                            enum ulp_status expected) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;
    struct worker worker;
    struct objects whole;

    keys_make(&keys);
    live_versions(&t, 2, &keys.sign);
    assert_follows(&t, "f");
    worker = worker_make(&t, NULL);
    assert_worker_follows(&worker, &t);
    live_versions(&t, 1, &keys.sign);
    whole = objects_of(t.store);
    forge(t.store, 3, other(&keys), unchanged);
    for (unsigned i = 0; i < 2; i++) {
        assert_fails(follow_to(&t, "f"), expected, "");
        assert_at(&t, "f", 1);
        assert_fails(ulp_follower_poll(worker.follower, NULL), expected, "");
        assert_worker_at(&worker, &t, 1);
    }
    objects_restore(t.store, &whole);
    assert_follows(&t, "f");
    assert_worker_follows(&worker, &t);
    objects_free(&whole);
    worker_free(&worker);
    keys_free(&keys);
    trainer_free(&t);
}

static const struct ulp_key *nobody(const struct keys *keys) {
    (void)keys;
    return NULL;
}

static const struct ulp_key *somebody(const struct keys *keys) {
    return keys->foreign;
}

static void test_trust_on_first_use(void **unused) {
    (void)unused;
    check_first_use(nobody, ULP_E_UNSIGNED);
    check_first_use(somebody, ULP_E_SIGNATURE);
}

/* A signature that is not one of these bytes. */
static void test_a_wrong_signature(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;
    struct log_entry head;
    struct hash hash;
    uint8_t bytes[4096];
    char key[ULP_KEY_BYTES_MAX + 1];

    (void)unused;
    keys_make(&keys);
    live_versions(&t, 2, &keys.sign);
    head = newest_record(t.store);
    assert_true(head.byte_count <= sizeof bytes);
    memcpy(bytes, head.bytes, head.byte_count);
    bytes[head.byte_count - SHA256_BYTES - 10] ^= 1;
    assert_ok(hash_of(bytes, head.byte_count - SHA256_BYTES, &hash));
    memcpy(bytes + head.byte_count - SHA256_BYTES, &hash, sizeof hash);
    record_key(RUN, 2, key);
    assert_ok(ulp_store_put(t.store, key, bytes, head.byte_count));
    assert_fails(follow(&t, "f", &keys.trust), ULP_E_SIGNATURE, "signature of record 2 is wrong");
    assert_fails(follow(&t, "f", NULL), ULP_E_SIGNATURE, "signature of record 2 is wrong");
    assert_holds_nothing(&t, "f");
    log_entry_release(&head);
    keys_free(&keys);
    trainer_free(&t);
}

/* Nothing is added, and whoever has the key goes on. */
static void test_publishing_to_a_signed_run(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;
    struct ulp_run_record head;

    (void)unused;
    keys_make(&keys);
    live_versions(&t, 2, &keys.sign);
    state_step(&t.state, 30);
    assert_fails(publish_with(&t, NULL), ULP_E_UNSIGNED, "needs its key");
    assert_fails(publish_with(&t, &keys.sign_foreign), ULP_E_SIGNATURE, "another key");
    assert_ok(ulp_run_head(t.store, RUN, &head));
    assert_int_equal(head.sequence, 2);
    live_versions(&t, 1, &keys.sign);
    assert_ok(follow(&t, "f", &keys.trust));
    assert_at(&t, "f", 2);
    keys_free(&keys);
    trainer_free(&t);
}

/* Whoever followed it unsigned goes on, and from then on wants signatures. */
static void test_a_run_that_becomes_signed(void **unused) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;

    (void)unused;
    keys_make(&keys);
    live_versions(&t, 2, NULL);
    assert_follows(&t, "f");
    live_versions(&t, 2, &keys.sign);
    assert_follows(&t, "f");
    assert_ok(follow(&t, "strict", &keys.trust));
    assert_at(&t, "strict", 3);
    assert_fails(publish_with(&t, NULL), ULP_E_UNSIGNED, "needs its key");
    forge_next(t.store, NULL, unchanged);
    assert_fails(follow_to(&t, "f"), ULP_E_UNSIGNED, "");
    assert_fails(follow(&t, "strict", &keys.trust), ULP_E_UNSIGNED, "");
    assert_at(&t, "f", 3);
    keys_free(&keys);
    trainer_free(&t);
}

/* ---- another key ---- */

static struct handover handover;

static void hand_over(struct record *record) {
    record->handovers = &handover;
    record->handover_count = 1;
}

/* The old key says so: who trusts it follows. Else nobody does. */
static void check_handover(bool genuine) {
    struct trainer t = trainer_make(1, true);
    struct keys keys;
    struct log_entry head;

    keys_make(&keys);
    live_versions(&t, 2, &keys.sign);
    assert_follows(&t, "f");
    head = newest_record(t.store);
    assert_ok(handover_make(&head.record, 3, keys.own, &keys.public_foreign, &handover));
    handover.signature[5] ^= !genuine;
    forge_next(t.store, keys.foreign, hand_over);
    live_versions(&t, 1, &keys.sign_foreign);
    if (genuine) {
        assert_follows(&t, "f");
        assert_ok(follow(&t, "strict", &keys.trust));
        assert_at(&t, "strict", 2);
        assert_fails(publish_with(&t, &keys.sign), ULP_E_SIGNATURE, "another key");
    } else {
        assert_fails(follow_to(&t, "f"), ULP_E_SIGNATURE, "not handed over");
        assert_at(&t, "f", 1);
        assert_fails(follow(&t, "strict", &keys.trust), ULP_E_SIGNATURE, "not handed over");
        assert_holds_nothing(&t, "strict");
    }
    log_entry_release(&head);
    keys_free(&keys);
    trainer_free(&t);
}

static void test_a_handover(void **unused) {
    (void)unused;
    check_handover(true);
    check_handover(false);
}

TEST_MAIN(test_end_to_end, test_anchors, test_trusted_keys, test_an_unsigned_run,
          test_trust_on_first_use, test_a_wrong_signature, test_publishing_to_a_signed_run,
          test_a_run_that_becomes_signed, test_a_handover)
