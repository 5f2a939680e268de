// SPDX-License-Identifier: Apache-2.0
/*
 * Whole states on their way to device memory and back, for who keeps one there. Addresses may be the
 * host's or the device's, on either side.
 */
#ifndef GPU_DEVICE_COPY_H
#define GPU_DEVICE_COPY_H

#include "gpu/device_weights.h"

/* Memory of the device. */
enum ulp_status device_memory_take(size_t bytes, void **ret_memory);
void device_memory_give(void *memory); /* NULL is fine */

/* Enqueued; until device_copy_wait() returns, memory on both sides must stay as it is. */
enum ulp_status device_copy_bytes(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status device_copy_wait(void *stream);

/* Hands bytes to a sink, from the first to the last, through pinned memory in `room`, which is made
 * when it is first needed and belongs to the caller: while some are written, the next are copied. */
enum ulp_status device_copy_out(const void *from, size_t bytes, struct room *room, void *stream,
                                const struct ulp_sink *sink);

/*
 * Writes another state over the weights: `tensors` are the host's, in the order of the weights, and
 * `sums` theirs. What is written is digested again. Until all of it is right the weights are marked as
 * poisoned, and stay so when anything fails between. They forget how they came about; sums and root
 * are for the caller to exchange.
 */
enum ulp_status device_weights_write(struct device_weights *weights,
                                     const struct ulp_tensor *tensors, const struct ulp_sum *sums);

#endif
