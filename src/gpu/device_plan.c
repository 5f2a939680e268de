// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_plan.h"

#include "base/memory.h"
#include "patch/place.h"

static const uint8_t *block_address(const struct block_walk *block,
                                    const struct ulp_tensor *tensors) {
    const struct ulp_tensor *tensor = &tensors[piece_region(block->grid, block->piece)->tensor];

    return (const uint8_t *)tensor->data + place_offset(block, 0);
}

enum ulp_status device_plan_make(const struct grid *grid, const struct ulp_tensor *tensors,
                                 struct device_plan *ret_plan) {
    struct device_plan plan = {0};
    size_t blocks = 0;
    enum ulp_status status = mem_zeroed(grid->chunk_count, sizeof *plan.segments, &plan.segments);

    for (size_t i = 0; i < grid->chunk_count; i++)
        blocks += grid->chunks[i].blocks;
    if (!status)
        status = mem_zeroed(blocks, sizeof *plan.blocks, &plan.blocks);
    if (!status && blocks > UINT32_MAX)
        status = fail(ULP_E_LIMIT, "%zu blocks are too many for a GPU", blocks);
    if (status) {
        device_plan_release(&plan);
        return status;
    }
    blocks = 0;
    for (size_t i = 0; i < grid->chunk_count; i++) {
        const struct grid_chunk *chunk = &grid->chunks[i];
        struct block_walk walk = block_walk_start(grid, i);

        plan.segments[i] = (struct cuda_segment){(uint32_t)blocks, chunk->blocks, chunk->words, chunk->kind};
        while (block_walk_next(&walk))
            plan.blocks[blocks++] =
                (struct cuda_block){.old = block_address(&walk, tensors),
                                    .first_word = place_offset(&walk, 0) / 8,
                                    .elements = walk.words,
                                    .segment = (uint32_t)i,
                                    .piece = (uint32_t)walk.piece,
                                    .index = (uint32_t)walk.index};
    }
    plan.plan = (struct cuda_plan){plan.segments, plan.blocks, (uint32_t)grid->chunk_count,
                                   (uint32_t)blocks, (uint32_t)grid->piece_count};
    *ret_plan = plan;
    return ULP_OK;
}

void device_plan_release(struct device_plan *plan) {
    mem_free(plan->segments);
    mem_free(plan->blocks);
    *plan = (struct device_plan){0};
}

void device_plan_set_new(struct device_plan *plan, const struct grid *grid,
                         const struct ulp_tensor *tensors) {
    struct cuda_block *to = plan->blocks;

    for (size_t i = 0; i < grid->chunk_count; i++) {
        struct block_walk walk = block_walk_start(grid, i);

        while (block_walk_next(&walk))
            (to++)->new_ = block_address(&walk, tensors);
    }
}
