// SPDX-License-Identifier: Apache-2.0
#include "hash/key.h"

#include "base/memory.h"

#include <string.h>

enum ulp_status key_new(const uint8_t seed[ED25519_KEY_BYTES], struct ulp_key **ret_key) {
    struct ulp_key *key = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *key, &key);

    if (status)
        return status;
    memcpy(key->seed, seed, sizeof key->seed);
    status = ed25519_public(seed, key->public_key.bytes);
    if (status)
        key_free(key);
    else
        *ret_key = key;
    return status;
}

void key_free(struct ulp_key *key) {
    if (!key)
        return;
    mem_wipe(key, sizeof *key);
    mem_free(key);
}

enum ulp_status key_sign(const struct ulp_key *key, const void *data, size_t bytes,
                         uint8_t ret_signature[ED25519_SIGNATURE_BYTES]) {
    return ed25519_sign(key->seed, data, bytes, ret_signature);
}
