// SPDX-License-Identifier: Apache-2.0
/* A slice of a version of a run in memory: the caller's, or our own. */
#ifndef SYNC_TILE_HOLDER_H
#define SYNC_TILE_HOLDER_H

#include "sync/slice.h"

/*
 * `tensors` describe the whole state; with `ours`, their data is not looked at, and the slice is
 * kept in address space that takes memory where it is written. ULP_E_REGIONS if the slice has
 * nothing of them.
 */
enum ulp_status tile_holder_open(const struct ulp_tensor *tensors, size_t count, bool ours,
                                 const struct slice *slice, const struct ulp_run_options *options,
                                 struct holder **ret_holder);

/* The state's tensors, sorted by name, as many as were given. */
const struct ulp_tensor *tile_holder_tensors(const struct holder *holder, size_t *ret_count);

#endif
