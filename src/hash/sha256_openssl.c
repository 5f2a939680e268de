// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "hash/sha256.h"

#include <openssl/evp.h>

struct sha256 {
    EVP_MD_CTX *context;
};

static enum ulp_status openssl_failed(void) {
    return fail(ULP_E_INTERNAL, "OpenSSL refused to compute SHA-256");
}

enum ulp_status sha256_begin(struct sha256 **ret_hash) {
    struct sha256 *hash = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *hash, &hash);

    if (status)
        return status;
    hash->context = EVP_MD_CTX_new();
    if (!hash->context || EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1) {
        sha256_free(hash);
        return openssl_failed();
    }
    *ret_hash = hash;
    return ULP_OK;
}

enum ulp_status sha256_add(struct sha256 *hash, const void *data, size_t bytes) {
    return EVP_DigestUpdate(hash->context, data, bytes) == 1 ? ULP_OK : openssl_failed();
}

enum ulp_status sha256_end(struct sha256 *hash, uint8_t ret_digest[SHA256_BYTES]) {
    return EVP_DigestFinal_ex(hash->context, ret_digest, NULL) == 1 ? ULP_OK : openssl_failed();
}

void sha256_free(struct sha256 *hash) {
    if (!hash)
        return;
    EVP_MD_CTX_free(hash->context);
    mem_free(hash);
}
