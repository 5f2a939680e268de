// SPDX-License-Identifier: Apache-2.0
#include "hash/ed25519.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

/* What one operation needs. OpenSSL wipes the seed that it copied when the key is freed. */
struct operation {
    EVP_PKEY *key;
    EVP_MD_CTX *context;
};

/* OpenSSL's queue of errors belongs to the program that this library is part of. */
static void begin(struct operation *operation) {
    *operation = (struct operation){0};
    ERR_set_mark();
}

static void end(struct operation *operation) {
    EVP_MD_CTX_free(operation->context);
    EVP_PKEY_free(operation->key);
    ERR_pop_to_mark();
}

static enum ulp_status openssl_failed(const char *doing) {
    return fail(ULP_E_UNSUPPORTED,
                "OpenSSL refused to %s with Ed25519; does its configuration forbid it (FIPS)?",
                doing);
}

/* Nothing may be signed at no place. */
static const void *at_a_place(const void *data) {
    return data ? data : "";
}

enum ulp_status ed25519_public(const uint8_t seed[ED25519_KEY_BYTES],
                               uint8_t ret_public[ED25519_KEY_BYTES]) {
    uint8_t public_key[ED25519_KEY_BYTES];
    size_t bytes = sizeof public_key;
    struct operation make;
    enum ulp_status status = ULP_OK;

    begin(&make);
    make.key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, ED25519_KEY_BYTES);
    if (!make.key || EVP_PKEY_get_raw_public_key(make.key, public_key, &bytes) != 1 ||
        bytes != sizeof public_key)
        status = openssl_failed("make a key");
    else
        memcpy(ret_public, public_key, sizeof public_key);
    end(&make);
    return status;
}

enum ulp_status ed25519_sign(const uint8_t seed[ED25519_KEY_BYTES], const void *data, size_t bytes,
                             uint8_t ret_signature[ED25519_SIGNATURE_BYTES]) {
    uint8_t signature[ED25519_SIGNATURE_BYTES];
    size_t length = sizeof signature;
    struct operation sign;
    enum ulp_status status = ULP_OK;

    begin(&sign);
    sign.key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, ED25519_KEY_BYTES);
    sign.context = EVP_MD_CTX_new();
    if (!sign.key || !sign.context ||
        EVP_DigestSignInit(sign.context, NULL, NULL, NULL, sign.key) != 1 ||
        EVP_DigestSign(sign.context, signature, &length, at_a_place(data), bytes) != 1 ||
        length != sizeof signature)
        status = openssl_failed("sign");
    else
        memcpy(ret_signature, signature, sizeof signature);
    end(&sign);
    return status;
}

enum ulp_status ed25519_verify(const uint8_t public_key[ED25519_KEY_BYTES], const void *data,
                               size_t bytes, const uint8_t signature[ED25519_SIGNATURE_BYTES]) {
    struct operation verify;
    enum ulp_status status = ULP_OK;

    if (ed25519_weak(public_key))
        return fail(ULP_E_SIGNATURE, "anybody can sign with this key; trust another");
    begin(&verify);
    verify.key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, ED25519_KEY_BYTES);
    verify.context = EVP_MD_CTX_new();
    if (!verify.key || !verify.context ||
        EVP_DigestVerifyInit(verify.context, NULL, NULL, NULL, verify.key) != 1)
        status = openssl_failed("verify");
    else if (EVP_DigestVerify(verify.context, signature, ED25519_SIGNATURE_BYTES, at_a_place(data),
                              bytes) != 1)
        status = fail(ULP_E_SIGNATURE, "the signature is not this key's signature of these bytes");
    end(&verify);
    return status;
}
