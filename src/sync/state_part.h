// SPDX-License-Identifier: Apache-2.0
/* A whole state as one part: the file of an anchor that a holder without files makes. */
#ifndef SYNC_STATE_PART_H
#define SYNC_STATE_PART_H

#include "sync/holder.h"

/* Stores the weights, or by reference nothing, and names the file in the anchor. `reader` is of their
 * data. */
enum ulp_status state_part_put(const struct ulp_weights *weights, const struct piece_reader *reader,
                               const struct work *work, uint64_t folder, struct arena *arena,
                               struct anchor *anchor);

#endif
