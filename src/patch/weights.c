// SPDX-License-Identifier: Apache-2.0
#include "patch/weights.h"

#include "base/memory.h"
#include "base/quote.h"
#include "base/word.h"
#include "patch/layout.h"
#include "patch/place.h"
#include "patch/table.h"
#include "patch/workers.h"
#include "scan/scan.h"
#include "tensor/tensor.h"

#include <stdlib.h>

/* ---- sums ---- */

struct digest_job {
    const struct grid *grid;
    const struct ulp_tensor *tensors;
    struct ulp_sum *sums;
};

static enum ulp_status digest_chunk(void *user, uint64_t chunk) {
    const struct digest_job *job = user;
    struct block_walk block = block_walk_start(job->grid, (size_t)chunk);

    while (block_walk_next(&block)) {
        const struct ulp_tensor *tensor =
            &job->tensors[piece_region(job->grid, block.piece)->tensor];

        place_digest(&block, tensor->data, &job->sums[block.piece]);
    }
    return ULP_OK;
}

enum ulp_status weights_digest(const struct grid *grid, const struct ulp_tensor *tensors,
                               struct ulp_pool *pool, const struct ulp_progress *progress,
                               struct ulp_sum *ret_sums) {
    struct digest_job job = {grid, tensors, ret_sums};

    return ulp_pool_run(pool, grid->chunk_count, digest_chunk, &job, progress);
}

/* ---- memory ---- */

/* Where a region lies, from its first byte to behind its last. */
struct stretch {
    uintptr_t begin, end;
    uint32_t tensor;
};

static int by_address(const void *a, const void *b) {
    uintptr_t x = ((const struct stretch *)a)->begin, y = ((const struct stretch *)b)->begin;

    return x < y ? -1 : x > y;
}

static struct stretch stretch_of(const struct grid_region *region,
                                 const struct ulp_tensor *tensor) {
    const struct ulp_region *box = &region->box;
    const unsigned width = word_bytes_of(tensor->bits);
    const uintptr_t data = (uintptr_t)tensor->data;
    uint64_t first = box->row * region->pitch + box->column;
    uint64_t last = first + (box->rows - 1) * region->pitch + box->columns;

    return (struct stretch){data + (uintptr_t)(first * width), data + (uintptr_t)(last * width),
                            region->tensor};
}

/* What is swapped twice is not put back by swapping twice more. Regions of one tensor do not
 * overlap, though their stretches may; as long as nothing was refused, all that reaches this far is
 * of the tensor that reaches farthest. */
static enum ulp_status refuse_shared_memory(const struct grid *grid) {
    struct stretch *sorted = NULL, last = {0};
    size_t count = 0;
    enum ulp_status status = mem_zeroed(grid->region_count, sizeof *sorted, &sorted);

    if (status)
        return status;
    for (size_t i = 0; i < grid->region_count; i++) {
        const struct grid_region *region = &grid->regions[i];

        if (region->words)
            sorted[count++] = stretch_of(region, &grid->tensors[region->tensor]);
    }
    qsort(sorted, count, sizeof *sorted, by_address);
    for (size_t i = 0; i < count && !status; i++) {
        if (last.end > sorted[i].begin && last.tensor != sorted[i].tensor)
            status = fail(ULP_E_OVERLAP, "tensors %s and %s share memory; name tied tensors once",
                          quote(grid->tensors[last.tensor].name).text,
                          quote(grid->tensors[sorted[i].tensor].name).text);
        if (sorted[i].end > last.end)
            last = sorted[i];
    }
    mem_free(sorted);
    return status;
}

/* Tensors of which something is held have memory. */
static enum ulp_status check_data(const struct grid *held, const struct ulp_tensor *tensors) {
    for (size_t i = 0; i < held->region_count; i++) {
        const struct ulp_tensor *tensor = &tensors[held->regions[i].tensor];

        if (held->regions[i].words && !tensor->data)
            return fail(ULP_E_USAGE, "tensor %s lacks its data, of which the tile holds a region",
                        quote(tensor->name).text);
    }
    return ULP_OK;
}

/* ---- making ---- */

static enum ulp_status copy_regions(struct ulp_weights *weights, const struct ulp_region *regions,
                                    size_t count) {
    enum ulp_status status =
        arena_zeroed(&weights->arena, count, sizeof *weights->regions, &weights->regions);

    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        weights->regions[i] = regions[i];
        weights->regions[i].tensor = weights->grid.regions[i].box.tensor;
    }
    weights->region_count = count;
    return ULP_OK;
}

/* All but sums and root. Without regions everything is held. */
static enum ulp_status describe(struct ulp_weights *weights, const struct ulp_tensor *tensors,
                                size_t count, const struct ulp_region *regions,
                                size_t region_count) {
    enum ulp_status status = layout_copy(tensors, count, &weights->arena, &weights->tensors);

    if (!status) {
        weights->count = count;
        status = grid_make(weights->tensors, count, regions, region_count, &weights->grid);
    }
    if (!status && region_count)
        status = copy_regions(weights, regions, region_count);
    if (!status)
        status = check_data(&weights->grid, weights->tensors);
    if (!status)
        status = refuse_shared_memory(&weights->grid);
    if (!status)
        status = workers_new(&weights->workers);
    if (!status)
        status = mem_zeroed(weights->grid.piece_count, sizeof *weights->sums, &weights->sums);
    return status;
}

/* All but the root. */
static enum ulp_status fill(struct ulp_weights *weights, const struct ulp_tensor *tensors,
                            size_t count, const struct ulp_region *regions, size_t region_count,
                            struct ulp_pool *pool, const struct ulp_progress *progress) {
    enum ulp_status status = describe(weights, tensors, count, regions, region_count);

    if (!status)
        status = weights_digest(&weights->grid, weights->tensors, pool, progress, weights->sums);
    return status;
}

enum ulp_status weights_new(const struct ulp_tensor *tensors, size_t count, struct ulp_pool *pool,
                            const struct ulp_progress *progress, struct ulp_weights **ret_weights) {
    struct ulp_weights *weights = NULL;
    enum ulp_status status = tensor_check_all(tensors, count, TENSOR_WITH_DATA);

    if (!status)
        status = mem_zeroed(1, sizeof *weights, &weights);
    if (!status)
        status = fill(weights, tensors, count, NULL, 0, pool, progress);
    if (!status)
        status = table_root(&weights->grid, weights->sums, &weights->root);
    if (status) {
        weights_free(weights);
        return status;
    }
    *ret_weights = weights;
    return ULP_OK;
}

enum ulp_status weights_new_elsewhere(const struct ulp_tensor *tensors, size_t count,
                                      const struct ulp_region *regions, size_t region_count,
                                      struct ulp_weights **ret_weights) {
    struct ulp_weights *weights = NULL;
    enum ulp_status status =
        tensor_check_all(tensors, count, region_count ? TENSOR_WITHOUT_DATA : TENSOR_WITH_DATA);

    if (!status)
        status = mem_zeroed(1, sizeof *weights, &weights);
    if (!status)
        status = describe(weights, tensors, count, regions, region_count);
    if (status) {
        weights_free(weights);
        return status;
    }
    *ret_weights = weights;
    return ULP_OK;
}

enum ulp_status weights_empty_tile(void) {
    return fail(ULP_E_REGIONS, "a tile without regions: there is nothing to hold, and there "
                               "are no patches of it");
}

enum ulp_status weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                 const struct ulp_region *regions, size_t region_count,
                                 const struct ulp_root *state, struct ulp_pool *pool,
                                 const struct ulp_progress *progress,
                                 struct ulp_weights **ret_weights) {
    struct ulp_weights *weights = NULL;
    enum ulp_status status = ULP_OK;

    if (!region_count)
        return weights_empty_tile();
    status = tensor_check_all(tensors, count, TENSOR_WITHOUT_DATA);
    if (!status)
        status = mem_zeroed(1, sizeof *weights, &weights);
    if (!status)
        status = fill(weights, tensors, count, regions, region_count, pool, progress);
    if (status) {
        weights_free(weights);
        return status;
    }
    weights->root = *state;
    *ret_weights = weights;
    return ULP_OK;
}

enum ulp_status weights_check_whole(const struct ulp_weights *weights, const char *doing) {
    return weights->grid.whole ? ULP_OK
                               : fail(ULP_E_REGIONS,
                                      "%s: these weights are a tile, not a whole "
                                      "state",
                                      doing);
}

void weights_free(struct ulp_weights *weights) {
    if (!weights)
        return;
    moves_free(weights->moves);
    workers_free(weights->workers);
    mem_free(weights->sums);
    grid_release(&weights->grid);
    arena_release(&weights->arena);
    mem_free(weights);
}

enum ulp_status weights_match(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                              size_t count, struct arena *arena, struct ulp_tensor **ret_tensors) {
    struct ulp_tensor *sorted = NULL;
    enum ulp_status status = tensor_check_all(
        tensors, count, weights->grid.whole ? TENSOR_WITH_DATA : TENSOR_WITHOUT_DATA);

    if (!status)
        status = layout_copy(tensors, count, arena, &sorted);
    if (!status)
        status = layout_compare(sorted, count, weights->tensors, weights->count, "the other state",
                                "the weights");
    if (!status)
        status = check_data(&weights->grid, sorted);
    if (!status)
        *ret_tensors = sorted;
    return status;
}

/* ---- history from the state before ---- */

struct remember_job {
    const struct ulp_weights *weights;
    const struct ulp_tensor *before;
    struct moves *moves;
    struct ulp_sum *sums; /* of the state before */
};

static enum ulp_status remember_block(const struct remember_job *job, struct worker *worker,
                                      const struct block_walk *block) {
    const size_t tensor = piece_region(block->grid, block->piece)->tensor;
    const unsigned width = block->chunk->kind.width;
    const struct scan_kernels *scan = scan_kernels(width);
    const void *old = place_read(block, job->before[tensor].data, worker->old);
    const void *new = place_read(block, job->weights->tensors[tensor].data, worker->new);
    uint32_t count;

    place_digest(block, job->before[tensor].data, &job->sums[block->piece]);
    count = (uint32_t)scan->collect(old, new, block->words, worker->positions);
    scan->gather(old, worker->positions, count, worker->values);
    scan->gather(new, worker->positions, count, worker->new);
    return moves_list_add(&worker->moves, block->index, width, worker->positions, count,
                          worker->values, worker->new);
}

static enum ulp_status remember_chunk(void *user, uint64_t chunk) {
    const struct remember_job *job = user;
    const struct grid *grid = &job->weights->grid;
    struct block_walk block = block_walk_start(grid, (size_t)chunk);
    struct worker *worker = NULL;
    enum ulp_status status =
        workers_take(job->weights->workers, grid->chunks[chunk].words, &worker);

    if (!status)
        status = moves_list_begin(&worker->moves, grid->chunks[chunk].blocks);
    while (!status && block_walk_next(&block))
        status = remember_block(job, worker, &block);
    if (!status)
        status = moves_keep(job->moves, (size_t)chunk, &worker->moves);
    workers_give(job->weights->workers, worker);
    return status;
}

enum ulp_status weights_remember(struct ulp_weights *weights, const struct ulp_tensor *before,
                                 size_t count, struct ulp_pool *pool,
                                 const struct ulp_progress *progress) {
    return weights_remember_in(weights, before, count, (struct staging_room){0}, pool, progress);
}

enum ulp_status weights_remember_in(struct ulp_weights *weights, const struct ulp_tensor *before,
                                    size_t count, struct staging_room room, struct ulp_pool *pool,
                                    const struct ulp_progress *progress) {
    struct remember_job job = {.weights = weights};
    struct ulp_tensor *sorted = NULL;
    struct arena arena = {0};
    enum ulp_status status = weights_check_whole(weights, "remembering");

    if (!status)
        status = weights_match(weights, before, count, &arena, &sorted);
    job.before = sorted;
    if (!status)
        status = moves_new(weights->grid.chunk_count, room, &job.moves);
    if (!status)
        status = mem_zeroed(weights->grid.piece_count, sizeof *job.sums, &job.sums);
    if (!status)
        status = ulp_pool_run(pool, weights->grid.chunk_count, remember_chunk, &job, progress);
    if (!status)
        status = table_root(&weights->grid, job.sums, &job.moves->before);
    if (!status) {
        moves_free(weights->moves);
        weights->moves = job.moves;
        job.moves = NULL;
    }
    moves_free(job.moves);
    mem_free(job.sums);
    arena_release(&arena);
    return status;
}
