// SPDX-License-Identifier: Apache-2.0
/*
 * A patch, or several of regions, decoded and verified against weights in device memory: struct ulp_apply of
 * <ulpsync/patch.h>, where the weights are. Nothing has been written before a commit.
 *
 * Headers and directories are read by the host; entropy decoding, the walk over the weights and the
 * sums are the device's. Chunks that are coded plain or dense are decoded by the CPU, against a copy
 * of their elements: few of them come without being small or changing as a whole.
 */
#ifndef GPU_DEVICE_APPLY_H
#define GPU_DEVICE_APPLY_H

#include "gpu/device_weights.h"
#include "patch/patch.h"

struct device_apply;

/* As ulp_apply_prepare(), with the same statuses; also ULP_E_POISONED when the weights stand between two states, ULP_E_DEVICE when the device
 * fails. Of the options it takes pool, progress and `remember`. Keep weights and patch until it is
 * freed. */
enum ulp_status device_apply_prepare(struct device_weights *weights, const struct ulp_patch *patch,
                                     const struct ulp_apply_options *options,
                                     struct device_apply **ret_apply);

/* As ulp_apply_prepare_parts(), likewise. */
enum ulp_status device_apply_prepare_parts(struct device_weights *weights,
                                           const struct ulp_patch *const *parts, size_t count,
                                           const struct ulp_root *child,
                                           const struct ulp_apply_options *options,
                                           struct device_apply **ret_apply);

/* As ulp_apply_commit(). When the device fails the weights stay marked as poisoned; with a second
 * state (device_second.h) they are what they were. */
enum ulp_status device_apply_commit(struct device_apply *apply,
                                    struct ulp_apply_report *ret_report);
enum ulp_status device_apply_undo(struct device_apply *apply);
void device_apply_free(struct device_apply *apply); /* NULL is fine */

/* What is on the device, for who times the kernels one by one. */
const struct cuda_decode *device_apply_decode(const struct device_apply *apply);

#endif
