// SPDX-License-Identifier: Apache-2.0
#include "gpu/bring.h"

#include "base/memory.h"
#include "cuda/gather_blocks.h"
#include "cuda/memory.h"

/* What the kernels are told, in the host's memory. */
struct wanted {
    struct cuda_block *blocks;
    uint64_t *offsets;
    struct cuda_place *places; /* of regions */
};

static enum ulp_status list_blocks(const struct device_plan *plan, size_t chunk,
                                   enum bring_which which, struct wanted *ret_wanted) {
    const struct cuda_segment *segment = &plan->segments[chunk];
    struct wanted wanted = {NULL, NULL, NULL};
    uint64_t at = 0;
    enum ulp_status status = mem_zeroed(segment->blocks, sizeof *wanted.blocks, &wanted.blocks);

    if (!status)
        status = mem_zeroed(segment->blocks, sizeof *wanted.offsets, &wanted.offsets);
    if (!status && plan->places)
        status = mem_zeroed(segment->blocks, sizeof *wanted.places, &wanted.places);
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

/* Where regions are they are copied together from: all of the chunk's blocks, into `gathered`. */
static void list_places(const struct device_plan *plan, size_t chunk, enum bring_which which,
                        struct wanted *wanted, uint8_t *gathered) {
    const struct cuda_segment *segment = &plan->segments[chunk];

    for (uint32_t b = 0; b < segment->blocks; b++) {
        struct cuda_place *place = &wanted->places[b];

        *place = plan->places[segment->first_block + b];
        if (which == BRING_NEW)
            place->old = place->new_;
        place->packed = 1;
        wanted->blocks[b].old = gathered + wanted->offsets[b];
        wanted->blocks[b].segment = 0;
    }
}

/* What is laid out in the device's memory, and where. */
struct bringing {
    struct room room;
    size_t blocks, offsets, places, segment, gathered;
};

static enum ulp_status gather(const struct bringing *at, const struct wanted *wanted,
                              const struct cuda_segment *segment, void *stream) {
    uint8_t *base = at->room.memory;
    const struct cuda_block *blocks = (const struct cuda_block *)(void *)(base + at->blocks);
    enum ulp_status status = cuda_copy_in(base + at->blocks, wanted->blocks,
                                          segment->blocks * sizeof *wanted->blocks, stream);

    if (!status && !wanted->places) {
        status = cuda_copy_in(base + at->offsets, wanted->offsets,
                              segment->blocks * sizeof *wanted->offsets, stream);
        if (!status)
            status = cuda_gather_blocks(blocks, (const uint64_t *)(void *)(base + at->offsets),
                                        segment->blocks, segment->kind.width, base + at->gathered,
                                        stream);
    } else if (!status) {
        const struct cuda_plan plan = {(const struct cuda_segment *)(void *)(base + at->segment),
                                       blocks, 1, segment->blocks, 0};

        status = cuda_copy_in(base + at->segment, segment, sizeof *segment, stream);
        if (!status)
            status = cuda_copy_in(base + at->places, wanted->places,
                                  segment->blocks * sizeof *wanted->places, stream);
        if (!status)
            status = cuda_pack_blocks(&plan, (const struct cuda_place *)(void *)(base + at->places),
                                      0, stream);
    }
    return status;
}

enum ulp_status bring_elements(struct device_weights *weights, const struct device_plan *plan,
                               size_t chunk, enum bring_which which, uint8_t *ret_elements) {
    const struct cuda_segment *segment = &plan->segments[chunk];
    const size_t elements = (size_t)segment->elements * segment->kind.width;
    size_t bytes = 0;
    struct bringing at = {.blocks = room_place(&bytes, segment->blocks, sizeof(struct cuda_block))};
    struct wanted wanted;
    enum ulp_status status = list_blocks(plan, chunk, which, &wanted);

    at.offsets = room_place(&bytes, segment->blocks, sizeof(uint64_t));
    at.places = room_place(&bytes, plan->places ? segment->blocks : 0, sizeof(struct cuda_place));
    at.segment = room_place(&bytes, 1, sizeof *segment);
    at.gathered = room_place(&bytes, 1, elements);
    if (!status)
        status = room_take(&weights->spare, bytes, false, &at.room);
    if (!status) {
        if (wanted.places)
            list_places(plan, chunk, which, &wanted, at.room.memory + at.gathered);
        status = gather(&at, &wanted, segment, weights->stream);
        if (!status)
            status = cuda_copy_out(ret_elements, at.room.memory + at.gathered, elements,
                                   weights->stream);
        if (!status)
            status = cuda_wait(weights->stream);
        status = device_status(status, "bringing weights to the host");
    }
    room_give(&weights->spare, &at.room);
    mem_free(wanted.blocks);
    mem_free(wanted.offsets);
    mem_free(wanted.places);
    return status;
}
