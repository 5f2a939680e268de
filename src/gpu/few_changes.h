// SPDX-License-Identifier: Apache-2.0
/* Chunks of which hardly anything changes: the CPU's plain coder may say that in fewer bytes. It needs
 * a list of the changes, not the elements. */
#ifndef GPU_FEW_CHANGES_H
#define GPU_FEW_CHANGES_H

#include "gpu/round.h"

/* The lists of some segments of a round. Zeroed means none. */
struct few_changes {
    size_t count;
    size_t *segments; /* ascending */
    struct listed *lists;
};

/* Whether a segment is such a one. */
bool few_changes_in(const struct making *making, const struct cuda_segment_report *report);

/* Lists all of a round, in one go. */
enum ulp_status few_changes_list(struct making *making, const struct round *round,
                                 struct few_changes *ret_few);
void few_changes_release(struct few_changes *few);

/* Codes one of them, into worker->bytes. */
enum ulp_status few_changes_code(struct few_changes *few, const struct round *round, size_t segment,
                                 struct worker *worker);

#endif
