// SPDX-License-Identifier: Apache-2.0
/* A private key in memory, for all who sign. Nobody else needs to see the seed. */
#ifndef HASH_KEY_H
#define HASH_KEY_H

#include "hash/ed25519.h"

#include <ulpsync/key.h>

struct ulp_key {
    uint8_t seed[ED25519_KEY_BYTES];
    struct ulp_public_key public_key;
};

enum ulp_status key_new(const uint8_t seed[ED25519_KEY_BYTES], struct ulp_key **ret_key);

/* Wipes it; NULL is fine. */
void key_free(struct ulp_key *key);

/* Safe from several threads at once. */
enum ulp_status key_sign(const struct ulp_key *key, const void *data, size_t bytes,
                         uint8_t ret_signature[ED25519_SIGNATURE_BYTES]);

#endif
