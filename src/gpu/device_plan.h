// SPDX-License-Identifier: Apache-2.0
/* The grid of a state in device memory, as kernels want it. */
#ifndef GPU_DEVICE_PLAN_H
#define GPU_DEVICE_PLAN_H

#include "cuda/plan.h"
#include "patch/grid.h"

/* Zeroed means none. */
struct device_plan {
    struct cuda_segment *segments;
    struct cuda_block *blocks;
    struct cuda_plan plan;
};

/* Of whole tensors, in the grid's order; their data are addresses on the device. */
enum ulp_status device_plan_make(const struct grid *grid, const struct ulp_tensor *tensors,
                                 struct device_plan *ret_plan);
void device_plan_release(struct device_plan *plan);

/* The addresses of the new state's blocks. */
void device_plan_set_new(struct device_plan *plan, const struct grid *grid,
                         const struct ulp_tensor *tensors);

#endif
