// SPDX-License-Identifier: Apache-2.0
#include "patch/decode.h"

#include "base/clock.h"
#include "base/quote.h"
#include "patch/place.h"

#include <string.h>

static enum ulp_status other_changes(const struct ulp_patch *patch,
                                     const struct grid_chunk *chunk) {
    return fail(ULP_E_TABLE, "%s: chunk %zu has other changes than its table says",
                quote(patch->name).text, (size_t)(chunk - patch->table.grid.chunks));
}

/* Where block after block goes. */
struct decoding {
    const struct decode_job *job;
    struct worker *worker;
    struct code_segment *segment;
    struct block_walk block;
    const uint8_t *elements; /* of the block, where they lie end to end */
    struct decoded_chunk *into;
};

static const void *block_data(const struct decoding *d) {
    return d->job->old[piece_region(d->block.grid, d->block.piece)->tensor].data;
}

/* Straight into place, since the blocks announce as many changes as the table does. All but dense
 * ones: those announce every element, and the ones that stay are dropped. */
static enum ulp_status decode_block(struct decoding *d, uint64_t announced) {
    const unsigned width = d->block.chunk->kind.width;
    const bool dense = code_coder_of(d->segment) == CODE_DENSE;
    uint32_t *positions = d->into->positions + d->into->changes, count = 0;
    uint8_t *values = d->into->values + d->into->changes * width;
    struct code_block old = {.elements = d->block.words};
    enum ulp_status status;

    old.old = d->elements ? d->elements : place_read(&d->block, block_data(d), d->worker->old);
    if (d->job->moves && code_needs_history(d->segment))
        chunk_moves_of(d->job->moves, d->block.index, &old);
    status = code_decode(d->segment, d->worker->scratch, d->block.index, &old,
                         dense ? d->worker->positions : positions,
                         dense ? d->worker->values : values, &count);
    if (!status && count > announced - d->into->changes)
        status = other_changes(d->job->patch, d->block.chunk);
    if (!status && dense && count) {
        memcpy(positions, d->worker->positions, count * sizeof *positions);
        memcpy(values, d->worker->values, (size_t)count * width);
    }
    d->into->counts[d->block.index] = status ? 0 : count;
    return status;
}

/* The sum of a piece of the patch, where the state has the same pieces. */
static struct ulp_sum *sum_of_piece(const struct sum_target *target, const struct grid *grid,
                                    size_t piece) {
    return &target->sums[target->first_held ? held_piece(target->first_held, &grid->pieces[piece])
                                            : piece];
}

static void adjust_split(struct decoding *d, const uint32_t *positions, uint32_t count,
                         const uint8_t *values) {
    const struct sum_target *target = &d->job->target;
    const struct block_walk *block = &d->block;
    struct ulp_sum *sums =
        &target->sums[target->first_piece[piece_region(block->grid, block->piece)->tensor]];

    lock_take(target->lock);
    if (d->elements)
        place_replace_split_copy(block, d->elements, positions, count, values, sums);
    else
        place_replace_split(block, block_data(d), positions, count, values, sums);
    lock_give(target->lock);
}

/* Elements that lie end to end are summed as if they were in their tensor. */
static void adjust_sum(struct decoding *d) {
    const struct sum_target *target = &d->job->target;
    const struct block_walk *block = &d->block;
    const uint32_t *positions = d->into->positions + d->into->changes;
    const uint8_t *values = d->into->values + d->into->changes * block->chunk->kind.width;
    uint32_t count = d->into->counts[block->index];

    if (target->first_piece)
        adjust_split(d, positions, count, values);
    else if (d->elements)
        place_replace_copy(block, d->elements, positions, count, values,
                           sum_of_piece(target, block->grid, block->piece));
    else
        place_replace(block, block_data(d), positions, count, values,
                      sum_of_piece(target, block->grid, block->piece));
}

enum ulp_status decode_chunk(const struct decode_job *job, size_t chunk, struct worker *worker,
                             struct decoded_chunk *into, struct decode_times *times) {
    const uint64_t announced = job->patch->table.chunks[chunk].changes;
    struct decoding d = {.job = job,
                         .worker = worker,
                         .block = block_walk_start(&job->patch->table.grid, chunk),
                         .elements = job->elements,
                         .into = into};
    uint64_t started = clock_monotonic_ns();
    enum ulp_status status = patch_chunk(job->patch, chunk, worker, &d.segment);

    into->changes = 0;
    while (!status && block_walk_next(&d.block)) {
        uint64_t decoded;

        status = decode_block(&d, announced);
        decoded = clock_monotonic_ns();
        times->decode_ns += decoded - started;
        if (!status) {
            adjust_sum(&d);
            into->changes += into->counts[d.block.index];
            if (d.elements)
                d.elements += (size_t)d.block.words * d.block.chunk->kind.width;
        }
        started = clock_monotonic_ns();
        times->digest_ns += started - decoded;
    }
    code_close(d.segment);
    if (!status && into->changes != announced)
        status = other_changes(job->patch, d.block.chunk);
    return status;
}

enum ulp_status decode_check(const struct ulp_patch *patch, size_t chunk,
                             const struct sum_target *target) {
    const struct grid *grid = &patch->table.grid;
    const struct grid_chunk *of = &grid->chunks[chunk];

    for (size_t i = of->first_piece; i < (size_t)of->first_piece + of->pieces; i++) {
        if (memcmp(sum_of_piece(target, grid, i), &patch->table.sums[i],
                   sizeof patch->table.sums[i]) != 0)
            return fail(ULP_E_WRONG_RESULT,
                        "%s: tensor %s would not become what the patch says; nothing was written",
                        quote(patch->name).text, quote(piece_tensor(grid, i)->name).text);
    }
    return ULP_OK;
}
