// SPDX-License-Identifier: Apache-2.0
/* The changes of a few blocks, one by one: for segments in which hardly anything changes. */
#ifndef CUDA_LIST_CHANGES_H
#define CUDA_LIST_CHANGES_H

#include "cuda/plan.h"

#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_change {
    uint64_t value; /* what stands there afterwards */
    uint32_t block, position;
};

/*
 * Lists of changes, one for each segment that the blocks name: the first `limit` that are met, in any
 * order, from changes[limit * segment] on, and how many there are at found[segment], which is zero before. A
 * change names its block by the number in its segment. All device memory; the blocks are of elements of
 * `width` bytes. Enqueued on `stream`.
 */
enum ulp_status cuda_list_changes(const struct cuda_block *blocks, uint32_t count, uint32_t width,
                                  uint32_t limit, struct cuda_change *changes, uint32_t *found,
                                  void *stream);

#ifdef __cplusplus
}
#endif

#endif
