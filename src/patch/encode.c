// SPDX-License-Identifier: Apache-2.0
#include "patch/encode.h"

#include "base/clock.h"
#include "base/memory.h"
#include "patch/place.h"
#include "scan/scan.h"

#include <string.h>

static size_t chunk_bytes(const struct grid_chunk *chunk) {
    return (size_t)chunk->words * chunk->kind.width;
}

static const void *tensor_data(const struct ulp_tensor *tensors, const struct block_walk *block) {
    return tensors[piece_region(block->grid, block->piece)->tensor].data;
}

/* The elements of a block. Those that are scattered are copied together at `*copied`, which moves
 * on: the codec wants all blocks of a chunk at once. */
static const void *block_elements(const struct ulp_tensor *tensors, const struct block_walk *block,
                                  uint8_t **copied) {
    const void *elements = place_read(block, tensor_data(tensors, block), *copied);

    if (elements == *copied)
        *copied += (size_t)block->words * block->chunk->kind.width;
    return elements;
}

static bool scattered(const struct grid *grid, const struct grid_chunk *chunk) {
    for (uint32_t i = 0; i < chunk->pieces; i++) {
        const struct grid_region *region = piece_region(grid, chunk->first_piece + i);

        if (region->box.columns != region->pitch && region->box.rows > 1)
            return true;
    }
    return false;
}

static enum ulp_status room_for_copies(struct worker *worker, const struct grid *grid,
                                       const struct grid_chunk *chunk) {
    enum ulp_status status = ULP_OK;

    if (!scattered(grid, chunk))
        return ULP_OK;
    buffer_clear(&worker->old_copy);
    buffer_clear(&worker->new_copy);
    status = buffer_reserve(&worker->old_copy, chunk_bytes(chunk));
    return status ? status : buffer_reserve(&worker->new_copy, chunk_bytes(chunk));
}

static enum ulp_status lay_out_blocks(const struct encode_job *job, size_t chunk,
                                      struct worker *worker) {
    const struct grid_chunk *of = &job->grid->chunks[chunk];
    struct block_walk block = block_walk_start(job->grid, chunk);
    const uint8_t *next = job->elements;
    uint8_t *old_copy, *new_copy;
    enum ulp_status status = worker_blocks(worker, of->blocks);

    if (!status)
        status = worker_encoder(worker);
    if (!status)
        status = room_for_copies(worker, job->grid, of);
    if (status)
        return status;
    old_copy = worker->old_copy.data;
    new_copy = worker->new_copy.data;
    while (block_walk_next(&block)) {
        struct code_block *to = &worker->blocks[block.index];

        *to = (struct code_block){.elements = block.words};
        to->old = block_elements(job->old, &block, &old_copy);
        to->new = next ? next : block_elements(job->new, &block, &new_copy);
        if (next)
            next += (size_t)block.words * of->kind.width;
        if (job->moves)
            chunk_moves_of(job->moves, block.index, to);
    }
    return ULP_OK;
}

/* Frozen layers: nothing is learnt from walking over them. Where something changes, the first
 * difference is not far. */
static bool unchanged(const struct worker *worker, const struct grid_chunk *chunk) {
    for (uint32_t b = 0; b < chunk->blocks; b++) {
        const struct code_block *block = &worker->blocks[b];

        if (memcmp(block->old, block->new, (size_t)block->elements * chunk->kind.width) != 0)
            return false;
    }
    return true;
}

static enum ulp_status encode(const struct encode_job *job, const struct grid_chunk *chunk,
                              struct worker *worker, bool *ret_history) {
    static const enum code_coder forced[] = {
        [ULP_CODER_PLAIN] = CODE_PLAIN, [ULP_CODER_DENSE] = CODE_DENSE};
    enum code_coder coder = job->moves ? CODE_HISTORY : CODE_CONTEXT;
    enum ulp_status status;

    buffer_clear(&worker->bytes);
    if (job->coder == ULP_CODER_BEST) {
        status = code_encode_best(worker->encoder, chunk->kind, job->moves != NULL, worker->blocks,
                                  chunk->blocks, &worker->bytes, &coder);
    } else {
        if (job->coder != ULP_CODER_CONTEXT)
            coder = forced[job->coder];
        status = code_encode(worker->encoder, chunk->kind, coder, worker->blocks, chunk->blocks,
                             &worker->bytes);
    }
    *ret_history = coder == CODE_HISTORY;
    return status;
}

/* Takes the changes over into the sums, block by block as the encoder finds them. */
struct sum_keeper {
    const struct encode_job *job;
    struct worker *worker;
    struct block_walk block;
    struct ulp_sum *sums;
    uint64_t changes, ns;
};

static void keep_sums(void *user, size_t index, const uint32_t *positions, uint32_t count) {
    struct sum_keeper *keeper = user;
    const struct code_block *elements = &keeper->worker->blocks[index];
    uint64_t started = clock_monotonic_ns();

    block_walk_next(&keeper->block);
    if (count) {
        scan_kernels(keeper->block.chunk->kind.width)
            ->gather(elements->new, positions, count, keeper->worker->values);
        place_replace(&keeper->block, tensor_data(keeper->job->old, &keeper->block), positions,
                      count, keeper->worker->values, &keeper->sums[keeper->block.piece]);
    }
    keeper->changes += count;
    keeper->ns += clock_monotonic_ns() - started;
}

enum ulp_status encode_chunk(const struct encode_job *job, size_t chunk, struct worker *worker,
                             struct ulp_sum *sums, struct encoded_chunk *ret_encoded) {
    struct sum_keeper keeper = {
        .job = job, .worker = worker, .block = block_walk_start(job->grid, chunk), .sums = sums};
    uint64_t started = clock_monotonic_ns();
    bool history = false;
    enum ulp_status status = lay_out_blocks(job, chunk, worker);

    if (status)
        return status;
    if (unchanged(worker, &job->grid->chunks[chunk])) {
        *ret_encoded = (struct encoded_chunk){.encode_ns = clock_monotonic_ns() - started};
        return ULP_OK;
    }
    code_encoder_watch(worker->encoder, keep_sums, &keeper);
    status = encode(job, &job->grid->chunks[chunk], worker, &history);
    code_encoder_watch(worker->encoder, NULL, NULL);
    if (status)
        return status;
    *ret_encoded = (struct encoded_chunk){.changes = keeper.changes,
                                          .history = history && keeper.changes,
                                          .encode_ns = clock_monotonic_ns() - started - keeper.ns,
                                          .digest_ns = keeper.ns};
    return ULP_OK;
}
