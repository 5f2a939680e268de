// SPDX-License-Identifier: Apache-2.0
/* What a patch holds; see ulp_patch_inspect() in <ulpsync/patch.h>. */
#ifndef PATCH_INSPECT_H
#define PATCH_INSPECT_H

#include "patch/patch.h"
#include "patch/weights.h"

enum ulp_status patch_inspect(const struct ulp_patch *patch, const struct ulp_weights *base,
                              struct ulp_pool *pool, const struct ulp_progress *progress,
                              struct ulp_tensor_report *ret_reports);

#endif
