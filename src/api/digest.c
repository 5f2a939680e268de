// SPDX-License-Identifier: Apache-2.0
/* Public entry points on digests. */
#include "base/status.h"
#include "digest/root.h"

#include <stdio.h>
#include <ulpsync/ulpsync.h>

enum ulp_status ulp_state_digest(const struct ulp_tensor *tensors, size_t count,
                                 struct ulp_pool *pool, const struct ulp_progress *progress,
                                 struct ulp_sum *ret_sums, struct ulp_root *ret_root) {
    if ((count && !tensors) || !ret_root)
        return fail(ULP_E_USAGE, "%s: a required argument is NULL", __func__);
    return state_digest(tensors, count, pool, progress, ret_sums, ret_root);
}

void ulp_root_hex(const struct ulp_root *root, char ret_hex[ULP_ROOT_HEX_BYTES]) {
    for (size_t i = 0; i < ULP_ROOT_BYTES; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", root->bytes[i]);
}
