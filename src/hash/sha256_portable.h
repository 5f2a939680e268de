// SPDX-License-Identifier: Apache-2.0
/* SHA-256 as FIPS 180-4 writes it down, without allocation or failure. */
#ifndef HASH_SHA256_PORTABLE_H
#define HASH_SHA256_PORTABLE_H

#include <stddef.h>
#include <stdint.h>

struct sha256_portable {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

void sha256_portable_begin(struct sha256_portable *hash);
void sha256_portable_add(struct sha256_portable *hash, const void *data, size_t bytes);
void sha256_portable_end(struct sha256_portable *hash, uint8_t ret_digest[32]);

#endif
