// SPDX-License-Identifier: Apache-2.0
#include "gpu/on_host.h"

#include "base/memory.h"
#include "cuda/gather_blocks.h"
#include "cuda/memory.h"

/* The elements of a chunk, end to end, from the device. */
static enum ulp_status bring_elements(struct device_weights *weights, size_t chunk,
                                      uint8_t *ret_elements) {
    const struct cuda_segment *segment = &weights->plan.segments[chunk];
    const size_t elements = (size_t)segment->elements * segment->kind.width;
    size_t bytes = 0, at = 0;
    const size_t places = room_place(&bytes, segment->blocks, sizeof(uint64_t));
    const size_t gathered = room_place(&bytes, 1, elements);
    uint64_t *offsets = NULL;
    struct room room = {0};
    enum ulp_status status = mem_zeroed(segment->blocks, sizeof *offsets, &offsets);

    for (uint32_t b = 0; !status && b < segment->blocks; b++) {
        offsets[b] = at;
        at += (size_t)weights->plan.blocks[segment->first_block + b].elements * segment->kind.width;
    }
    if (!status)
        status = room_take(&weights->spare, bytes, false, &room);
    if (!status) {
        status = cuda_copy_in(room.memory + places, offsets, segment->blocks * sizeof *offsets,
                              weights->stream);
        if (!status)
            status = cuda_gather_blocks(weights->plan.device.blocks + segment->first_block,
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
    mem_free(offsets);
    return status;
}

static enum ulp_status take_room(const struct grid_chunk *chunk, uint64_t changes,
                                 struct decoded_chunk *into) {
    enum ulp_status status = mem_zeroed(chunk->blocks, sizeof *into->counts, &into->counts);

    if (!status)
        status = mem_zeroed((size_t)changes, sizeof *into->positions, &into->positions);
    if (!status)
        status = mem_zeroed((size_t)changes, chunk->kind.width, &into->values);
    return status;
}

void on_host_release(struct decoded_chunk *decoded) {
    mem_free(decoded->counts);
    mem_free(decoded->positions);
    mem_free(decoded->values);
    *decoded = (struct decoded_chunk){0};
}

enum ulp_status on_host_decode(struct device_weights *weights, const struct ulp_patch *patch,
                               size_t chunk, struct ulp_sum *sums, struct decoded_chunk *ret_into) {
    const struct grid_chunk *of = &patch->table.grid.chunks[chunk];
    struct workers *workers = weights->weights->workers;
    struct decode_job job = {.patch = patch, .target = {.sums = sums}};
    struct decoded_chunk into = {0};
    struct decode_times times = {0};
    struct worker *worker = NULL;
    uint8_t *elements = NULL;
    enum ulp_status status = mem_zeroed(of->words, of->kind.width, &elements);

    if (!status)
        status = bring_elements(weights, chunk, elements);
    if (!status)
        status = take_room(of, patch->table.chunks[chunk].changes, &into);
    if (!status)
        status = workers_take(workers, of->words, &worker);
    job.elements = elements;
    if (!status)
        status = decode_chunk(&job, chunk, worker, &into, &times);
    workers_give(workers, worker);
    mem_free(elements);
    if (status) {
        on_host_release(&into);
        return status;
    }
    *ret_into = into;
    return ULP_OK;
}
