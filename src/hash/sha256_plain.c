// SPDX-License-Identifier: Apache-2.0
/* SHA-256 for builds without OpenSSL. */
#include "base/memory.h"
#include "hash/sha256.h"
#include "hash/sha256_portable.h"

struct sha256 {
    struct sha256_portable hash;
};

enum ulp_status sha256_begin(struct sha256 **ret_hash) {
    struct sha256 *hash = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *hash, &hash);

    if (status)
        return status;
    sha256_portable_begin(&hash->hash);
    *ret_hash = hash;
    return ULP_OK;
}

enum ulp_status sha256_add(struct sha256 *hash, const void *data, size_t bytes) {
    sha256_portable_add(&hash->hash, data, bytes);
    return ULP_OK;
}

enum ulp_status sha256_end(struct sha256 *hash, uint8_t ret_digest[SHA256_BYTES]) {
    sha256_portable_end(&hash->hash, ret_digest);
    return ULP_OK;
}

void sha256_free(struct sha256 *hash) {
    mem_free(hash);
}
