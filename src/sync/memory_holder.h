// SPDX-License-Identifier: Apache-2.0
/* A version of a run in memory: the caller's, or our own. */
#ifndef SYNC_MEMORY_HOLDER_H
#define SYNC_MEMORY_HOLDER_H

#include "sync/holder.h"

/* `tensors` NULL: memory of our own, for whatever state comes. */
enum ulp_status memory_holder_open(const struct ulp_tensor *tensors, size_t count,
                                   const struct ulp_run_options *options,
                                   struct holder **ret_holder);

#endif
