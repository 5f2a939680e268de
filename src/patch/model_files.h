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

/* A copy of the model with one whole patch, or partial ones that tile it. */
enum ulp_status model_patch(const char *path, const struct ulp_patch *const *patches, size_t count,
                            const struct ulp_model *history, const char *out,
                            const struct ulp_apply_options *options,
                            struct ulp_apply_report *ret_report);
enum ulp_status model_recover(const char *path, int *ret_recovered);

/* The directory of a model: itself, or that of its index; NULL in *ret_directory for a file on its
 * own. To be freed with mem_free(). */
enum ulp_status model_directory(const char *path, char **ret_directory);

/* Digests the model and prepares the patches against it. */
enum ulp_status model_prepare(const struct ulp_model *model, const struct ulp_patch *const *patches,
                              size_t count, const struct ulp_model *history,
                              const struct ulp_apply_options *options,
                              struct ulp_weights **ret_weights, struct ulp_apply **ret_apply);

#endif
