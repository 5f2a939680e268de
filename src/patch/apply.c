// SPDX-License-Identifier: Apache-2.0
#include "patch/apply.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "patch/fit.h"
#include "patch/place.h"
#include "scan/scan.h"

#include <stdatomic.h>
#include <string.h>

struct staging_room apply_room(const struct ulp_apply_options *options) {
    struct staging_room room = {0};

    if (options)
        room = (struct staging_room){options->staging_bytes, options->spill_directory};
    return room;
}

/* ---- preparing ---- */

struct prepare_job {
    struct ulp_apply *apply;
    size_t *first_piece; /* of each tensor, for parts of a whole state; else NULL */
    struct lock lock;
    atomic_uint_fast64_t decode_ns, digest_ns;
};

/* The part whose chunk a task is. */
static struct apply_part *part_of(const struct ulp_apply *apply, uint64_t task) {
    size_t i = apply->part_count - 1;

    while (apply->parts[i].first_task > task)
        i--;
    return &apply->parts[i];
}

static enum ulp_status take_room(struct staging *staging, const struct grid_chunk *chunk,
                                 uint64_t changes, struct decoded_chunk *into) {
    enum ulp_status status =
        staging_take(staging, chunk->blocks * sizeof *into->counts, &into->counts);

    if (!status)
        status = staging_take(staging, (size_t)changes * sizeof *into->positions, &into->positions);
    if (!status)
        status = staging_take(staging, (size_t)changes * chunk->kind.width, &into->values);
    return status;
}

static enum ulp_status prepare_chunk(void *user, uint64_t task) {
    struct prepare_job *job = user;
    struct ulp_apply *apply = job->apply;
    const struct apply_part *part = part_of(apply, task);
    const size_t chunk = (size_t)(task - part->first_task);
    const struct table *table = &part->patch->table;
    struct decode_job decode = {.patch = part->patch,
                                .old = apply->weights->tensors,
                                .target = {.sums = apply->sums,
                                           .first_piece = job->first_piece,
                                           .lock = &job->lock,
                                           .first_held = part->first_held}};
    struct decode_times times = {0};
    struct worker *worker = NULL;
    enum ulp_status status = ULP_OK;

    if (table->chunks[chunk].bytes) {
        if (table->history)
            decode.moves = &apply->weights->moves->chunks[chunk];
        status = take_room(apply->staging, &table->grid.chunks[chunk], table->chunks[chunk].changes,
                           &part->chunks[chunk]);
        if (!status)
            status =
                workers_take(apply->weights->workers, table->grid.chunks[chunk].words, &worker);
        if (!status)
            status = decode_chunk(&decode, chunk, worker, &part->chunks[chunk], &times);
        workers_give(apply->weights->workers, worker);
        atomic_fetch_add(&job->decode_ns, times.decode_ns);
        atomic_fetch_add(&job->digest_ns, times.digest_ns);
    }
    if (!status && !job->first_piece)
        status = decode_check(part->patch, chunk, &decode.target);
    return status;
}

/* Of a whole patch the sums are those of its table, which give its child root, so this holds; of
 * parts, this is where it shows whether they fit together. A tile does not give a root: its sums
 * are those of its patches, and that these belong to the child is for the caller to know. */
static enum ulp_status check_result(struct ulp_apply *apply) {
    enum ulp_status status = ULP_OK;

    if (apply->weights->grid.whole)
        status = table_root(&apply->weights->grid, apply->sums, &apply->root);
    else
        apply->root = apply->report.child;
    if (!status && !same_root(&apply->root, &apply->report.child))
        status = fail(ULP_E_WRONG_RESULT, "%s would lead to state %s..., not to %s...",
                      quote(apply->parts[0].patch->name).text, short_root(&apply->root).hex,
                      short_root(&apply->report.child).hex);
    return status;
}

static enum ulp_status make_parts(struct ulp_apply *apply, const struct ulp_patch *const *patches,
                                  size_t count) {
    enum ulp_status status = mem_zeroed(count, sizeof *apply->parts, &apply->parts);

    for (size_t i = 0; !status && i < count; i++) {
        struct apply_part *part = &apply->parts[i];

        apply->part_count = i + 1;
        part->patch = patches[i];
        part->first_task = apply->tasks;
        apply->tasks += patches[i]->table.grid.chunk_count;
        apply->report.changed += patches[i]->table.changes;
        status =
            mem_zeroed(patches[i]->table.grid.chunk_count, sizeof *part->chunks, &part->chunks);
        if (!status && !apply->weights->grid.whole)
            status = grid_find_regions(&apply->weights->grid, &patches[i]->table.grid,
                                       &part->first_held);
    }
    return status;
}

static enum ulp_status run_tasks(struct ulp_apply *apply, const struct ulp_progress *progress) {
    struct prepare_job job = {.apply = apply};
    enum ulp_status status = ULP_OK;

    if (!apply->parts[0].patch->table.grid.whole && apply->weights->grid.whole)
        status = grid_first_pieces(&apply->weights->grid, &job.first_piece);
    lock_make(&job.lock);
    if (!status)
        status = ulp_pool_run(apply->pool, apply->tasks, prepare_chunk, &job, progress);
    lock_destroy(&job.lock);
    mem_free(job.first_piece);
    apply->report.decode_seconds = (double)atomic_load(&job.decode_ns) / 1e9;
    apply->report.digest_seconds = (double)atomic_load(&job.digest_ns) / 1e9;
    return status;
}

static enum ulp_status decode_all(struct ulp_apply *apply,
                                  const struct ulp_apply_options *options) {
    const size_t pieces = apply->weights->grid.piece_count;
    enum ulp_status status = staging_new(apply_room(options), &apply->staging);

    if (!status)
        status = mem_zeroed(pieces, sizeof *apply->sums, &apply->sums);
    if (!status) {
        if (pieces)
            memcpy(apply->sums, apply->weights->sums, pieces * sizeof *apply->sums);
        status = run_tasks(apply, options->progress);
    }
    if (!status)
        status = check_result(apply);
    if (!status) {
        apply->report.staged_bytes = staging_held(apply->staging);
        apply->report.spilled_bytes = staging_spilled(apply->staging);
    }
    return status;
}

/* ---- going through what is staged ---- */

static enum ulp_status each_block_of(const struct ulp_apply *apply, uint64_t task,
                                     staged_block_fn fn, void *user) {
    const struct apply_part *part = part_of(apply, task);
    const struct grid *grid = &part->patch->table.grid;
    const size_t index = (size_t)(task - part->first_task);
    const struct decoded_chunk *chunk = &part->chunks[index];
    struct staged_block staged = {.block = block_walk_start(grid, index),
                                  .positions = chunk->positions,
                                  .values = chunk->values};
    enum ulp_status status = ULP_OK;

    while (!status && chunk->changes && block_walk_next(&staged.block)) {
        staged.count = chunk->counts[staged.block.index];
        if (!staged.count)
            continue;
        status = fn(user, &staged);
        staged.positions += staged.count;
        staged.values += (size_t)staged.count * grid->chunks[index].kind.width;
    }
    return status;
}

enum ulp_status apply_each_block(const struct ulp_apply *apply, staged_block_fn fn, void *user) {
    enum ulp_status status = ULP_OK;

    for (uint64_t task = 0; !status && task < apply->tasks; task++)
        status = each_block_of(apply, task, fn, user);
    return status;
}

/* ---- history for the patch after this one ---- */

struct moves_job {
    const struct ulp_apply *apply;
    struct worker *worker;
};

static enum ulp_status remember_block(void *user, const struct staged_block *staged) {
    const struct moves_job *job = user;
    const struct block_walk *block = &staged->block;
    const unsigned width = block->chunk->kind.width;
    const struct ulp_tensor *tensors = job->apply->weights->tensors;
    const void *data = tensors[piece_region(block->grid, block->piece)->tensor].data;

    scan_kernels(width)->gather(place_read(block, data, job->worker->old), staged->positions,
                                staged->count, job->worker->values);
    return moves_list_add(&job->worker->moves, block->index, width, staged->positions,
                          staged->count, job->worker->values, staged->values);
}

/* Of a whole patch, whose chunks are those of the weights. */
static enum ulp_status remember_chunk(void *user, uint64_t chunk) {
    const struct ulp_apply *apply = user;
    const struct grid_chunk *of = &apply->weights->grid.chunks[chunk];
    struct moves_job job = {.apply = apply};
    enum ulp_status status = workers_take(apply->weights->workers, of->words, &job.worker);

    if (!status)
        status = moves_list_begin(&job.worker->moves, of->blocks);
    if (!status)
        status = each_block_of(apply, chunk, remember_block, &job);
    if (!status)
        status = moves_keep(apply->moves, (size_t)chunk, &job.worker->moves);
    workers_give(apply->weights->workers, job.worker);
    return status;
}

static enum ulp_status remember_moves(struct ulp_apply *apply,
                                      const struct ulp_apply_options *options) {
    enum ulp_status status =
        moves_new(apply->weights->grid.chunk_count, apply_room(options), &apply->moves);

    if (!status)
        status = ulp_pool_run(apply->pool, apply->tasks, remember_chunk, apply, NULL);
    if (!status)
        apply->moves->before = apply->weights->root;
    return status;
}

enum ulp_status apply_prepare(struct ulp_weights *weights, const struct ulp_patch *const *parts,
                              size_t count, const struct ulp_root *child,
                              const struct ulp_apply_options *options,
                              struct ulp_apply **ret_apply) {
    static const struct ulp_apply_options plain = {0};
    struct ulp_apply *apply = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *apply, &apply);

    if (status)
        return status;
    options = options ? options : &plain;
    apply->weights = weights;
    apply->pool = options->pool;
    apply->report.parent = parts[0]->table.parent;
    if (child)
        apply->report.child = *child;
    else if (parts[0]->table.grid.whole)
        apply->report.child = parts[0]->table.child;
    else
        status = parts_root(parts, count, &apply->report.child);
    if (!status)
        status = fit_check(weights, parts, count, &apply->report.child, &apply->already);
    if (!status)
        status = make_parts(apply, parts, count);
    if (!status && !apply->already)
        status = decode_all(apply, options);
    if (!status && !apply->already && options->remember && parts[0]->table.grid.whole)
        status = remember_moves(apply, options);
    apply->report.already = apply->already;
    if (status) {
        apply_free(apply);
        return status;
    }
    *ret_apply = apply;
    return ULP_OK;
}

void apply_free(struct ulp_apply *apply) {
    if (!apply)
        return;
    for (size_t i = 0; i < apply->part_count; i++) {
        mem_free(apply->parts[i].chunks);
        mem_free(apply->parts[i].first_held);
    }
    mem_free(apply->parts);
    moves_free(apply->moves);
    staging_free(apply->staging);
    mem_free(apply->sums);
    mem_free(apply);
}

/* ---- writing ---- */

static void swap_staged(const struct ulp_weights *weights, const struct staged_block *staged) {
    const struct block_walk *block = &staged->block;

    place_swap(block, weights->tensors[piece_region(block->grid, block->piece)->tensor].data,
               staged->positions, staged->count, staged->values);
}

/* Without anybody to ask, chunks are written by all threads at once. */
static enum ulp_status swap_one(void *user, const struct staged_block *staged) {
    const struct ulp_apply *apply = user;

    swap_staged(apply->weights, staged);
    return ULP_OK;
}

static enum ulp_status swap_chunk(void *user, uint64_t task) {
    return each_block_of(user, task, swap_one, user);
}

/* With progress, block by block, so that it can stop anywhere. */
struct swap_job {
    const struct ulp_weights *weights;
    const struct ulp_progress *progress;
    uint64_t done, total, limit; /* in blocks; no more than the limit are written */
};

static enum ulp_status swap_next(void *user, const struct staged_block *staged) {
    struct swap_job *job = user;

    if (job->done == job->limit)
        return ULP_OK;
    swap_staged(job->weights, staged);
    job->done++;
    if (job->progress && job->progress->report(job->progress->user, job->done, job->total))
        return fail(ULP_E_CANCELLED, "stopped while writing; the old weights were put back");
    return ULP_OK;
}

static enum ulp_status count_block(void *user, const struct staged_block *staged) {
    (void)staged;
    ++*(uint64_t *)user;
    return ULP_OK;
}

/* Swapping is its own inverse: what was written before a stop is swapped back. */
static enum ulp_status swap_reporting(struct ulp_apply *apply,
                                      const struct ulp_progress *progress) {
    struct swap_job job = {.weights = apply->weights, .progress = progress, .limit = UINT64_MAX};
    struct error_note note;
    enum ulp_status status;

    apply_each_block(apply, count_block, &job.total);
    status = apply_each_block(apply, swap_next, &job);
    if (status) {
        error_save(&note);
        job = (struct swap_job){.weights = apply->weights, .limit = job.done};
        apply_each_block(apply, swap_next, &job);
        error_restore(&note);
    }
    return status;
}

static enum ulp_status swap_all(struct ulp_apply *apply, const struct ulp_progress *progress) {
    if (progress)
        return swap_reporting(apply, progress);
    return ulp_pool_run(apply->pool, apply->tasks, swap_chunk, apply, NULL);
}

/* Weights, sums, root and history change places with what is staged. */
static void exchange(struct ulp_apply *apply) {
    struct ulp_weights *weights = apply->weights;
    struct ulp_sum *sums = weights->sums;
    struct ulp_root root = weights->root;
    struct moves *moves = weights->moves;

    weights->sums = apply->sums;
    weights->root = apply->root;
    weights->moves = apply->moves;
    apply->sums = sums;
    apply->root = root;
    apply->moves = moves;
    apply->committed = !apply->committed;
}

/* What was decoded and summed holds for the state that was there then, and for no other. */
static enum ulp_status still_at(const struct ulp_apply *apply, const struct ulp_root *root) {
    if (same_root(&apply->weights->root, root))
        return ULP_OK;
    return fail(ULP_E_WRONG_BASE, "the weights have changed since: they were %s..., and are %s...",
                short_root(root).hex, short_root(&apply->weights->root).hex);
}

enum ulp_status apply_commit(struct ulp_apply *apply, const struct ulp_progress *progress,
                             struct ulp_apply_report *ret_report) {
    uint64_t started = clock_monotonic_ns();
    enum ulp_status status = ULP_OK;

    if (apply->committed)
        return fail(ULP_E_USAGE, "this patch was committed already");
    status = still_at(apply, apply->already ? &apply->report.child : &apply->report.parent);
    if (!status && !apply->already)
        status = swap_all(apply, progress);
    if (status)
        return status;
    if (!apply->already)
        exchange(apply);
    apply->report.write_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
    if (ret_report)
        *ret_report = apply->report;
    return ULP_OK;
}

enum ulp_status apply_undo(struct ulp_apply *apply) {
    enum ulp_status status;

    if (apply->already)
        return ULP_OK;
    if (!apply->committed)
        return fail(ULP_E_USAGE, "there is nothing to undo: the patch was not committed");
    status = still_at(apply, &apply->report.child);
    if (!status)
        status = swap_all(apply, NULL);
    if (!status)
        exchange(apply);
    return status;
}
