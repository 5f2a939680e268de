// SPDX-License-Identifier: Apache-2.0
/* A chunk in which hardly anything changes, coded plain from a list of its changes, which is all that
 * comes from the device. */
#ifndef GPU_FEW_CHANGES_H
#define GPU_FEW_CHANGES_H

#include "gpu/device_weights.h"

/* Of a segment of the plan, into worker->bytes; `changes` is how many there are, at most
 * CODE_FEW_CHANGES. With a journal they are those since, else NULL. */
enum ulp_status few_changes_code(struct device_weights *weights, const struct device_plan *plan,
                                 size_t chunk, const struct device_journal *journal,
                                 uint64_t changes, struct worker *worker);

#endif
