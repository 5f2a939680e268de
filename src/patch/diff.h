// SPDX-License-Identifier: Apache-2.0
/* Making patches; see ulp_diff() in <ulpsync/patch.h>. */
#ifndef PATCH_DIFF_H
#define PATCH_DIFF_H

#include "patch/output.h"
#include "patch/weights.h"

enum ulp_status diff(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                     size_t count, const struct ulp_diff_options *options,
                     const struct ulp_sink *sink, struct ulp_diff_report *ret_report);

enum ulp_status diff_file(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                          size_t count, const struct ulp_diff_options *options, const char *path,
                          enum ulp_commit commit, struct ulp_diff_report *ret_report);

/* A table for a patch from `weights`, its grid made: what every maker of patches starts with. */
enum ulp_status table_for(const struct ulp_weights *weights, const struct ulp_region *regions,
                          size_t region_count, struct table *ret_table);

/* ULP_E_USAGE for options that make no sense. */
enum ulp_status diff_options_check(const struct ulp_diff_options *options);

/* What is known when the output has ended. */
struct ulp_diff_report diff_report(const struct patch_output *output);

#endif
