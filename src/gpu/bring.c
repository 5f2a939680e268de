// SPDX-License-Identifier: Apache-2.0
#include "gpu/bring.h"

#include "base/memory.h"
#include "cuda/gather_blocks.h"
#include "cuda/memory.h"

/* What the kernel is told, in the host's memory. */
struct wanted {
    struct cuda_block *blocks;
    uint64_t *offsets;
};

static enum ulp_status list_blocks(const struct device_plan *plan, size_t chunk,
                                   enum bring_which which, struct wanted *ret_wanted) {
    const struct cuda_segment *segment = &plan->segments[chunk];
    struct wanted wanted = {NULL, NULL};
    uint64_t at = 0;
    enum ulp_status status = mem_zeroed(segment->blocks, sizeof *wanted.blocks, &wanted.blocks);

    if (!status)
        status = mem_zeroed(segment->blocks, sizeof *wanted.offsets, &wanted.offsets);
    for (uint32_t b = 0; !status && b < segment->blocks; b++) {
        wanted.blocks[b] = plan->blocks[segment->first_block + b];
        if (which == BRING_NEW)
            wanted.blocks[b].old = wanted.blocks[b].new_;
        wanted.offsets[b] = at;
        at += (uint64_t)wanted.blocks[b].elements * segment->kind.width;
    }
    *ret_wanted = wanted;
    return status;
}

enum ulp_status bring_elements(struct device_weights *weights, size_t chunk, enum bring_which which,
                               uint8_t *ret_elements) {
    const struct cuda_segment *segment = &weights->plan.segments[chunk];
    const size_t elements = (size_t)segment->elements * segment->kind.width;
    size_t bytes = 0;
    const size_t blocks = room_place(&bytes, segment->blocks, sizeof(struct cuda_block));
    const size_t places = room_place(&bytes, segment->blocks, sizeof(uint64_t));
    const size_t gathered = room_place(&bytes, 1, elements);
    struct wanted wanted;
    struct room room = {0};
    enum ulp_status status = list_blocks(&weights->plan, chunk, which, &wanted);

    if (!status)
        status = room_take(&weights->spare, bytes, false, &room);
    if (!status) {
        status = cuda_copy_in(room.memory + blocks, wanted.blocks,
                              segment->blocks * sizeof *wanted.blocks, weights->stream);
        if (!status)
            status = cuda_copy_in(room.memory + places, wanted.offsets,
                                  segment->blocks * sizeof *wanted.offsets, weights->stream);
        if (!status)
            status = cuda_gather_blocks((const struct cuda_block *)(void *)(room.memory + blocks),
                                        (const uint64_t *)(void *)(room.memory + places),
                                        segment->blocks, segment->kind.width,
                                        room.memory + gathered, weights->stream);
        if (!status)
            status = cuda_copy_out(ret_elements, room.memory + gathered, elements, weights->stream);
        if (!status)
            status = cuda_wait(weights->stream);
        status = device_status(status, "bringing weights to the host");
    }
    room_give(&weights->spare, &room);
    mem_free(wanted.blocks);
    mem_free(wanted.offsets);
    return status;
}
