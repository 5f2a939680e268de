// SPDX-License-Identifier: Apache-2.0
/* Signed records, and those that say who signs from when on. */
#include "base/cursor.h"
#include "base/limits.h"
#include "chain/record.h"
#include "chain/trust.h"
#include "hash/key.h"
#include "tests/chain/sample.h"

static struct ulp_key keys[LIMIT_HANDOVERS + 2];

static void make_keys(void) {
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        memset(keys[i].seed, (int)i + 1, sizeof keys[i].seed);
        assert_ok(ed25519_public(keys[i].seed, keys[i].public_key.bytes));
    }
}

/* A record with `handovers` handovers, that key number `handovers` signs. */
static struct sample *signed_sample(size_t handovers) {
    struct sample *s = sample_new(1, 2);

    make_keys();
    for (size_t i = 0; i < handovers; i++)
        assert_ok(handover_make(&s->record, 100 * (i + 1), &keys[i], &keys[i + 1].public_key,
                                &s->handovers[i]));
    s->record.handovers = s->handovers;
    s->record.handover_count = handovers;
    return s;
}

static void check_round_trip(size_t handovers) {
    struct sample *s = signed_sample(handovers);
    struct buffer bytes = written(&s->record, &keys[handovers]), again;
    struct arena arena = {0};
    struct record record = {0};

    assert_ok(record_read(bytes.data, bytes.used, &arena, &record));
    assert_same_record(&s->record, &record);
    assert_true(record.is_signed);
    assert_memory_equal(&record.signer, &keys[handovers].public_key, sizeof record.signer);
    again = written(&record, &keys[handovers]);
    assert_int_equal(again.used, bytes.used);
    assert_memory_equal(again.data, bytes.data, bytes.used);
    assert_ok(read_exactly(bytes.data, bytes.used));
    arena_release(&arena);
    buffer_release(&again);
    buffer_release(&bytes);
    free(s);
}

static void test_round_trips(void **unused) {
    (void)unused;
    for (size_t handovers = 0; handovers <= SAMPLE_HANDOVERS; handovers++)
        check_round_trip(handovers);
}

/* Where it stands in a buffer does not matter to the signature. */
static void test_written_behind_something(void **unused) {
    struct sample *s = signed_sample(1);
    struct buffer bytes = BUFFER(1 << 20), alone = written(&s->record, &keys[1]);

    (void)unused;
    assert_ok(buffer_append(&bytes, "before", 6));
    assert_ok(record_write(&s->record, &keys[1], &bytes));
    assert_int_equal(bytes.used, 6 + alone.used);
    assert_memory_equal(bytes.data + 6, alone.data, alone.used);
    buffer_release(&bytes);
    buffer_release(&alone);
    free(s);
}

/* What a follower with a trusted key says of these bytes, whose hash is mended. */
static enum ulp_status trusted(const uint8_t *data, size_t count, const struct trust *trust) {
    struct buffer bytes = forged(data, count);
    struct arena arena = {0};
    struct record record;
    enum ulp_status status = record_read(bytes.data, bytes.used, &arena, &record);

    if (!status) {
        assert_canonical(&record, bytes.data, bytes.used);
        status = trust_check(trust, NULL, &record, bytes.data, bytes.used);
    }
    arena_release(&arena);
    buffer_release(&bytes);
    return status;
}

/* As it would be damaged: refused by its hash. As it would be forged: what is still a record is not
 * one that a trusted key has signed. */
static void check_every_bit(size_t handovers, const struct trust *trust) {
    struct sample *s = signed_sample(handovers);
    struct buffer bytes = written(&s->record, &keys[handovers]);
    const size_t count = bytes.used - SHA256_BYTES;
    unsigned by_signature = 0;

    assert_ok(trusted(bytes.data, count, trust));
    for (size_t bit = 0; bit < 8 * count; bit++) {
        enum ulp_status status;

        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(is_refusal(read_exactly(bytes.data, bytes.used)));
        status = trusted(bytes.data, count, trust);
        assert_true(is_refusal(status) || status == ULP_E_UNSIGNED);
        by_signature += status == ULP_E_SIGNATURE;
        if (bit >= 8 * (count - ED25519_SIGNATURE_BYTES)) /* all that it says is right */
            assert_int_equal(status, ULP_E_SIGNATURE);
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(by_signature > 8 * count / 2);
    buffer_release(&bytes);
    free(s);
}

static void test_every_bit_and_a_trusted_key(void **unused) {
    (void)unused;
    make_keys();
    check_every_bit(0, &(struct trust){&keys[0].public_key, 1});
    check_every_bit(2, &(struct trust){&keys[0].public_key, 1});
}

/* Without any trusted key a signature that is there must be right, too. */
static void test_every_bit_and_no_trusted_key(void **unused) {
    (void)unused;
    check_every_bit(1, &(struct trust){0});
}

static void test_every_truncation(void **unused) {
    struct sample *s = signed_sample(2);
    struct buffer bytes = written(&s->record, &keys[2]);

    (void)unused;
    for (size_t length = 0; length < bytes.used; length++) {
        assert_true(is_refusal(read_exactly(bytes.data, length)));
        if (length < bytes.used - SHA256_BYTES)
            assert_true(is_refusal(read_forged(bytes.data, length)));
    }
    buffer_release(&bytes);
    free(s);
}

/* ---- handovers ---- */

static void assert_refused(const struct record *record, const struct ulp_key *key,
                           enum ulp_status expected, const char *text) {
    struct buffer bytes = written(record, key);
    struct arena arena = {0};
    struct record read;

    assert_fails(record_read(bytes.data, bytes.used, &arena, &read), expected, text);
    arena_release(&arena);
    buffer_release(&bytes);
}

static void test_order_of_handovers(void **unused) {
    struct sample *s = signed_sample(3);

    (void)unused;
    s->handovers[1].sequence = s->handovers[0].sequence;
    assert_refused(&s->record, &keys[3], ULP_E_RECORD, "handovers that do not follow");
    s->handovers[1].sequence = s->handovers[2].sequence + 1;
    assert_refused(&s->record, &keys[3], ULP_E_RECORD, "handovers that do not follow");
    s->handovers[1].sequence = s->handovers[0].sequence + 1;
    s->handovers[2].sequence = s->record.sequence + 1;
    assert_refused(&s->record, &keys[3], ULP_E_RECORD, "");
    s->handovers[2].sequence = s->record.sequence;
    s->handovers[1].from.bytes[0] ^= 1;
    assert_refused(&s->record, &keys[3], ULP_E_RECORD, "handovers that do not follow");
    free(s);
}

static void test_the_last_one_signs(void **unused) {
    struct sample *s = signed_sample(2);

    (void)unused;
    assert_refused(&s->record, &keys[1], ULP_E_SIGNATURE, "another key");
    assert_refused(&s->record, NULL, ULP_E_SIGNATURE, "another key");
    s->handovers[1].to.bytes[31] ^= 1;
    assert_refused(&s->record, &keys[2], ULP_E_SIGNATURE, "another key");
    free(s);
}

static void test_number_of_handovers(void **unused) {
    static struct handover handovers[LIMIT_HANDOVERS + 1];
    struct record record = {.sequence = 1000, .handovers = handovers};
    struct buffer bytes;

    (void)unused;
    make_keys();
    for (size_t i = 0; i <= LIMIT_HANDOVERS; i++)
        assert_ok(handover_make(&record, i + 1, &keys[i], &keys[i + 1].public_key, &handovers[i]));
    record.handover_count = LIMIT_HANDOVERS;
    bytes = written(&record, &keys[LIMIT_HANDOVERS]);
    assert_ok(read_exactly(bytes.data, bytes.used));
    assert_ok(
        trusted(bytes.data, bytes.used - SHA256_BYTES, &(struct trust){&keys[0].public_key, 1}));
    buffer_release(&bytes);
    record.handover_count = LIMIT_HANDOVERS + 1;
    assert_refused(&record, &keys[LIMIT_HANDOVERS + 1], ULP_E_RECORD, "");
}

TEST_MAIN(test_round_trips, test_written_behind_something, test_every_bit_and_a_trusted_key,
          test_every_bit_and_no_trusted_key, test_every_truncation, test_order_of_handovers,
          test_the_last_one_signs, test_number_of_handovers)
