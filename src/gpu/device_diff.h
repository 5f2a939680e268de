// SPDX-License-Identifier: Apache-2.0
/*
 * A patch from weights in device memory to others beside them: the same bytes as ulp_diff() of
 * <ulpsync/patch.h> makes of the same states on the CPU.
 *
 * The device compares and codes. Chunks of which so much changes that another coder may take fewer
 * bytes are brought to the host and coded there; of chunks in which hardly anything changes a list of
 * the changes is. Bands of columns are copied together on the device first, in rounds.
 */
#ifndef GPU_DEVICE_DIFF_H
#define GPU_DEVICE_DIFF_H

#include "gpu/device_weights.h"

/* As ulp_diff(), with its statuses; `tensors` have their data in device memory. Of the options it takes
 * `history`, `coder` and regions. */
enum ulp_status device_diff(struct device_weights *weights, const struct ulp_tensor *tensors,
                            size_t count, const struct ulp_diff_options *options,
                            const struct ulp_sink *sink, struct ulp_diff_report *ret_report);

/* The same to the weights as they are, from what they were by a journal; `ret_sums`, one for each piece,
 * and `ret_root` are those of the weights as they are. */
enum ulp_status device_diff_journal(struct device_weights *weights,
                                    const struct device_journal *journal,
                                    const struct ulp_diff_options *options,
                                    const struct ulp_sink *sink, struct ulp_diff_report *ret_report,
                                    struct ulp_sum *ret_sums, struct ulp_root *ret_root);

#endif
