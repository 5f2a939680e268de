// SPDX-License-Identifier: Apache-2.0
/* Chunks that are coded plain or dense, decoded by the CPU against a copy of their elements. */
#ifndef GPU_ON_HOST_H
#define GPU_ON_HOST_H

#include "gpu/device_weights.h"
#include "patch/decode.h"

/* As decode_chunk(), with its statuses: the sums of the target, which is the weights, are adjusted. The
 * chunk is that segment of the plan. */
enum ulp_status on_host_decode(struct device_weights *weights, const struct device_plan *plan,
                               size_t segment, const struct ulp_patch *patch, size_t chunk,
                               const struct sum_target *target, struct decoded_chunk *ret_into);
void on_host_release(struct decoded_chunk *decoded);

#endif
