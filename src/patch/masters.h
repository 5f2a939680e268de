// SPDX-License-Identifier: Apache-2.0
/* FP32 masters that weights are cast from. */
#ifndef PATCH_MASTERS_H
#define PATCH_MASTERS_H

#include "patch/weights.h"

/* For each tensor of the weights the data of its master, in `arena`; NULL where it has none. ULP_E_LAYOUT
 * for a master that no tensor has the name and shape of, that is not F32, or whose tensor is not one
 * that FP32 can be cast to. */
enum ulp_status masters_match(const struct ulp_weights *weights, const struct ulp_tensor *masters,
                              size_t count, struct arena *arena, const void ***ret_data);

#endif
