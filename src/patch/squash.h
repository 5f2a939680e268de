// SPDX-License-Identifier: Apache-2.0
/* Several patches as one; see ulp_squash() in <ulpsync/patch.h>. */
#ifndef PATCH_SQUASH_H
#define PATCH_SQUASH_H

#include "patch/patch.h"
#include "patch/weights.h"

enum ulp_status squash(const struct ulp_weights *weights, const struct ulp_patch *const *patches,
                       size_t count, const struct ulp_diff_options *options,
                       const struct ulp_sink *sink, struct ulp_diff_report *ret_report);

enum ulp_status squash_file(const struct ulp_weights *weights,
                            const struct ulp_patch *const *patches, size_t count,
                            const struct ulp_diff_options *options, const char *path,
                            enum ulp_commit commit, struct ulp_diff_report *ret_report);

#endif
