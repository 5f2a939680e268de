// SPDX-License-Identifier: Apache-2.0
/*
 * Key files from any bytes. What is accepted as trusted holds different keys and no weak one, and
 * written again the keys are the same; so is a private key. Nothing is both.
 */
#include "fuzz/target.h"
#include "hash/key_text.h"

#include <string.h>

static void check_trusted(const struct ulp_public_key *keys, size_t count) {
    struct ulp_public_key again[1];
    struct key_line line;
    size_t one = 0;

    MUST(count >= 1 && count <= LIMIT_TRUSTED_KEYS);
    for (size_t i = 0; i < count; i++) {
        MUST(!ed25519_weak(keys[i].bytes));
        for (size_t j = 0; j < i; j++)
            MUST(memcmp(&keys[i], &keys[j], sizeof keys[i]) != 0);
        MUST(!key_line_write(KEY_WORD_PUBLIC, keys[i].bytes, "comment", &line));
        MUST(!key_text_trusted("again", line.text, line.bytes, again, 1, &one) && one == 1);
        MUST(!memcmp(&keys[i], again, sizeof again[0]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ulp_public_key keys[LIMIT_TRUSTED_KEYS];
    uint8_t seed[ED25519_KEY_BYTES], again[ED25519_KEY_BYTES];
    struct key_line line;
    size_t count = 0;
    enum ulp_status status =
        key_text_trusted("input", (const char *)data, size, keys, LIMIT_TRUSTED_KEYS, &count);
    enum ulp_status secret = key_text_private("input", (const char *)data, size, seed);

    MUST(!status || status == ULP_E_KEY || status == ULP_E_LIMIT);
    MUST(!secret || secret == ULP_E_KEY);
    MUST(status || secret);
    if (!status)
        check_trusted(keys, count);
    if (!secret) {
        MUST(!key_line_write(KEY_WORD_PRIVATE, seed, NULL, &line));
        MUST(!key_text_private("again", line.text, line.bytes, again));
        MUST(!memcmp(seed, again, sizeof seed));
    }
    return 0;
}
