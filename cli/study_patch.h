// SPDX-License-Identifier: Apache-2.0
/* The patches that ulpsync really makes of a step, for their sizes. */
#ifndef CLI_STUDY_PATCH_H
#define CLI_STUDY_PATCH_H

#include <stdbool.h>
#include <ulpsync/ulpsync.h>

/* Makes the patch from the weights to `tensors`, with what they remember if `history` says so. Adds
 * the bits of each tensor to `reports`, unless that is NULL. */
enum ulp_status study_patch_make(const struct ulp_weights *weights,
                                 const struct ulp_tensor *tensors, size_t count, bool history,
                                 struct ulp_pool *pool, struct ulp_tensor_report *reports,
                                 uint64_t *ret_bytes);

#endif
