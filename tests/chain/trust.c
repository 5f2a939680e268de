// SPDX-License-Identifier: Apache-2.0
/* Whose records a follower takes. */
#include "chain/trust.h"

#include "hash/key.h"
#include "tests/chain/sample.h"

#define KEYS 6u

static struct ulp_key keys[KEYS];
static const struct trust nobody;

static void make_keys(void) {
    for (size_t i = 0; i < KEYS; i++) {
        memset(keys[i].seed, (int)i + 1, sizeof keys[i].seed);
        assert_ok(ed25519_public(keys[i].seed, keys[i].public_key.bytes));
    }
}

static struct trust only(size_t key) {
    return (struct trust){&keys[key].public_key, 1};
}

/* A record that was read, with the bytes that it was read from. */
struct received {
    struct arena arena;
    struct buffer bytes;
    struct record record;
};

static void receive(const struct record *record, const struct ulp_key *key,
                    struct received *ret_received) {
    *ret_received = (struct received){.bytes = written(record, key)};
    assert_ok(record_read(ret_received->bytes.data, ret_received->bytes.used, &ret_received->arena,
                          &ret_received->record));
}

static void received_release(struct received *received) {
    arena_release(&received->arena);
    buffer_release(&received->bytes);
}

static enum ulp_status check(struct trust trust, const struct received *seen,
                             const struct received *received) {
    return trust_check(&trust, seen ? &seen->record : NULL, &received->record, received->bytes.data,
                       received->bytes.used);
}

/* Key 0 handed over to 1, that to 2, ...: a sample with so many handovers. */
static struct sample *handed_over(size_t handovers) {
    struct sample *s = sample_new(1, 1);

    make_keys();
    assert_true(handovers <= SAMPLE_HANDOVERS);
    for (size_t i = 0; i < handovers; i++)
        assert_ok(handover_make(&s->record, 100 * (i + 1), &keys[i], &keys[i + 1].public_key,
                                &s->handovers[i]));
    s->record.handovers = s->handovers;
    s->record.handover_count = handovers;
    return s;
}

/* ---- without handovers ---- */

static void test_nobody_is_trusted(void **unused) {
    struct sample *s = handed_over(0);
    struct received plain, by_one, by_other;

    (void)unused;
    receive(&s->record, NULL, &plain);
    receive(&s->record, &keys[0], &by_one);
    receive(&s->record, &keys[4], &by_other);
    assert_ok(check(nobody, NULL, &plain));
    assert_ok(check(nobody, NULL, &by_one));
    assert_ok(check(nobody, &plain, &plain));
    assert_ok(check(nobody, &plain, &by_one)); /* from now on it is signed */
    assert_ok(check(nobody, &by_one, &by_one));
    assert_fails(check(nobody, &by_one, &plain), ULP_E_UNSIGNED, "record 1000 is not signed");
    assert_fails(check(nobody, &by_one, &by_other), ULP_E_SIGNATURE, "not trusted");
    received_release(&plain);
    received_release(&by_one);
    received_release(&by_other);
    free(s);
}

static void test_pinned_keys(void **unused) {
    struct sample *s = handed_over(0);
    struct ulp_public_key both[2];
    struct received plain, by_one, by_other;

    (void)unused;
    both[0] = keys[3].public_key;
    both[1] = keys[0].public_key;
    receive(&s->record, NULL, &plain);
    receive(&s->record, &keys[0], &by_one);
    receive(&s->record, &keys[4], &by_other);
    assert_ok(check(only(0), NULL, &by_one));
    assert_ok(check((struct trust){both, 2}, NULL, &by_one));
    assert_fails(check(only(0), NULL, &by_other), ULP_E_SIGNATURE, "not trusted");
    assert_fails(check((struct trust){both, 2}, NULL, &by_other), ULP_E_SIGNATURE, "not trusted");
    assert_fails(check(only(0), NULL, &plain), ULP_E_UNSIGNED, "");
    /* what was seen does not widen what is pinned, and does not narrow it */
    assert_fails(check(only(0), &by_other, &by_other), ULP_E_SIGNATURE, "not trusted");
    assert_fails(check(only(0), &plain, &plain), ULP_E_UNSIGNED, "");
    assert_ok(check(only(0), &by_other, &by_one));
    received_release(&plain);
    received_release(&by_one);
    received_release(&by_other);
    free(s);
}

/* The signature is of these bytes and by this key. */
static void test_forged_signatures(void **unused) {
    struct sample *s = handed_over(0);
    struct received received;
    uint8_t *signature, *signer;

    (void)unused;
    receive(&s->record, &keys[0], &received);
    signature = received.bytes.data + received.bytes.used - SHA256_BYTES - ED25519_SIGNATURE_BYTES;
    signer = signature - ED25519_KEY_BYTES;
    assert_ok(check(only(0), NULL, &received));
    signature[63] ^= 1;
    assert_fails(check(only(0), NULL, &received), ULP_E_SIGNATURE, "signature of record 1000");
    assert_fails(check(nobody, NULL, &received), ULP_E_SIGNATURE, "signature of record 1000");
    signature[63] ^= 1;
    received.bytes.data[100] ^= 1;
    assert_fails(check(only(0), NULL, &received), ULP_E_SIGNATURE, "signature of record 1000");
    received.bytes.data[100] ^= 1;
    /* somebody else's signature under a trusted name */
    assert_ok(key_sign(&keys[4], received.bytes.data, (size_t)(signature - received.bytes.data),
                       signature));
    assert_fails(check(only(0), NULL, &received), ULP_E_SIGNATURE, "signature of record 1000");
    /* and under their own, in bytes that name the trusted one */
    received.record.signer = keys[4].public_key;
    assert_fails(check(only(0), NULL, &received), ULP_E_SIGNATURE, "not trusted");
    assert_memory_equal(signer, keys[0].public_key.bytes, ED25519_KEY_BYTES);
    received_release(&received);
    free(s);
}

/* Of small order: R = B and s = 1 would sign everything. */
static void test_a_weak_key(void **unused) {
    struct sample *s = handed_over(0);
    struct ulp_public_key weak = {{1}};
    const struct trust trust = {&weak, 1};
    struct received received;
    uint8_t *signature;

    (void)unused;
    receive(&s->record, &keys[0], &received);
    signature = received.bytes.data + received.bytes.used - SHA256_BYTES - ED25519_SIGNATURE_BYTES;
    memcpy(signature - ED25519_KEY_BYTES, &weak, sizeof weak);
    memset(signature, 0, ED25519_SIGNATURE_BYTES);
    memset(signature, 0x66, 32);
    signature[0] = 0x58;
    signature[32] = 1;
    received.record.signer = weak;
    assert_int_equal(check(trust, NULL, &received), ULP_E_SIGNATURE);
    assert_int_equal(check(nobody, NULL, &received), ULP_E_SIGNATURE);
    received_release(&received);
    free(s);
}

/* ---- handovers ---- */

static void check_line(size_t handovers) {
    struct sample *s = handed_over(handovers), *before = handed_over(0);
    struct received received, plain;

    receive(&s->record, &keys[handovers], &received);
    receive(&before->record, NULL, &plain);
    for (size_t i = 0; i < KEYS; i++) {
        const enum ulp_status expected = i <= handovers ? ULP_OK : ULP_E_SIGNATURE;
        struct received seen;

        assert_int_equal(check(only(i), NULL, &received), expected);
        receive(&before->record, &keys[i], &seen);
        assert_int_equal(check(nobody, &seen, &received), expected);
        received_release(&seen);
    }
    assert_ok(check(nobody, NULL, &received));
    assert_ok(check(nobody, &plain, &received));
    received_release(&received);
    received_release(&plain);
    free(before);
    free(s);
}

static void test_lines_of_keys(void **unused) {
    (void)unused;
    for (size_t handovers = 1; handovers <= SAMPLE_HANDOVERS; handovers++)
        check_line(handovers);
}

/* Who was handed over to cannot be passed over by who handed over. */
static void test_an_old_key_goes_on(void **unused) {
    struct sample *s = handed_over(1), *old = handed_over(0);
    struct received seen, next;

    (void)unused;
    receive(&s->record, &keys[1], &seen);
    receive(&old->record, &keys[0], &next);
    assert_fails(check(nobody, &seen, &next), ULP_E_SIGNATURE, "forgets");
    assert_fails(check(only(0), &seen, &next), ULP_E_SIGNATURE, "forgets");
    received_release(&seen);
    received_release(&next);
    free(old);
    free(s);
}

/* Changes one thing about handover `which` of three; who trusts a key from `which` back notices. */
static void check_forged_handover(size_t which, void (*forge)(struct sample *, struct handover *)) {
    struct sample *s = handed_over(SAMPLE_HANDOVERS);
    struct received received;

    forge(s, &s->handovers[which]);
    receive(&s->record, &keys[SAMPLE_HANDOVERS], &received);
    for (size_t i = 0; i <= SAMPLE_HANDOVERS; i++) {
        enum ulp_status status = check(only(i), NULL, &received);

        assert_int_equal(status, i <= which ? ULP_E_SIGNATURE : ULP_OK);
        if (status)
            assert_non_null(strstr(ulp_last_error(), "was not handed over to it"));
    }
    received_release(&received);
    free(s);
}

static void other_signature(struct sample *s, struct handover *handover) {
    (void)s;
    handover->signature[5] ^= 0x10;
}

static void other_sequence(struct sample *s, struct handover *handover) {
    (void)s;
    handover->sequence++;
}

/* Made for another run, where the same keys were used. */
static void other_run(struct sample *s, struct handover *handover) {
    struct record other = s->record;
    struct handover made;

    other.run[3] ^= 1;
    for (size_t i = 0; i < KEYS; i++) {
        if (!memcmp(&keys[i].public_key, &handover->from, sizeof handover->from))
            assert_ok(handover_make(&other, handover->sequence, &keys[i], &handover->to, &made));
    }
    *handover = made;
}

/* Signed by who wants to have it. */
static void signed_by_the_heir(struct sample *s, struct handover *handover) {
    struct handover made;

    for (size_t i = 0; i < KEYS; i++) {
        if (!memcmp(&keys[i].public_key, &handover->to, sizeof handover->to))
            assert_ok(
                handover_make(&s->record, handover->sequence, &keys[i], &handover->to, &made));
    }
    memcpy(handover->signature, made.signature, sizeof made.signature);
}

static void test_forged_handovers(void **unused) {
    (void)unused;
    for (size_t which = 0; which < SAMPLE_HANDOVERS; which++) {
        check_forged_handover(which, other_signature);
        check_forged_handover(which, other_sequence);
        check_forged_handover(which, other_run);
        check_forged_handover(which, signed_by_the_heir);
    }
}

/* A line that somebody made of keys of their own, with the trusted one somewhere in it. */
static void test_a_line_through_a_trusted_key(void **unused) {
    struct sample *s = handed_over(0);
    struct received received;

    (void)unused;
    assert_ok(handover_make(&s->record, 5, &keys[3], &keys[0].public_key, &s->handovers[0]));
    s->handovers[1] = (struct handover){5 + 1, keys[0].public_key, keys[4].public_key, {0}};
    s->record.handover_count = 2;
    receive(&s->record, &keys[4], &received);
    assert_fails(check(only(0), NULL, &received), ULP_E_SIGNATURE, "was not handed over to it");
    assert_fails(check(only(3), NULL, &received), ULP_E_SIGNATURE, "was not handed over to it");
    received_release(&received);
    free(s);
}

/* Anybody could hand over what belongs to a weak key. */
static void test_a_handover_by_a_weak_key(void **unused) {
    struct sample *s = handed_over(0);
    struct ulp_public_key weak = {{1}};
    const struct trust trust = {&weak, 1};
    struct received received;
    struct handover *made = &s->handovers[0];

    (void)unused;
    *made = (struct handover){.sequence = 3, .from = weak, .to = keys[0].public_key};
    memset(made->signature, 0x66, 32);
    made->signature[0] = 0x58;
    made->signature[32] = 1;
    s->record.handover_count = 1;
    receive(&s->record, &keys[0], &received);
    assert_fails(check(trust, NULL, &received), ULP_E_SIGNATURE, "was not handed over to it");
    received_release(&received);
    free(s);
}

TEST_MAIN(test_nobody_is_trusted, test_pinned_keys, test_forged_signatures, test_a_weak_key,
          test_lines_of_keys, test_an_old_key_goes_on, test_forged_handovers,
          test_a_line_through_a_trusted_key, test_a_handover_by_a_weak_key)
