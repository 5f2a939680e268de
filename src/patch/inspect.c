// SPDX-License-Identifier: Apache-2.0
#include "patch/inspect.h"

#include "base/lock.h"
#include "base/memory.h"
#include "patch/apply.h"
#include "patch/fit.h"
#include "patch/place.h"

#include <string.h>

struct inspect_job {
    const struct ulp_patch *patch;
    const struct ulp_tensor *old; /* of the base, with data; or NULL */
    const struct moves *moves;
    struct workers *workers;

    struct lock lock; /* guards what follows */
    struct ulp_tensor_report *reports;
};

/* 1, 2, 3-4, 5-8, ... */
static unsigned bucket_of(uint64_t size) {
    unsigned bucket = size > 1 ? 64 - (unsigned)__builtin_clzll(size - 1) : 0;

    return bucket < ULP_STEP_BUCKETS ? bucket : ULP_STEP_BUCKETS - 1;
}

static uint64_t load_element(const void *from, size_t index, unsigned width) {
    uint64_t value = 0;

    memcpy(&value, (const uint8_t *)from + index * width, width);
    return value;
}

/* How far apart two bit patterns are, the shorter way around. */
static uint64_t distance(uint64_t a, uint64_t b, unsigned width) {
    const uint64_t mask = width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
    uint64_t up = (b - a) & mask, down = (a - b) & mask;

    return up < down ? up : down;
}

static enum ulp_status inspect_with_base(const struct inspect_job *job,
                                         const struct code_segment *segment,
                                         const struct block_walk *block, struct worker *worker,
                                         struct ulp_tensor_report *report) {
    const unsigned width = block->chunk->kind.width;
    const size_t chunk = (size_t)(block->chunk - block->grid->chunks);
    struct code_block old = {.elements = block->words};
    uint32_t count = 0;
    enum ulp_status status;

    old.old = place_read(block, job->old[piece_region(block->grid, block->piece)->tensor].data,
                         worker->old);
    if (code_needs_history(segment))
        chunk_moves_of(&job->moves->chunks[chunk], block->index, &old);
    status = code_decode(segment, worker->scratch, block->index, &old, worker->positions,
                         worker->values, &count);
    for (uint32_t i = 0; !status && i < count; i++)
        report->steps[bucket_of(distance(load_element(old.old, worker->positions[i], width),
                                         load_element(worker->values, i, width), width))]++;
    report->changed += status ? 0 : count;
    return status;
}

static void count_size(void *user, uint64_t size) {
    struct ulp_tensor_report *report = user;

    report->steps[bucket_of(size)]++;
}

static enum ulp_status inspect_block(const struct inspect_job *job,
                                     const struct code_segment *segment,
                                     const struct block_walk *block, struct worker *worker,
                                     struct ulp_tensor_report *report) {
    report->bits += 8 * code_block_bytes(segment, block->index);
    if (job->old)
        return inspect_with_base(job, segment, block, worker, report);
    report->changed += code_changes(segment, block->index);
    return code_each_size(segment, worker->scratch, block->index, count_size, report);
}

static void add_report(struct inspect_job *job, size_t tensor,
                       const struct ulp_tensor_report *from) {
    struct ulp_tensor_report *to = &job->reports[tensor];

    lock_take(&job->lock);
    to->elements += from->elements;
    to->changed += from->changed;
    to->bits += from->bits;
    for (unsigned i = 0; i < ULP_STEP_BUCKETS; i++)
        to->steps[i] += from->steps[i];
    for (unsigned i = 0; i < 4; i++)
        to->chunks[i] += from->chunks[i];
    lock_give(&job->lock);
}

static enum ulp_status inspect_chunk(void *user, uint64_t index) {
    static const unsigned place_of_coder[] = {
        [CODE_CONTEXT] = 1, [CODE_HISTORY] = 1, [CODE_PLAIN] = 2, [CODE_DENSE] = 3};
    struct inspect_job *job = user;
    const size_t chunk = (size_t)index;
    struct block_walk block = block_walk_start(&job->patch->table.grid, chunk);
    struct code_segment *segment = NULL;
    struct worker *worker = NULL;
    enum ulp_status status = workers_take(job->workers, block.chunk->words, &worker);

    if (!status && job->patch->table.chunks[chunk].bytes)
        status = patch_chunk(job->patch, chunk, worker, &segment);
    while (!status && block_walk_next(&block)) {
        struct ulp_tensor_report report = {.elements = block.words};

        if (!block.first)
            report.chunks[segment ? place_of_coder[code_coder_of(segment)] : 0] = 1;
        if (segment)
            status = inspect_block(job, segment, &block, worker, &report);
        if (!status)
            add_report(job, piece_region(block.grid, block.piece)->tensor, &report);
    }
    code_close(segment);
    workers_give(job->workers, worker);
    return status;
}

enum ulp_status patch_inspect(const struct ulp_patch *patch, const struct ulp_weights *base,
                              struct ulp_pool *pool, const struct ulp_progress *progress,
                              struct ulp_tensor_report *ret_reports) {
    struct inspect_job job = {.patch = patch};
    const size_t tensors = patch->table.tensor_count;
    enum ulp_status status = ULP_OK;

    if (base) {
        status = fit_base(base, patch);
        if (!status)
            status = fit_held(base, patch);
        job.old = base->tensors;
        job.moves = base->moves;
    }
    if (!status)
        status = mem_zeroed(tensors, sizeof *job.reports, &job.reports);
    if (!status)
        status = workers_new(&job.workers);
    lock_make(&job.lock);
    if (!status)
        status = ulp_pool_run(pool, patch->table.grid.chunk_count, inspect_chunk, &job, progress);
    lock_destroy(&job.lock);
    if (!status && tensors)
        memcpy(ret_reports, job.reports, tensors * sizeof *job.reports);
    workers_free(job.workers);
    mem_free(job.reports);
    return status;
}
