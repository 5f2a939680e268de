// SPDX-License-Identifier: Apache-2.0
/*
 * The blocks of partial patches in device memory: of one grid of regions, or of several that are applied
 * together, one behind the other. Blocks that kernels cannot take where they are, those of bands of columns
 * for the most part, get room in a copy (cuda/place.h).
 */
#ifndef GPU_PART_PLAN_H
#define GPU_PART_PLAN_H

#include "gpu/device_plan.h"

/* Grids of regions, and whose sums their blocks belong to. */
struct part_view {
    const struct grid *const *grids;
    size_t count;
    const struct ulp_tensor *tensors; /* in the grids' order, with data in device memory */
    size_t first_chunk, chunks;       /* of a single grid these alone; 0: all of them */

    /* Of a single grid its own pieces, if neither of these is given. Else those of weights, `pieces` of
     * them: of each tensor the first one, when they are whole; of each region of each grid the first one,
     * when they are a tile. Sums that mean nothing then go to one more piece behind them. */
    const size_t *first_piece;
    size_t *const *first_held;
    size_t pieces;
};

/* Copies take so many bytes at a time, which no chunk exceeds: work goes in rounds. */
#define PART_PACKED_MOST ((size_t)1 << 29)

/* The host's side alone; the copies are nowhere yet. */
enum ulp_status part_plan_make(const struct part_view *view, struct device_plan *ret_plan);

/* The new state's tensors, for who compares; the view is of a single grid. */
enum ulp_status part_plan_set_new(struct device_plan *plan, const struct part_view *view,
                                  const struct ulp_tensor *tensors);

/* Where the copies of the blocks [first, first + count) will be: those of the old elements from `packed`
 * on, and of the new ones from `new_packed` on unless it is NULL. */
void part_plan_point(struct device_plan *plan, uint32_t first, uint32_t count, uint8_t *packed,
                     uint8_t *new_packed);

/* The end of a round that begins with block `first`: copies of what is in front of it take no more than
 * `most`, or it is one block. Returns their bytes. */
size_t part_plan_round(const struct device_plan *plan, uint32_t first, size_t most,
                       uint32_t *ret_end);

/* Brings the plan to the device; `spare` may have room for it. */
enum ulp_status part_plan_upload(struct device_plan *plan, struct room *spare, void *stream);

/* Copies the blocks of a round together; `next` for the new elements. */
enum ulp_status part_plan_pack(const struct device_plan *plan, uint32_t first, uint32_t count,
                               bool next, void *stream);

#endif
