// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_moves.h"

#include "base/memory.h"
#include "cuda/memory.h"

#include <string.h>

/* The moves of a block are where its changes are. */
static enum ulp_status find_blocks(const struct cuda_decode *decode, void *stream,
                                   struct device_moves *moves) {
    struct decode_block *decoded = NULL;
    uint32_t blocks = 0;
    enum ulp_status status;

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        blocks += decode->ranges[w].all;
    status = mem_zeroed(blocks, sizeof *decoded, &decoded);
    if (status)
        return status;
    status = cuda_copy_out(decoded, decode->blocks, blocks * sizeof *decoded, stream);
    if (!status)
        status = cuda_wait(stream);
    for (uint32_t i = 0; !status && i < blocks; i++) {
        moves->first[decoded[i].block] = decoded[i].first;
        moves->count[decoded[i].block] = decoded[i].changes;
    }
    mem_free(decoded);
    return device_status(status, "remembering moves");
}

/* None yet, with room for so many. */
static enum ulp_status new_moves(const struct device_plan *plan, uint64_t changes,
                                 struct device_moves **ret_moves) {
    struct device_moves *moves = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *moves, &moves);

    if (status)
        return status;
    status = mem_zeroed(plan->device.block_count, sizeof *moves->first, &moves->first);
    if (!status)
        status = mem_zeroed(plan->device.block_count, sizeof *moves->count, &moves->count);
    if (!status)
        status = room_take(&(struct room){0}, (size_t)changes * sizeof(decode_move), false,
                           &moves->room);
    if (status) {
        device_moves_free(moves);
        return status;
    }
    *ret_moves = moves;
    return ULP_OK;
}

enum ulp_status device_moves_of_journal(const struct device_plan *plan,
                                        const struct device_journal *journal, void *stream,
                                        struct device_moves **ret_moves) {
    const uint32_t blocks = plan->device.block_count;
    struct device_moves *moves = NULL;
    enum ulp_status status = new_moves(plan, journal->entries, &moves);

    if (status)
        return status;
    if (blocks) {
        memcpy(moves->first, journal->first, blocks * sizeof *moves->first);
        memcpy(moves->count, journal->count, blocks * sizeof *moves->count);
    }
    status = cuda_journal_moves(&plan->device, &journal->device,
                                (decode_move *)(void *)moves->room.memory, stream);
    if (!status)
        status = cuda_wait(stream);
    if (status) {
        device_moves_free(moves);
        return device_status(status, "remembering moves");
    }
    *ret_moves = moves;
    return ULP_OK;
}

enum ulp_status device_moves_make(const struct device_plan *plan, const struct cuda_decode *decode,
                                  uint64_t changes, void *stream, struct device_moves **ret_moves) {
    struct device_moves *moves = NULL;
    enum ulp_status status = new_moves(plan, changes, &moves);

    if (status)
        return status;
    status = device_status(
        cuda_decode_remember(decode, (decode_move *)(void *)moves->room.memory, stream),
        "remembering moves");
    if (!status)
        status = find_blocks(decode, stream, moves);
    if (status) {
        device_moves_free(moves);
        return status;
    }
    *ret_moves = moves;
    return ULP_OK;
}

void device_moves_free(struct device_moves *moves) {
    if (!moves)
        return;
    room_release(&moves->room);
    mem_free(moves->first);
    mem_free(moves->count);
    mem_free(moves);
}
