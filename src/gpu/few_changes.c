// SPDX-License-Identifier: Apache-2.0
#include "gpu/few_changes.h"

#include "base/memory.h"
#include "cuda/list_changes.h"
#include "cuda/memory.h"

#include <stdlib.h>
#include <string.h>

/* The list, in the order of the stream. */
struct listed {
    struct cuda_change changes[CODE_FEW_CHANGES];
    uint32_t places[CODE_FEW_CHANGES];
    uint8_t values[CODE_FEW_CHANGES * 8];
    uint32_t count;
};

static int by_place(const void *a, const void *b) {
    const struct cuda_change *x = a, *y = b;

    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

static enum ulp_status list(struct device_weights *weights, const struct device_plan *plan,
                            const struct cuda_segment *segment,
                            const struct device_journal *journal, struct listed *listed) {
    const struct cuda_block *blocks = plan->blocks + segment->first_block;
    const size_t block_bytes = segment->blocks * sizeof *blocks;
    size_t bytes = 0;
    const size_t at_blocks = room_place(&bytes, 1, block_bytes);
    const size_t at_changes = room_place(&bytes, 1, sizeof listed->changes);
    const size_t at_count = room_place(&bytes, 1, sizeof listed->count);
    struct room room = {0};
    enum ulp_status status = room_take(&weights->spare, bytes, false, &room);

    if (status)
        return status;
    status = cuda_copy_in(room.memory + at_blocks, blocks, block_bytes, weights->stream);
    if (!status)
        status = cuda_clear(room.memory + at_count, sizeof listed->count, weights->stream);
    if (!status && journal)
        status = cuda_journal_list(&weights->plan.device, &journal->device, segment->first_block,
                                   segment->blocks, CODE_FEW_CHANGES,
                                   (struct cuda_change *)(void *)(room.memory + at_changes),
                                   (uint32_t *)(void *)(room.memory + at_count), weights->stream);
    else if (!status)
        status = cuda_list_changes((const struct cuda_block *)(void *)(room.memory + at_blocks),
                                   segment->blocks, segment->kind.width, CODE_FEW_CHANGES,
                                   (struct cuda_change *)(void *)(room.memory + at_changes),
                                   (uint32_t *)(void *)(room.memory + at_count), weights->stream);
    if (!status)
        status = cuda_copy_out(listed->changes, room.memory + at_changes, sizeof listed->changes,
                               weights->stream);
    if (!status)
        status = cuda_copy_out(&listed->count, room.memory + at_count, sizeof listed->count,
                               weights->stream);
    if (!status)
        status = cuda_wait(weights->stream);
    room_give(&weights->spare, &room);
    return device_status(status, "listing changes");
}

static void lay_out(const struct device_plan *plan, const struct cuda_segment *segment,
                    struct listed *listed, struct code_block *blocks) {
    const uint32_t width = segment->kind.width;
    uint32_t at = 0;

    qsort(listed->changes, listed->count, sizeof *listed->changes, by_place);
    for (uint32_t i = 0; i < listed->count; i++) {
        listed->places[i] = listed->changes[i].position;
        memcpy(listed->values + (size_t)i * width, &listed->changes[i].value, width);
    }
    for (uint32_t b = 0; b < segment->blocks; b++) {
        const uint32_t first = at;

        while (at < listed->count && listed->changes[at].block == b)
            at++;
        blocks[b] = (struct code_block){.elements = plan->blocks[segment->first_block + b].elements,
                                        .places = listed->places + first,
                                        .values = listed->values + (size_t)first * width,
                                        .place_count = at - first};
    }
}

enum ulp_status few_changes_code(struct device_weights *weights, const struct device_plan *plan,
                                 size_t chunk, const struct device_journal *journal,
                                 uint64_t changes, struct worker *worker) {
    const struct cuda_segment *segment = &plan->segments[chunk];
    struct listed *listed = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *listed, &listed);

    if (!status)
        status = list(weights, plan, segment, journal, listed);
    if (!status && listed->count != changes)
        status = fail(ULP_E_USAGE, "the new weights change while they are being compared");
    if (!status)
        status = worker_blocks(worker, segment->blocks);
    if (!status)
        status = worker_encoder(worker);
    buffer_clear(&worker->bytes);
    if (!status) {
        lay_out(plan, segment, listed, worker->blocks);
        status = code_encode(worker->encoder, segment->kind, CODE_PLAIN, worker->blocks,
                             segment->blocks, &worker->bytes);
    }
    mem_free(listed);
    return status;
}
