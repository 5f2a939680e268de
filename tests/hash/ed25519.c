// SPDX-License-Identifier: Apache-2.0
/* Ed25519: vectors of RFC 8032 (7.1), every flipped bit, and keys that must not be trusted. */
#include "hash/ed25519.h"
#include "hash/key.h"
#include "tests/test.h"

#include <openssl/err.h>

#define MESSAGE_BYTES_MAX 64u

struct vector {
    const char *seed, *public_key, *message, *signature;
};

/* TEST 1, TEST 2, TEST 3, TEST SHA(abc) */
static const struct vector vectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
     "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
     "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
     "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
     "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"},
};

#define VECTORS (sizeof vectors / sizeof vectors[0])

struct sample {
    uint8_t seed[ED25519_KEY_BYTES], public_key[ED25519_KEY_BYTES], message[MESSAGE_BYTES_MAX],
        signature[ED25519_SIGNATURE_BYTES];
    size_t message_bytes;
};

static size_t unhex(const char *hex, uint8_t *to) {
    size_t bytes = strlen(hex) / 2;

    for (size_t i = 0; i < bytes; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], 0};

        to[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return bytes;
}

static struct sample sample_of(const struct vector *vector) {
    struct sample sample = {0};

    assert_int_equal(unhex(vector->seed, sample.seed), ED25519_KEY_BYTES);
    assert_int_equal(unhex(vector->public_key, sample.public_key), ED25519_KEY_BYTES);
    sample.message_bytes = unhex(vector->message, sample.message);
    assert_int_equal(unhex(vector->signature, sample.signature), ED25519_SIGNATURE_BYTES);
    return sample;
}

static enum ulp_status verify(const struct sample *sample) {
    return ed25519_verify(sample->public_key, sample->message, sample->message_bytes,
                          sample->signature);
}

static void test_published_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < VECTORS; i++) {
        struct sample sample = sample_of(&vectors[i]);
        uint8_t public_key[ED25519_KEY_BYTES], signature[ED25519_SIGNATURE_BYTES];

        assert_ok(ed25519_public(sample.seed, public_key));
        assert_memory_equal(public_key, sample.public_key, sizeof public_key);
        assert_ok(ed25519_sign(sample.seed, sample.message, sample.message_bytes, signature));
        assert_memory_equal(signature, sample.signature, sizeof signature);
        assert_ok(verify(&sample));
    }
}

static void assert_every_bit_counts(struct sample *sample, uint8_t *bytes, size_t count) {
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_fails(verify(sample), ULP_E_SIGNATURE, "not this key's signature");
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_ok(verify(sample));
}

static void test_every_flipped_bit_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < VECTORS; i++) {
        struct sample sample = sample_of(&vectors[i]);

        assert_every_bit_counts(&sample, sample.signature, sizeof sample.signature);
        assert_every_bit_counts(&sample, sample.message, sample.message_bytes);
        assert_every_bit_counts(&sample, sample.public_key, sizeof sample.public_key);
    }
}

static void test_another_length_or_key_is_refused(void **state) {
    struct sample sample = sample_of(&vectors[3]), other = sample_of(&vectors[2]);

    (void)state;
    sample.message_bytes--;
    assert_fails(verify(&sample), ULP_E_SIGNATURE, "");
    sample.message_bytes++;
    memcpy(sample.public_key, other.public_key, sizeof sample.public_key);
    assert_fails(verify(&sample), ULP_E_SIGNATURE, "");
}

/* s + L instead of s would be a second signature of the same message. */
static void test_a_signature_has_one_form_only(void **state) {
    static const char order[] = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
    struct sample sample = sample_of(&vectors[1]);
    uint8_t add[ED25519_KEY_BYTES];
    unsigned carry = 0;

    (void)state;
    unhex(order, add);
    for (size_t i = 0; i < sizeof add; i++) {
        carry += (unsigned)sample.signature[32 + i] + add[i];
        sample.signature[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    assert_int_equal(carry, 0);
    assert_fails(verify(&sample), ULP_E_SIGNATURE, "");
}

/* With the neutral element as key, R = B and s = 1 sign every message. */
static void test_a_key_of_small_order_signs_nothing(void **state) {
    struct sample sample = {.public_key = {1}, .message = "anything", .message_bytes = 8};
    struct sample honest = sample_of(&vectors[0]);

    (void)state;
    memset(sample.signature, 0x66, 32);
    sample.signature[0] = 0x58;
    sample.signature[32] = 1;
    assert_fails(verify(&sample), ULP_E_SIGNATURE, "anybody can sign");
    sample.public_key[31] = 0x80; /* the same point, or none, with the other sign */
    assert_fails(verify(&sample), ULP_E_SIGNATURE, "anybody can sign");
    assert_false(ed25519_weak(honest.public_key));
}

static void test_weak_keys_are_the_seven_ways_to_write_small_order(void **state) {
    static const char *const weak[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"};

    (void)state;
    for (size_t i = 0; i < sizeof weak / sizeof weak[0]; i++) {
        uint8_t key[ED25519_KEY_BYTES];

        unhex(weak[i], key);
        assert_true(ed25519_weak(key));
        key[31] ^= 0x80;
        assert_true(ed25519_weak(key));
        key[0] ^= 0x04;
        assert_false(ed25519_weak(key));
    }
}

/* The queue of OpenSSL's errors is the program's, and not for us to fill. */
static void test_nothing_is_left_in_the_queue_of_openssl(void **state) {
    struct sample sample = sample_of(&vectors[2]);

    (void)state;
    ERR_clear_error();
    sample.signature[63] = 0xff;
    assert_fails(verify(&sample), ULP_E_SIGNATURE, "");
    memset(sample.public_key, 0x55, sizeof sample.public_key);
    assert_fails(verify(&sample), ULP_E_SIGNATURE, "");
    assert_int_equal(ERR_peek_error(), 0);
}

static void test_nothing_at_no_place_can_be_signed(void **state) {
    struct sample sample = sample_of(&vectors[0]);
    uint8_t signature[ED25519_SIGNATURE_BYTES];

    (void)state;
    assert_ok(ed25519_sign(sample.seed, NULL, 0, signature));
    assert_memory_equal(signature, sample.signature, sizeof signature);
    assert_ok(ed25519_verify(sample.public_key, NULL, 0, signature));
}

static void test_a_key_in_memory_signs_the_same(void **state) {
    struct sample sample = sample_of(&vectors[3]);
    uint8_t signature[ED25519_SIGNATURE_BYTES];
    struct ulp_public_key public_key;
    struct ulp_key *key = NULL;

    (void)state;
    assert_ok(key_new(sample.seed, &key));
    assert_ok(ulp_key_public(key, &public_key));
    assert_memory_equal(public_key.bytes, sample.public_key, sizeof public_key);
    assert_ok(key_sign(key, sample.message, sample.message_bytes, signature));
    assert_memory_equal(signature, sample.signature, sizeof signature);
    key_free(key);
}

TEST_MAIN(test_published_vectors, test_every_flipped_bit_is_refused,
          test_another_length_or_key_is_refused, test_a_signature_has_one_form_only,
          test_a_key_of_small_order_signs_nothing,
          test_weak_keys_are_the_seven_ways_to_write_small_order,
          test_nothing_is_left_in_the_queue_of_openssl, test_nothing_at_no_place_can_be_signed,
          test_a_key_in_memory_signs_the_same)
