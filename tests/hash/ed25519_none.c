// SPDX-License-Identifier: Apache-2.0
/* What a build without OpenSSL answers, seen in every build. */
#define ed25519_public none_public
#define ed25519_sign none_sign
#define ed25519_verify none_verify
#include "hash/ed25519_none.c" /* under names that leave the real ones alone */
#include "tests/test.h"

static void test_everything_is_refused_and_the_option_named(void **state) {
    static const uint8_t key[ED25519_KEY_BYTES];
    uint8_t out[ED25519_SIGNATURE_BYTES] = {7}, untouched[ED25519_SIGNATURE_BYTES] = {7};

    (void)state;
    assert_fails(none_public(key, out), ULP_E_UNSUPPORTED, "-DULPSYNC_OPENSSL=ON");
    assert_fails(none_sign(key, "x", 1, out), ULP_E_UNSUPPORTED, "-DULPSYNC_OPENSSL=ON");
    assert_fails(none_verify(key, "x", 1, out), ULP_E_UNSUPPORTED, "-DULPSYNC_OPENSSL=ON");
    assert_memory_equal(out, untouched, sizeof out);
}

TEST_MAIN(test_everything_is_refused_and_the_option_named)
