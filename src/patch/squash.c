// SPDX-License-Identifier: Apache-2.0
/*
 * Chunk by chunk: a copy of the chunk's elements goes through all patches, and is then coded
 * against the weights. So memory is one chunk for each thread, however many patches there are.
 */
#include "patch/squash.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "patch/decode.h"
#include "patch/diff.h"
#include "patch/encode.h"
#include "patch/file_sink.h"
#include "patch/fit.h"
#include "patch/layout.h"
#include "patch/place.h"
#include "scan/scan.h"

#include <stdatomic.h>
#include <string.h>

struct squash_job {
    const struct ulp_weights *weights;
    const struct ulp_patch *const *patches;
    size_t count;
    enum ulp_coder coder;
    struct ulp_sum *sums; /* of the pieces, patch after patch */
    struct patch_output output;
    atomic_uint_fast64_t encode_ns, digest_ns;
};

/* The elements of one chunk on their way, and how they moved last. */
struct traveller {
    struct worker *worker;
    uint8_t *elements;
    struct decoded_chunk changes;
    uint64_t room;            /* for changes */
    struct chunk_moves moves; /* in the worker */
    bool moved;               /* they are known */
};

static enum ulp_status set_out(const struct squash_job *job, size_t chunk, struct traveller *t) {
    const struct grid *grid = &job->weights->grid;
    struct block_walk block = block_walk_start(grid, chunk);
    const size_t bytes = (size_t)block.chunk->words * block.chunk->kind.width;
    uint8_t *to;
    enum ulp_status status;

    buffer_clear(&t->worker->new_copy);
    status = buffer_reserve(&t->worker->new_copy, bytes);
    if (!status)
        status = mem_zeroed(block.chunk->blocks, sizeof *t->changes.counts, &t->changes.counts);
    if (status)
        return status;
    t->elements = to = t->worker->new_copy.data;
    while (block_walk_next(&block)) {
        const size_t part = (size_t)block.words * block.chunk->kind.width;
        const void *data = job->weights->tensors[piece_region(grid, block.piece)->tensor].data;

        memcpy(to, place_read(&block, data, t->worker->old), part);
        to += part;
    }
    return ULP_OK;
}

static void arrive(struct traveller *t) {
    mem_free(t->changes.counts);
    mem_free(t->changes.positions);
    mem_free(t->changes.values);
}

static enum ulp_status make_room(struct traveller *t, uint64_t changes, unsigned width) {
    enum ulp_status status;

    if (changes <= t->room)
        return ULP_OK;
    status = mem_resize(&t->changes.positions, (size_t)changes, sizeof *t->changes.positions);
    if (!status)
        status = mem_resize(&t->changes.values, (size_t)changes, width);
    if (!status)
        t->room = changes;
    return status;
}

/* Writes the decoded changes and notes how the elements moved, for a patch that wants to know. */
static enum ulp_status step(const struct grid *grid, size_t chunk, struct traveller *t) {
    struct block_walk block = block_walk_start(grid, chunk);
    const unsigned width = block.chunk->kind.width;
    const struct scan_kernels *scan = scan_kernels(width);
    const uint32_t *positions = t->changes.positions;
    const uint8_t *values = t->changes.values;
    uint8_t *elements = t->elements;
    enum ulp_status status = moves_list_begin(&t->worker->moves, block.chunk->blocks);

    while (!status && block_walk_next(&block)) {
        uint32_t count = t->changes.changes ? t->changes.counts[block.index] : 0;

        scan->gather(elements, positions, count, t->worker->values);
        status = moves_list_add(&t->worker->moves, block.index, width, positions, count,
                                t->worker->values, values);
        scan->scatter(elements, positions, count, values);
        positions = count ? positions + count : positions;
        values = count ? values + (size_t)count * width : values;
        elements += (size_t)block.words * width;
    }
    if (!status)
        t->moves = moves_list_view(&t->worker->moves);
    t->moved = true;
    return status;
}

static enum ulp_status travel(const struct squash_job *job, size_t chunk, size_t number,
                              struct traveller *t) {
    const struct ulp_patch *patch = job->patches[number];
    struct decode_job decode = {
        .patch = patch, .elements = t->elements, .target = {.sums = job->sums}};
    struct decode_times times = {0};
    enum ulp_status status = ULP_OK;

    t->changes.changes = 0;
    if (patch->table.history)
        decode.moves = t->moved ? &t->moves : &job->weights->moves->chunks[chunk];
    if (patch->table.chunks[chunk].bytes) {
        status = make_room(t, patch->table.chunks[chunk].changes,
                           patch->table.grid.chunks[chunk].kind.width);
        if (!status)
            status = decode_chunk(&decode, chunk, t->worker, &t->changes, &times);
    }
    if (!status)
        status = decode_check(patch, chunk, &decode.target);
    return status ? status : step(&job->weights->grid, chunk, t);
}

static enum ulp_status squash_chunk(void *user, uint64_t index) {
    struct squash_job *job = user;
    const size_t chunk = (size_t)index;
    struct encode_job encode = {
        .grid = &job->output.table.grid, .old = job->weights->tensors, .coder = job->coder};
    struct encoded_chunk encoded = {0};
    struct traveller t = {0};
    enum ulp_status status =
        workers_take(job->weights->workers, job->output.table.grid.chunks[chunk].words, &t.worker);

    if (!status)
        status = set_out(job, chunk, &t);
    for (size_t i = 0; !status && i < job->count; i++)
        status = travel(job, chunk, i, &t);
    encode.elements = t.elements;
    if (!status)
        status = encode_chunk(&encode, chunk, t.worker, job->output.table.sums, &encoded);
    if (!status)
        status = decode_check(job->patches[job->count - 1], chunk,
                              &(struct sum_target){.sums = job->output.table.sums});
    if (!status)
        status = output_chunk(&job->output, chunk, t.worker->bytes.data, t.worker->bytes.used,
                              encoded.changes);
    if (status)
        output_fail(&job->output, chunk);
    atomic_fetch_add(&job->encode_ns, encoded.encode_ns);
    atomic_fetch_add(&job->digest_ns, encoded.digest_ns);
    arrive(&t);
    workers_give(job->weights->workers, t.worker);
    return status;
}

/* Each patch starts where the one before it ends, and the first at the weights. */
static enum ulp_status check_chain(const struct ulp_weights *weights,
                                   const struct ulp_patch *const *patches, size_t count) {
    const struct ulp_root *at = &weights->root;
    const struct ulp_root *before = weights->moves ? &weights->moves->before : NULL;

    for (size_t i = 0; i < count; i++) {
        const struct table *table = &patches[i]->table;
        enum ulp_status status;

        if (!table->grid.whole)
            return fail(ULP_E_REGIONS,
                        "%s covers only regions, and only whole patches are squashed; apply it "
                        "together with those of the other regions",
                        quote(patches[i]->name).text);
        status = layout_compare(weights->tensors, weights->count, table->tensors,
                                table->tensor_count, "the base", "the patch");
        if (status)
            return status;
        if (!same_root(at, &table->parent))
            return fail(ULP_E_WRONG_BASE, "patch %zu, %s, does not start where %s", i + 1,
                        quote(patches[i]->name).text, i ? "the one before it ends" : "the base is");
        if (table->history && (!before || !same_root(before, &table->before)))
            return fail(ULP_E_NEEDS_HISTORY,
                        "patch %zu, %s, is coded with history; name the checkpoint before the base",
                        i + 1, quote(patches[i]->name).text);
        before = at;
        at = &table->child;
    }
    return ULP_OK;
}

static enum ulp_status run(struct squash_job *job, const struct ulp_diff_options *options) {
    const size_t pieces = job->weights->grid.piece_count;
    enum ulp_status status = mem_zeroed(pieces, sizeof *job->sums, &job->sums);

    if (status)
        return status;
    if (pieces) {
        memcpy(job->sums, job->weights->sums, pieces * sizeof *job->sums);
        memcpy(job->output.table.sums, job->weights->sums, pieces * sizeof *job->sums);
    }
    status = ulp_pool_run(options->pool, job->weights->grid.chunk_count, squash_chunk, job,
                          options->progress);
    return status ? status : output_end(&job->output);
}

enum ulp_status squash(const struct ulp_weights *weights, const struct ulp_patch *const *patches,
                       size_t count, const struct ulp_diff_options *options,
                       const struct ulp_sink *sink, struct ulp_diff_report *ret_report) {
    static const struct ulp_diff_options plain = {0};
    struct squash_job job = {.weights = weights, .patches = patches, .count = count};
    struct table table = {0};
    enum ulp_status status;

    options = options ? options : &plain;
    if (!count || count > LIMIT_SQUASH)
        return fail(ULP_E_USAGE, "%zu patches to squash; 1 to %u are possible", count,
                    LIMIT_SQUASH);
    job.coder = options->coder;
    status = diff_options_check(options);
    if (!status && (options->regions || options->history))
        status = fail(ULP_E_USAGE, "a squashed patch is whole and without history");
    if (!status)
        status = weights_check_whole(weights, "squashing");
    if (!status)
        status = check_chain(weights, patches, count);
    if (!status)
        status = table_for(weights, NULL, 0, &table);
    if (status)
        return status;
    status = output_begin(sink, &table, &job.output);
    if (!status)
        status = run(&job, options);
    if (!status && ret_report) {
        *ret_report = diff_report(&job.output);
        ret_report->encode_seconds = (double)atomic_load(&job.encode_ns) / 1e9;
        ret_report->digest_seconds = (double)atomic_load(&job.digest_ns) / 1e9;
    }
    output_release(&job.output);
    mem_free(job.sums);
    return status;
}

enum ulp_status squash_file(const struct ulp_weights *weights,
                            const struct ulp_patch *const *patches, size_t count,
                            const struct ulp_diff_options *options, const char *path,
                            enum ulp_commit commit, struct ulp_diff_report *ret_report) {
    struct file_sink file = {0};
    struct ulp_diff_report report = {0};
    enum ulp_status status = file_sink_open(path, commit, &file);

    if (!status)
        status = squash(weights, patches, count, options, &file.sink, &report);
    if (!status)
        status = file_writer_commit(&file.writer, commit);
    file_writer_release(&file.writer);
    if (!status && ret_report)
        *ret_report = report;
    return status;
}
