// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_plan.h"

#include "base/memory.h"
#include "base/quote.h"
#include "base/word.h"
#include "cuda/memory.h"
#include "patch/place.h"
#include "scan/digest_sum.h"

static void fill_segment(const struct grid *grid, const struct ulp_tensor *tensors, size_t chunk,
                         uint32_t first, struct device_plan *plan) {
    struct block_walk block = block_walk_start(grid, chunk);

    plan->segments[chunk] =
        (struct cuda_segment){first, block.chunk->blocks, block.chunk->words, block.chunk->kind};
    while (block_walk_next(&block)) {
        const uint64_t offset = place_offset(&block, 0);
        const uint8_t *data = tensors[piece_region(grid, block.piece)->tensor].data;

        plan->blocks[first + block.index] =
            (struct cuda_block){.old = data + offset,
                                .first_word = offset / DIGEST_WORD_BYTES,
                                .elements = block.words,
                                .segment = (uint32_t)chunk,
                                .piece = (uint32_t)block.piece,
                                .index = (uint32_t)block.index};
    }
}

/* Kernels load whole elements. */
enum ulp_status device_plan_check_aligned(const struct grid *grid,
                                          const struct ulp_tensor *tensors) {
    for (size_t i = 0; i < grid->piece_count; i++) {
        const struct ulp_tensor *tensor = &tensors[piece_region(grid, i)->tensor];

        if ((uintptr_t)tensor->data % word_bytes_of(tensor->bits))
            return fail(ULP_E_USAGE, "tensor %s is not aligned to its elements in device memory",
                        quote(tensor->name).text);
    }
    return ULP_OK;
}

static enum ulp_status upload(struct device_plan *plan, void *stream) {
    size_t bytes = 0;
    const size_t segment_bytes = plan->device.segment_count * sizeof *plan->segments;
    const size_t block_bytes = plan->device.block_count * sizeof *plan->blocks;
    const size_t segments = room_place(&bytes, 1, segment_bytes);
    const size_t blocks = room_place(&bytes, 1, block_bytes);
    enum ulp_status status = room_take(&(struct room){0}, bytes, false, &plan->room);

    if (status)
        return status;
    plan->device.segments = (const struct cuda_segment *)(void *)(plan->room.memory + segments);
    plan->device.blocks = (const struct cuda_block *)(void *)(plan->room.memory + blocks);
    status = cuda_copy_in(plan->room.memory + segments, plan->segments, segment_bytes, stream);
    if (!status)
        status = cuda_copy_in(plan->room.memory + blocks, plan->blocks, block_bytes, stream);
    if (!status)
        status = cuda_wait(stream);
    return device_status(status, "taking the description of the weights");
}

enum ulp_status device_plan_list(const struct grid *grid, const struct ulp_tensor *tensors,
                                 struct device_plan *ret_plan) {
    struct device_plan plan = {0};
    uint64_t blocks = 0;
    uint32_t first = 0;
    enum ulp_status status = mem_zeroed(grid->chunk_count, sizeof *plan.segments, &plan.segments);

    for (size_t i = 0; i < grid->chunk_count; i++)
        blocks += grid->chunks[i].blocks;
    if (!status && blocks > UINT32_MAX)
        status = fail(ULP_E_LIMIT, "%llu blocks of elements are too many for one device",
                      (unsigned long long)blocks);
    if (!status)
        status = mem_zeroed((size_t)blocks, sizeof *plan.blocks, &plan.blocks);
    for (size_t i = 0; !status && i < grid->chunk_count; i++) {
        fill_segment(grid, tensors, i, first, &plan);
        first += grid->chunks[i].blocks;
    }
    if (status) {
        device_plan_release(&plan);
        return status;
    }
    plan.device = (struct cuda_plan){.segment_count = (uint32_t)grid->chunk_count,
                                     .block_count = (uint32_t)blocks,
                                     .piece_count = (uint32_t)grid->piece_count};
    *ret_plan = plan;
    return ULP_OK;
}

enum ulp_status device_plan_make(const struct grid *grid, const struct ulp_tensor *tensors,
                                 void *stream, struct device_plan *ret_plan) {
    struct device_plan plan = {0};
    enum ulp_status status = device_plan_check_aligned(grid, tensors);

    if (!status)
        status = device_plan_list(grid, tensors, &plan);
    if (!status)
        status = upload(&plan, stream);
    if (status) {
        device_plan_release(&plan);
        return status;
    }
    *ret_plan = plan;
    return ULP_OK;
}

enum ulp_status device_plan_set_new(struct device_plan *plan, const struct grid *grid,
                                    const struct ulp_tensor *tensors) {
    struct cuda_block *to = plan->blocks;
    enum ulp_status status = device_plan_check_aligned(grid, tensors);

    for (size_t i = 0; !status && i < grid->chunk_count; i++) {
        struct block_walk block = block_walk_start(grid, i);

        while (block_walk_next(&block)) {
            const uint8_t *data = tensors[piece_region(grid, block.piece)->tensor].data;

            (to++)->new_ = data + place_offset(&block, 0);
        }
    }
    return status;
}

void device_plan_release(struct device_plan *plan) {
    mem_free(plan->segments);
    mem_free(plan->blocks);
    mem_free(plan->places);
    room_release(&plan->room);
    *plan = (struct device_plan){0};
}
