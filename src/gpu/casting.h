// SPDX-License-Identifier: Apache-2.0
/* One cast of weights on its way: masters and a pool on the device, and launches, each of which lists
 * what it has overwritten. */
#ifndef GPU_CASTING_H
#define GPU_CASTING_H

#include "cuda/cast.h"
#include "gpu/device_weights.h"

/* Zeroed but for the weights and `last` means that nothing has begun. */
struct casting {
    struct device_weights *weights;
    uint64_t last;       /* how many entries the last cast had */
    const void **blocks; /* of each block: its master */
    uint64_t *first;     /* ... and the first of its pages */
    uint32_t *count;     /* ... and what a launch listed of it */
    uint64_t pages, elements;
    bool wide; /* elements of four bytes are among them */

    struct room room;
    struct cuda_cast device;
    size_t counters; /* where the counters are, from `used` on, and the counts behind them */
};

/* `masters` are those of the weights' tensors, in their order; NULL where there is none. Nothing is
 * written yet, nor is there anything to launch for no elements. */
enum ulp_status casting_begin(struct casting *casting, const void *const *masters);

/* Goes on, until everything is cast or the pool is full: then some blocks have stopped. What was listed
 * before has been dealt with. After ULP_E_NOMEM nothing is written; after another failure that is not
 * known. */
enum ulp_status casting_launch(struct casting *casting, uint32_t *ret_stopped);

/* What the last launch has listed. */
struct journal_part casting_listed(const struct casting *casting);

void casting_end(struct casting *casting);

#endif
