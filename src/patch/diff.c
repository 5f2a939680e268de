// SPDX-License-Identifier: Apache-2.0
#include "patch/diff.h"

#include "base/memory.h"
#include "patch/encode.h"
#include "patch/file_sink.h"
#include "patch/layout.h"

#include <stdatomic.h>
#include <string.h>

struct diff_job {
    struct encode_job encode;
    const struct moves *moves; /* NULL without history */
    struct workers *workers;
    struct patch_output output;
    atomic_bool history; /* some chunk is coded with it */
    atomic_uint_fast64_t encode_ns, digest_ns;
};

enum ulp_status table_for(const struct ulp_weights *weights, const struct ulp_region *regions,
                          size_t region_count, struct table *ret_table) {
    struct table table = {.parent = weights->root, .tensor_count = weights->count};
    struct ulp_tensor *tensors = NULL;
    enum ulp_status status = layout_copy(weights->tensors, weights->count, &table.arena, &tensors);

    table.tensors = tensors;
    if (!status)
        status = grid_make(tensors, weights->count, regions, region_count, &table.grid);
    if (status) {
        table_release(&table);
        return status;
    }
    *ret_table = table;
    return ULP_OK;
}

static enum ulp_status diff_chunk(void *user, uint64_t chunk) {
    struct diff_job *job = user;
    struct encode_job encode = job->encode;
    struct encoded_chunk encoded = {0};
    struct worker *worker = NULL;
    enum ulp_status status =
        workers_take(job->workers, job->output.table.grid.chunks[chunk].words, &worker);

    if (job->moves)
        encode.moves = &job->moves->chunks[chunk];
    if (!status)
        status = encode_chunk(&encode, (size_t)chunk, worker, job->output.table.sums, &encoded);
    if (!status)
        status = output_chunk(&job->output, (size_t)chunk, worker->bytes.data, worker->bytes.used,
                              encoded.changes);
    if (status)
        output_fail(&job->output, (size_t)chunk);
    if (encoded.history)
        atomic_store(&job->history, true);
    atomic_fetch_add(&job->encode_ns, encoded.encode_ns);
    atomic_fetch_add(&job->digest_ns, encoded.digest_ns);
    workers_give(job->workers, worker);
    return status;
}

struct ulp_diff_report diff_report(const struct patch_output *output) {
    const struct grid *grid = &output->table.grid;
    struct ulp_diff_report report = {.parent = output->table.parent,
                                     .child = output->table.child,
                                     .elements = grid->words,
                                     .changed = output->table.changes,
                                     .patch_bytes = output->bytes,
                                     .history = output->table.history,
                                     .write_seconds = (double)output->write_ns / 1e9};

    for (size_t i = 0; i < grid->chunk_count; i++)
        report.dense_bytes += (uint64_t)grid->chunks[i].words * grid->chunks[i].kind.width;
    return report;
}

/* The pieces of a tile's regions are known, if in another order. */
static enum ulp_status start_from_tile(const struct grid *grid, const struct ulp_weights *weights,
                                       struct ulp_sum *sums) {
    size_t *first = NULL;
    enum ulp_status status = grid_find_regions(&weights->grid, grid, &first);

    for (size_t i = 0; !status && i < grid->piece_count; i++)
        sums[i] = weights->sums[held_piece(first, &grid->pieces[i])];
    mem_free(first);
    return status;
}

/* A whole patch starts from the sums that are known. Those of regions are not among the pieces of a
 * whole state, so they are summed up first. */
static enum ulp_status start_sums(struct diff_job *job, const struct ulp_weights *weights,
                                  struct ulp_pool *pool) {
    const struct grid *grid = &job->output.table.grid;

    if (!weights->grid.whole)
        return start_from_tile(grid, weights, job->output.table.sums);
    if (grid->whole && grid->piece_count)
        memcpy(job->output.table.sums, weights->sums, grid->piece_count * sizeof *weights->sums);
    return grid->whole ? ULP_OK
                       : weights_digest(grid, job->encode.old, pool, NULL, job->output.table.sums);
}

static enum ulp_status run(struct diff_job *job, const struct ulp_weights *weights,
                           const struct ulp_diff_options *options) {
    const struct grid *grid = &job->output.table.grid;
    enum ulp_status status = start_sums(job, weights, options->pool);

    job->encode.grid = grid;
    job->encode.coder = options->coder;
    job->workers = weights->workers;
    if (grid->whole && options->history && options->coder <= ULP_CODER_CONTEXT)
        job->moves = weights->moves;
    if (!status)
        status = ulp_pool_run(options->pool, grid->chunk_count, diff_chunk, job, options->progress);
    if (!status && atomic_load(&job->history)) {
        job->output.table.history = true;
        job->output.table.before = job->moves->before;
    }
    return status ? status : output_end(&job->output);
}

enum ulp_status diff_options_check(const struct ulp_diff_options *options) {
    if (options->coder < ULP_CODER_BEST || options->coder > ULP_CODER_DENSE)
        return fail(ULP_E_USAGE, "there is no coder %d", (int)options->coder);
    if (!options->regions != !options->region_count)
        return fail(ULP_E_USAGE, "regions without their number, or none of them: nothing to do");
    return ULP_OK;
}

/* Of a tile everything that is held, unless only some of its regions are asked for. */
static enum ulp_status table_of_options(const struct ulp_weights *weights,
                                        const struct ulp_diff_options *options,
                                        struct table *ret_table) {
    if (options->regions)
        return table_for(weights, options->regions, options->region_count, ret_table);
    return table_for(weights, weights->regions, weights->region_count, ret_table);
}

enum ulp_status diff(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                     size_t count, const struct ulp_diff_options *options,
                     const struct ulp_sink *sink, struct ulp_diff_report *ret_report) {
    static const struct ulp_diff_options plain = {0};
    struct diff_job job = {.encode = {.old = weights->tensors}};
    struct ulp_tensor *new = NULL;
    struct arena arena = {0};
    struct table table = {0};
    enum ulp_status status = weights_match(weights, tensors, count, &arena, &new);

    options = options ? options : &plain;
    if (!status)
        status = diff_options_check(options);
    if (!status)
        status = table_of_options(weights, options, &table);
    if (!status) {
        job.encode.new = new;
        status = output_begin(sink, &table, &job.output);
        if (!status)
            status = run(&job, weights, options);
        if (!status && ret_report) {
            *ret_report = diff_report(&job.output);
            ret_report->encode_seconds = (double)atomic_load(&job.encode_ns) / 1e9;
            ret_report->digest_seconds = (double)atomic_load(&job.digest_ns) / 1e9;
        }
        output_release(&job.output);
    }
    arena_release(&arena);
    return status;
}

/* ---- into a file ---- */

enum ulp_status diff_file(const struct ulp_weights *weights, const struct ulp_tensor *tensors,
                          size_t count, const struct ulp_diff_options *options, const char *path,
                          enum ulp_commit commit, struct ulp_diff_report *ret_report) {
    struct file_sink file = {0};
    struct ulp_diff_report report = {0};
    enum ulp_status status = file_sink_open(path, commit, &file);

    if (!status)
        status = diff(weights, tensors, count, options, &file.sink, &report);
    if (!status)
        status = file_writer_commit(&file.writer, commit);
    file_writer_release(&file.writer);
    if (!status && ret_report)
        *ret_report = report;
    return status;
}
