// SPDX-License-Identifier: Apache-2.0
/* HMAC-SHA256 (RFC 2104), and SHA-256 of what is in memory, also as text. */
#ifndef HASH_HMAC_H
#define HASH_HMAC_H

#include "hash/sha256.h"

#define SHA256_HEX_BYTES (2 * SHA256_BYTES + 1)

enum ulp_status hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                            uint8_t ret_code[SHA256_BYTES]);

enum ulp_status sha256_of(const void *data, size_t bytes, uint8_t ret_digest[SHA256_BYTES]);

/* In lower case, with a NUL. */
void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret_hex[SHA256_HEX_BYTES]);

#endif
