// SPDX-License-Identifier: Apache-2.0
/*
 * SHA-256. OpenSSL's, which uses the CPU's own instructions, where the build has it; otherwise the
 * plain one of sha256_portable.c, so that the smallest build still knows what state it holds.
 */
#ifndef HASH_SHA256_H
#define HASH_SHA256_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32u

struct sha256; /* a hash in progress */

enum ulp_status sha256_begin(struct sha256 **ret_hash);
enum ulp_status sha256_add(struct sha256 *hash, const void *data, size_t bytes);

/* Ends the hash; it must still be freed. */
enum ulp_status sha256_end(struct sha256 *hash, uint8_t ret_digest[SHA256_BYTES]);
void sha256_free(struct sha256 *hash);

#endif
