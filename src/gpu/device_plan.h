// SPDX-License-Identifier: Apache-2.0
/* The blocks of a state in device memory, as kernels want them (cuda/plan.h), on both sides. */
#ifndef GPU_DEVICE_PLAN_H
#define GPU_DEVICE_PLAN_H

#include "cuda/place.h"
#include "cuda/plan.h"
#include "gpu/room.h"
#include "patch/grid.h"

struct device_plan {
    struct cuda_segment *segments; /* one for each chunk of the grid */
    struct cuda_block *blocks;
    struct cuda_plan device; /* the same, in device memory */
    struct room room;

    /* Of regions, else NULL: where each block is, here and there. See gpu/part_plan.h. */
    struct cuda_place *places;
    const struct cuda_place *device_places;
};

/* `grid` is of whole tensors; `tensors` are its, with data in device memory. */
enum ulp_status device_plan_make(const struct grid *grid, const struct ulp_tensor *tensors,
                                 void *stream, struct device_plan *ret_plan);

/* The same for tensors in the host's memory: of `device` only the counts are set. */
enum ulp_status device_plan_list(const struct grid *grid, const struct ulp_tensor *tensors,
                                 struct device_plan *ret_plan);
void device_plan_release(struct device_plan *plan);

/* ULP_E_USAGE for tensors that are not aligned to their elements. */
enum ulp_status device_plan_check_aligned(const struct grid *grid,
                                          const struct ulp_tensor *tensors);

/* The addresses of another state's blocks, for who compares: `new_` of the host's blocks.
 * ULP_E_USAGE for tensors that are not aligned to their elements. */
enum ulp_status device_plan_set_new(struct device_plan *plan, const struct grid *grid,
                                    const struct ulp_tensor *tensors);

#endif
