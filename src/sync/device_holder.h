// SPDX-License-Identifier: Apache-2.0
/* A version of a run in device memory: the caller's, or our own. Made into the libraries together with
 * the room gpu, whose kernels must have been loaded before. */
#ifndef SYNC_DEVICE_HOLDER_H
#define SYNC_DEVICE_HOLDER_H

#include "sync/holder.h"

/* `tensors` NULL: memory of our own, for whatever state comes. `poisoned` is as in device_weights_new().
 * ULP_E_REGIONS for options with tiles. */
enum ulp_status device_holder_open(const struct ulp_tensor *tensors, size_t count,
                                   uint32_t *poisoned, void *stream,
                                   const struct ulp_run_options *options,
                                   struct holder **ret_holder);

#endif
