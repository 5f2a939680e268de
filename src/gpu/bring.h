// SPDX-License-Identifier: Apache-2.0
/* The elements of a chunk, end to end, from the device. */
#ifndef GPU_BRING_H
#define GPU_BRING_H

#include "gpu/device_weights.h"

enum bring_which {
    BRING_OLD, /* the weights */
    BRING_NEW  /* what the plan was told of */
};

/* Of a segment of the plan; `ret_elements` has room for all of them. */
enum ulp_status bring_elements(struct device_weights *weights, const struct device_plan *plan,
                               size_t chunk, enum bring_which which, uint8_t *ret_elements);

#endif
