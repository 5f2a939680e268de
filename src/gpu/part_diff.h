// SPDX-License-Identifier: Apache-2.0
/*
 * Comparing regions of weights in device memory with others, in rounds: bands of columns are copied
 * together first, and the copies are not to take as much memory as the weights do.
 */
#ifndef GPU_PART_DIFF_H
#define GPU_PART_DIFF_H

#include "gpu/device_weights.h"

/* Codes a run of chunks, of which `first` is segment 0 of the plan. */
typedef enum ulp_status (*part_round_fn)(void *user, struct device_plan *plan,
                                         struct cuda_encoder *encoder, size_t first);

/* All chunks of the grid, in order. `new` are its tensors, with data in device memory. The sums are those of
 * the new state, of the grid's pieces. ULP_E_REGIONS for regions that a tile does not hold. */
enum ulp_status part_diff(struct device_weights *weights, const struct grid *grid,
                          const struct ulp_tensor *new, struct ulp_sum *ret_sums,
                          part_round_fn round, void *user);

#endif
