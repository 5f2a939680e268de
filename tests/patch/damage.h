// SPDX-License-Identifier: Apache-2.0
/* Patches with bytes that were tampered with, and what becomes of them. */
#ifndef TESTS_PATCH_DAMAGE_H
#define TESTS_PATCH_DAMAGE_H

#include "tests/patch/state.h"

/* Verifies and prepares: the first failure, or ULP_OK. Commits nothing. */
static inline enum ulp_status try_patch(struct ulp_weights *weights, const void *data,
                                        size_t bytes) {
    struct ulp_patch *patch = NULL;
    struct ulp_apply *apply = NULL;
    enum ulp_status status = ulp_patch_open_memory(data, bytes, &patch);

    if (!status)
        status = ulp_patch_verify(patch, NULL, NULL);
    if (!status)
        status = ulp_apply_prepare(weights, patch, NULL, &apply);
    ulp_apply_free(apply);
    ulp_patch_free(patch);
    return status;
}

static inline void flip(uint8_t *data, size_t bit) {
    data[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

#endif
