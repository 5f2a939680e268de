// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_diff.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/bring.h"
#include "gpu/device_cast.h"
#include "gpu/few_changes.h"
#include "patch/diff.h"

#include <string.h>

/* One patch on its way. */
struct making {
    struct device_weights *weights;
    const struct device_journal *journal; /* from what; NULL: from the weights */
    struct patch_output output;
    bool history;
    struct cuda_segment_report *reports;
    const uint8_t *coded;  /* on the device */
    struct room bytes;     /* the same, here */
    struct ulp_sum *sums;  /* for who wants them: those of the child ... */
    struct ulp_root *root; /* ... and its root */
};

/* ---- on the device ---- */

/* Where the moves of each block are, behind the sums. */
static enum ulp_status upload_moves(const struct device_weights *weights, uint8_t *room,
                                    size_t first, size_t count, struct cuda_moves *ret_moves) {
    const uint32_t blocks = weights->plan.device.block_count;
    enum ulp_status status = cuda_copy_in(room + first, weights->moves->first,
                                          blocks * sizeof(uint64_t), weights->stream);

    if (!status)
        status = cuda_copy_in(room + count, weights->moves->count, blocks * sizeof(uint32_t),
                              weights->stream);
    *ret_moves = (struct cuda_moves){(const decode_move *)(void *)weights->moves->room.memory,
                                     (const uint64_t *)(void *)(room + first),
                                     (const uint32_t *)(void *)(room + count)};
    return status;
}

static enum ulp_status make_encoder(struct device_weights *weights) {
    const struct cuda_plan plan = {
        weights->plan.segments, weights->plan.blocks, weights->plan.device.segment_count,
        weights->plan.device.block_count, weights->plan.device.piece_count};

    return weights->encoder ? ULP_OK : cuda_encoder_new(&plan, NULL, &weights->encoder);
}

/* The sums start from those of the weights, and come back as those of the child. */
static enum ulp_status run_in(struct making *making, uint8_t *room, size_t first, size_t count) {
    struct device_weights *weights = making->weights;
    const size_t bytes = weights->plan.device.piece_count * sizeof(struct ulp_sum);
    struct cuda_moves moves = {NULL, NULL, NULL};
    enum ulp_status status = cuda_copy_in(room, weights->weights->sums, bytes, weights->stream);

    if (!status && making->history)
        status = upload_moves(weights, room, first, count, &moves);
    if (!status)
        status = make_encoder(weights);
    if (!status)
        status = cuda_encoder_run(weights->encoder, weights->plan.blocks, &moves,
                                  making->journal ? &making->journal->device : NULL,
                                  (uint64_t *)(void *)room, weights->stream, making->reports,
                                  &making->coded);
    if (!status)
        status = cuda_copy_out(making->output.table.sums, room, bytes, weights->stream);
    return status ? status : cuda_wait(weights->stream);
}

static enum ulp_status run(struct making *making) {
    struct device_weights *weights = making->weights;
    const uint32_t blocks = weights->plan.device.block_count;
    struct room room = {0};
    size_t bytes = 0;
    enum ulp_status status;

    room_place(&bytes, weights->plan.device.piece_count, sizeof(struct ulp_sum));
    const size_t first = room_place(&bytes, blocks, sizeof(uint64_t));
    const size_t count = room_place(&bytes, blocks, sizeof(uint32_t));

    status = room_take(&weights->spare, bytes, false, &room);
    if (!status)
        status = device_status(run_in(making, room.memory, first, count), "comparing weights");
    room_give(&weights->spare, &room);
    return status;
}

/* All chunks in one go: they follow each other. */
static enum ulp_status bring_coded(struct making *making) {
    struct device_weights *weights = making->weights;
    uint64_t end = 0;
    enum ulp_status status;

    for (size_t i = 0; i < making->output.table.grid.chunk_count; i++) {
        const struct cuda_segment_report *report = &making->reports[i];

        if (report->bytes && report->offset + report->bytes > end)
            end = report->offset + report->bytes;
    }
    status = room_take(&weights->spare_bytes, (size_t)end, true, &making->bytes);
    if (!status)
        status = device_status(
            cuda_copy_out(making->bytes.memory, making->coded, (size_t)end, weights->stream),
            "bringing a patch to the host");
    return status ? status
                  : device_status(cuda_wait(weights->stream), "bringing a patch to the host");
}

/* ---- on the host ---- */

/* The moves of a chunk's blocks, as the CPU's encoder wants them. */
static enum ulp_status bring_moves(const struct device_weights *weights, size_t chunk,
                                   struct code_block *blocks, struct code_move **ret_moves) {
    const struct cuda_segment *segment = &weights->plan.segments[chunk];
    const uint64_t *first = weights->moves->first + segment->first_block;
    const uint32_t *count = weights->moves->count + segment->first_block;
    struct code_move *moves = NULL;
    decode_move *packed = NULL;
    size_t total = 0, at = 0;
    enum ulp_status status;

    for (uint32_t b = 0; b < segment->blocks; b++)
        total += count[b];
    status = mem_zeroed(total, sizeof *moves, &moves);
    if (!status)
        status = mem_zeroed(total, sizeof *packed, &packed);
    for (uint32_t b = 0; !status && b < segment->blocks; at += count[b++]) {
        if (count[b])
            status = cuda_copy_out(
                packed + at, (const decode_move *)(void *)weights->moves->room.memory + first[b],
                count[b] * sizeof *packed, weights->stream);
        blocks[b].moves = moves + at;
        blocks[b].move_count = count[b];
    }
    if (!status)
        status = cuda_wait(weights->stream);
    for (size_t i = 0; !status && i < total; i++)
        moves[i] = (struct code_move){packed[i] >> 8, (int8_t)(packed[i] & 0xff)};
    mem_free(packed);
    *ret_moves = moves;
    return device_status(status, "bringing moves to the host");
}

static void lay_out(const struct device_weights *weights, size_t chunk, const uint8_t *old,
                    const uint8_t *new, struct code_block *blocks) {
    const struct cuda_segment *segment = &weights->plan.segments[chunk];

    for (uint32_t b = 0; b < segment->blocks; b++) {
        const uint32_t elements = weights->plan.blocks[segment->first_block + b].elements;

        blocks[b] = (struct code_block){.old = old, .new = new, .elements = elements};
        old += (size_t)elements * segment->kind.width;
        new += (size_t)elements * segment->kind.width;
    }
}

static enum ulp_status code_here(struct making *making, size_t chunk, struct worker *worker,
                                 uint8_t *old, uint8_t *new) {
    const struct cuda_segment *segment = &making->weights->plan.segments[chunk];
    struct code_move *moves = NULL;
    enum code_coder coder;
    enum ulp_status status = bring_elements(making->weights, chunk, BRING_OLD, old);

    if (!status && making->journal) {
        memcpy(new, old, (size_t)segment->elements * segment->kind.width);
        status = device_journal_overlay(making->journal, &making->weights->plan, chunk,
                                        making->weights->stream, old);
    } else if (!status) {
        status = bring_elements(making->weights, chunk, BRING_NEW, new);
    }
    if (!status)
        status = worker_blocks(worker, segment->blocks);
    if (!status)
        status = worker_encoder(worker);
    if (!status) {
        lay_out(making->weights, chunk, old, new, worker->blocks);
        if (making->history)
            status = bring_moves(making->weights, chunk, worker->blocks, &moves);
    }
    buffer_clear(&worker->bytes);
    if (!status)
        status = code_encode_best(worker->encoder, segment->kind, making->history, worker->blocks,
                                  segment->blocks, &worker->bytes, &coder);
    if (!status && coder == CODE_HISTORY)
        making->output.table.history = true;
    mem_free(moves);
    return status;
}

/* Whatever coder takes the fewest bytes. */
static enum ulp_status put_here(struct making *making, size_t chunk) {
    const struct grid_chunk *of = &making->output.table.grid.chunks[chunk];
    struct workers *workers = making->weights->weights->workers;
    struct worker *worker = NULL;
    uint8_t *old = NULL, *new = NULL;
    enum ulp_status status = mem_zeroed(of->words, of->kind.width, &old);

    if (!status)
        status = mem_zeroed(of->words, of->kind.width, &new);
    if (!status)
        status = workers_take(workers, of->words, &worker);
    if (!status)
        status = code_here(making, chunk, worker, old, new);
    if (!status)
        status = output_chunk(&making->output, chunk, worker->bytes.data, worker->bytes.used,
                              making->reports[chunk].changes);
    workers_give(workers, worker);
    mem_free(old);
    mem_free(new);
    return status;
}

static enum ulp_status put_coded(struct making *making, size_t chunk) {
    const struct cuda_segment_report *report = &making->reports[chunk];

    if (report->changes && making->history)
        making->output.table.history = true;
    return output_summed_chunk(&making->output, chunk, making->bytes.memory + report->offset,
                               (size_t)report->bytes, report->changes, report->checksum);
}

/* Plain if that is shorter. */
static enum ulp_status put_few(struct making *making, size_t chunk) {
    const struct cuda_segment_report *report = &making->reports[chunk];
    struct workers *workers = making->weights->weights->workers;
    struct worker *worker = NULL;
    enum ulp_status status =
        workers_take(workers, making->output.table.grid.chunks[chunk].words, &worker);

    if (!status)
        status = few_changes_code(making->weights, chunk, making->journal, report->changes, worker);
    if (!status && worker->bytes.used < report->bytes)
        status = output_chunk(&making->output, chunk, worker->bytes.data, worker->bytes.used,
                              report->changes);
    else if (!status)
        status = put_coded(making, chunk);
    workers_give(workers, worker);
    return status;
}

static enum ulp_status put_chunk(struct making *making, size_t chunk) {
    const struct cuda_segment_report *report = &making->reports[chunk];

    if (report->elsewhere)
        return put_here(making, chunk);
    if (report->changes && report->changes <= CODE_FEW_CHANGES)
        return put_few(making, chunk);
    return put_coded(making, chunk);
}

/* ---- all of it ---- */

static enum ulp_status make(struct making *making) {
    const struct table *table = &making->output.table;
    enum ulp_status status =
        mem_zeroed(table->grid.chunk_count, sizeof *making->reports, &making->reports);

    if (!status)
        status = run(making);
    if (!status)
        status = bring_coded(making);
    for (size_t i = 0; !status && i < table->grid.chunk_count; i++)
        status = put_chunk(making, i);
    if (!status && table->history)
        making->output.table.before = making->weights->weights->moves->before;
    if (!status)
        status = output_end(&making->output);
    room_give(&making->weights->spare_bytes, &making->bytes);
    mem_free(making->reports);
    return status;
}

static enum ulp_status check_options(const struct ulp_diff_options *options) {
    if (options->regions || options->region_count)
        return fail(ULP_E_REGIONS, "patches of regions are not made on a GPU");
    if (options->coder != ULP_CODER_BEST)
        return fail(ULP_E_USAGE, "on a GPU the coder cannot be chosen");
    return ULP_OK;
}

static const struct ulp_diff_options plain = {0};

/* What is known of the child when its patch is complete. */
static void tell_child(const struct making *making) {
    const size_t pieces = making->weights->plan.device.piece_count;

    if (making->sums && pieces)
        memcpy(making->sums, making->output.table.sums, pieces * sizeof *making->sums);
    if (making->root)
        *making->root = making->output.table.child;
}

/* The addresses of the new elements are set. */
static enum ulp_status make_patch(struct making *making, const struct ulp_diff_options *options,
                                  const struct ulp_sink *sink, uint64_t started,
                                  struct ulp_diff_report *ret_report) {
    struct table table = {0};
    enum ulp_status status = table_for(making->weights->weights, NULL, 0, &table);

    if (status)
        return status;
    making->history = options->history && making->weights->moves;
    status = output_begin(sink, &table, &making->output);
    if (!status)
        status = make(making);
    if (!status)
        tell_child(making);
    if (!status && ret_report) {
        *ret_report = diff_report(&making->output);
        ret_report->encode_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
    }
    output_release(&making->output);
    return status;
}

enum ulp_status device_diff(struct device_weights *weights, const struct ulp_tensor *tensors,
                            size_t count, const struct ulp_diff_options *options,
                            const struct ulp_sink *sink, struct ulp_diff_report *ret_report) {
    const uint64_t started = clock_monotonic_ns();
    struct making making = {.weights = weights};
    struct ulp_tensor *new = NULL;
    struct arena arena = {0};
    enum ulp_status status = device_cast_none(weights, "comparing with another state");

    options = options ? options : &plain;
    if (!status)
        status = device_weights_check(weights);
    if (!status)
        status = check_options(options);
    if (!status)
        status = weights_match(weights->weights, tensors, count, &arena, &new);
    if (!status)
        status = device_plan_set_new(&weights->plan, &weights->weights->grid, new);
    if (!status)
        status = make_patch(&making, options, sink, started, ret_report);
    arena_release(&arena);
    return status;
}

enum ulp_status device_diff_journal(struct device_weights *weights,
                                    const struct device_journal *journal,
                                    const struct ulp_diff_options *options,
                                    const struct ulp_sink *sink, struct ulp_diff_report *ret_report,
                                    struct ulp_sum *ret_sums, struct ulp_root *ret_root) {
    const uint64_t started = clock_monotonic_ns();
    struct making making = {
        .weights = weights, .journal = journal, .sums = ret_sums, .root = ret_root};
    enum ulp_status status;

    options = options ? options : &plain;
    status = check_options(options);
    if (!status)
        status =
            device_plan_set_new(&weights->plan, &weights->weights->grid, weights->weights->tensors);
    if (!status)
        status = make_patch(&making, options, sink, started, ret_report);
    return status;
}
