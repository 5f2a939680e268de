// SPDX-License-Identifier: Apache-2.0
#include "patch/encode.h"

#include "base/clock.h"
#include "base/memory.h"
#include "patch/place.h"
#include "scan/scan.h"

static size_t chunk_bytes(const struct grid_chunk *chunk) {
    return (size_t)chunk->words * chunk->kind.width;
}

static const void *tensor_data(const struct ulp_tensor *tensors, const struct block_walk *block) {
    return tensors[piece_region(block->grid, block->piece)->tensor].data;
}

/* The elements of a block. Those that are scattered are copied together at `*copied`, which moves on:
 * the codec wants all blocks of a chunk at once. */
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

static enum ulp_status encode(const struct encode_job *job, const struct grid_chunk *chunk,
                              struct worker *worker, struct encoded_chunk *encoded) {
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
    encoded->history = coder == CODE_HISTORY;
    return status;
}

/* Counts the changes and takes them over into the sums. */
static void adjust_sums(const struct encode_job *job, size_t chunk, struct worker *worker,
                        struct ulp_sum *sums, struct encoded_chunk *encoded) {
    struct block_walk block = block_walk_start(job->grid, chunk);
    const struct scan_kernels *scan = scan_kernels(block.chunk->kind.width);

    while (block_walk_next(&block)) {
        uint32_t count = 0;
        const uint32_t *positions = code_encoder_positions(worker->encoder, block.index, &count);

        if (!count)
            continue;
        scan->gather(worker->blocks[block.index].new, positions, count, worker->values);
        place_replace(&block, tensor_data(job->old, &block), positions, count, worker->values,
                      &sums[block.piece]);
        encoded->changes += count;
    }
}

enum ulp_status encode_chunk(const struct encode_job *job, size_t chunk, struct worker *worker,
                             struct ulp_sum *sums, struct encoded_chunk *ret_encoded) {
    struct encoded_chunk encoded = {0};
    uint64_t started = clock_monotonic_ns(), coded;
    enum ulp_status status = lay_out_blocks(job, chunk, worker);

    if (!status)
        status = encode(job, &job->grid->chunks[chunk], worker, &encoded);
    if (status)
        return status;
    coded = clock_monotonic_ns();
    adjust_sums(job, chunk, worker, sums, &encoded);
    encoded.encode_ns = coded - started;
    encoded.digest_ns = clock_monotonic_ns() - coded;
    encoded.history = encoded.history && encoded.changes;
    *ret_encoded = encoded;
    return ULP_OK;
}
