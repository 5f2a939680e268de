// SPDX-License-Identifier: Apache-2.0
/*
 * Weights in device memory that are cast in place from FP32 masters; see ulp_cuda_cast() in
 * <ulpsync/cuda.h>. Instead of the state that patches start from there are two journals:
 *
 *     committed state --sealed--> state of the last diff --open--> present weights
 *
 * A journal holds what each element was that changed, so the committed state is the present one with
 * both journals over it, the sealed one last.
 */
#ifndef GPU_DEVICE_CAST_H
#define GPU_DEVICE_CAST_H

#include "gpu/device_weights.h"

struct device_cast;

/* As ulp_cuda_cast() and so on. */
enum ulp_status device_cast(struct device_weights *weights, const struct ulp_tensor *masters,
                            size_t count);
enum ulp_status device_cast_diff(struct device_weights *weights,
                                 const struct ulp_diff_options *options,
                                 const struct ulp_sink *sink, struct ulp_diff_report *ret_report);
enum ulp_status device_cast_commit(struct device_weights *weights);
enum ulp_status device_cast_undo(struct device_weights *weights);

/* ULP_E_USAGE when there are casts that are not committed; `doing` is what wants none. */
enum ulp_status device_cast_none(const struct device_weights *weights, const char *doing);

/* The sums of the present weights; NULL where they are not known, because of casts after the last
 * diff. */
const struct ulp_sum *device_cast_sums(const struct device_weights *weights);

/* Device memory of the journals, and what is kept for the next. */
size_t device_cast_bytes(const struct device_weights *weights);
void device_cast_trim(struct device_cast *cast); /* NULL is fine, here and below */
void device_cast_free(struct device_cast *cast);

#endif
