// SPDX-License-Identifier: Apache-2.0
#include "hash/hmac.h"

#include "base/memory.h"

#include <string.h>

#define BLOCK_BYTES 64u

/* SHA-256 of a block and what follows it. */
static enum ulp_status hash_two(const uint8_t block[BLOCK_BYTES], const void *data, size_t bytes,
                                uint8_t ret_digest[SHA256_BYTES]) {
    struct sha256 *hash = NULL;
    enum ulp_status status = sha256_begin(&hash);

    if (!status && block)
        status = sha256_add(hash, block, BLOCK_BYTES);
    if (!status && bytes)
        status = sha256_add(hash, data, bytes);
    if (!status)
        status = sha256_end(hash, ret_digest);
    sha256_free(hash);
    return status;
}

enum ulp_status sha256_of(const void *data, size_t bytes, uint8_t ret_digest[SHA256_BYTES]) {
    return hash_two(NULL, data, bytes, ret_digest);
}

enum ulp_status hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                            uint8_t ret_code[SHA256_BYTES]) {
    uint8_t block[BLOCK_BYTES] = {0}, inner[SHA256_BYTES];
    enum ulp_status status = ULP_OK;

    if (key_bytes > BLOCK_BYTES)
        status = sha256_of(key, key_bytes, block);
    else
        memcpy(block, key, key_bytes);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] ^= 0x36;
    if (!status)
        status = hash_two(block, data, bytes, inner);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] ^= 0x36 ^ 0x5c;
    if (!status)
        status = hash_two(block, inner, sizeof inner, ret_code);
    mem_wipe(block, sizeof block);
    return status;
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret_hex[SHA256_HEX_BYTES]) {
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < SHA256_BYTES; i++) {
        ret_hex[2 * i] = digits[digest[i] >> 4];
        ret_hex[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_hex[SHA256_HEX_BYTES - 1] = 0;
}
