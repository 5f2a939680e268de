// SPDX-License-Identifier: Apache-2.0
/* What elements in device memory were before they were cast in place (cuda/journal.h): the memory, and
 * what the host knows of it. */
#ifndef GPU_DEVICE_JOURNAL_H
#define GPU_DEVICE_JOURNAL_H

#include "cuda/journal.h"
#include "gpu/device_plan.h"

struct device_journal {
    struct room room;
    struct cuda_journal device; /* in the room, end to end */
    uint64_t *first, *value;    /* of each block, as there */
    uint32_t *count;
    uint64_t entries;
};

/* What is merged: on the device, and how many entries each block has. */
struct journal_part {
    struct cuda_journal device;
    const uint32_t *count;
};

/* `newer` after `older`, which may be NULL, as one journal of the plan's weights as they are now. `spare` is memory
 * for it, if it is large enough. When this fails both are what they were. */
enum ulp_status device_journal_merge(const struct device_plan *plan,
                                     const struct device_journal *older,
                                     const struct journal_part *newer, struct room *spare,
                                     void *stream, struct device_journal **ret_journal);

/* Its memory becomes the spare one. NULL is fine. */
void device_journal_free(struct device_journal *journal, struct room *spare);

struct journal_part journal_part_of(const struct device_journal *journal);

/* What the elements of a chunk were, from what they are: both end to end in the host's memory. */
enum ulp_status device_journal_overlay(const struct device_journal *journal,
                                       const struct device_plan *plan, size_t chunk, void *stream,
                                       uint8_t *elements);

#endif
