// SPDX-License-Identifier: Apache-2.0
/* Ed25519 in builds without OpenSSL: what cannot be checked is refused, never let through. */
#include "hash/ed25519.h"

static enum ulp_status not_built(void) {
    return fail(ULP_E_UNSUPPORTED, "this build of ulpsync has no signatures: configure it with "
                                   "-DULPSYNC_OPENSSL=ON");
}

enum ulp_status ed25519_public(const uint8_t seed[ED25519_KEY_BYTES],
                               uint8_t ret_public[ED25519_KEY_BYTES]) {
    (void)seed;
    (void)ret_public;
    return not_built();
}

enum ulp_status ed25519_sign(const uint8_t seed[ED25519_KEY_BYTES], const void *data, size_t bytes,
                             uint8_t ret_signature[ED25519_SIGNATURE_BYTES]) {
    (void)seed;
    (void)data;
    (void)bytes;
    (void)ret_signature;
    return not_built();
}

enum ulp_status ed25519_verify(const uint8_t public_key[ED25519_KEY_BYTES], const void *data,
                               size_t bytes, const uint8_t signature[ED25519_SIGNATURE_BYTES]) {
    (void)public_key;
    (void)data;
    (void)bytes;
    (void)signature;
    return not_built();
}
