// SPDX-License-Identifier: Apache-2.0
/* Patching models on disk; see ulp_model_patch() in <ulpsync/patch.h>. */
#ifndef PATCH_MODEL_FILES_H
#define PATCH_MODEL_FILES_H

#include "patch/apply.h"
#include "tensor/model.h"

enum ulp_status model_patch_in_place(const char *path, const struct ulp_patch *patch,
                                     const struct ulp_model *history,
                                     const struct ulp_apply_options *options,
                                     struct ulp_apply_report *ret_report);
enum ulp_status model_patch(const char *path, const struct ulp_patch *patch,
                            const struct ulp_model *history, const char *out,
                            const struct ulp_apply_options *options,
                            struct ulp_apply_report *ret_report);
enum ulp_status model_recover(const char *path, int *ret_recovered);

/* Digests the model and prepares the patch against it. */
enum ulp_status model_prepare(const struct ulp_model *model, const struct ulp_patch *patch,
                              const struct ulp_model *history,
                              const struct ulp_apply_options *options,
                              struct ulp_weights **ret_weights, struct ulp_apply **ret_apply);

#endif
