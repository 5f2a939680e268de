// SPDX-License-Identifier: Apache-2.0
/*
 * Chunks that go through the encoder together: all of a patch, those of a window on weights in the host's
 * memory, a run of those of a partial patch. What the device coded is brought to the host, what is left to
 * the CPU is coded, and all of it goes to the output.
 */
#ifndef GPU_ROUND_H
#define GPU_ROUND_H

#include "gpu/device_weights.h"
#include "patch/output.h"

/* One patch on its way. */
struct making {
    struct device_weights *weights;
    const struct device_journal *journal; /* from what; NULL: from the weights */
    struct patch_output output;
    enum ulp_coder coder;
    bool history;
    struct ulp_pool *pool;
};

struct round {
    const struct device_plan *plan; /* its segments; the blocks with addresses for the device */
    size_t first;                   /* chunk of the patch, which is segment 0 */
    const struct cuda_segment_report *reports;
    const uint8_t *coded; /* on the device */
    void *stream;         /* for bringing it, and lists */
};

/* The chunks must not have been put out before, and those in front of them must have been. */
enum ulp_status round_put(struct making *making, const struct round *round);

#endif
