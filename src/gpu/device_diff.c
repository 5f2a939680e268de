// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_diff.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/bring.h"
#include "gpu/few_changes.h"
#include "patch/diff.h"

#include <string.h>

/* One patch on its way: all chunks at once or, from weights in the host's memory, a window of them. */
struct making {
    struct device_weights *weights;
    struct patch_output output;
    bool history;
    struct ulp_pool *pool;
    struct cuda_segment_report *reports; /* of all chunks */
    const struct window *window;         /* whose chunks are put out */
    const uint8_t *coded;                /* of its chunks, on the device */
    struct room bytes;                   /* the same, here */
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

/* Pinned memory is slow to take: not again for every patch that is a bit longer. */
#define BYTES_STEP ((size_t)1 << 20)

/* These chunks in one go: they follow each other. */
static enum ulp_status bring_coded(struct making *making, size_t first, size_t count) {
    struct device_weights *weights = making->weights;
    uint64_t end = 0;
    enum ulp_status status;

    for (size_t i = first; i < first + count; i++) {
        const struct cuda_segment_report *report = &making->reports[i];

        if (report->bytes && report->offset + report->bytes > end)
            end = report->offset + report->bytes;
    }
    status = room_take(&weights->spare_bytes, ((size_t)end / BYTES_STEP + 1) * BYTES_STEP, true,
                       &making->bytes);
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

/* `old` is NULL where the old elements are in the host's memory already. */
static void lay_out(const struct device_weights *weights, size_t chunk, const uint8_t *old,
                    const uint8_t *new, struct code_block *blocks) {
    const struct cuda_segment *segment = &weights->plan.segments[chunk];

    for (uint32_t b = 0; b < segment->blocks; b++) {
        const struct cuda_block *block = &weights->plan.blocks[segment->first_block + b];

        blocks[b] = (struct code_block){
            .old = old ? old : block->old, .new = new, .elements = block->elements};
        if (old)
            old += (size_t)block->elements * segment->kind.width;
        new += (size_t)block->elements * segment->kind.width;
    }
}

static enum ulp_status lay_out_moves(const struct device_weights *weights, size_t chunk,
                                     struct code_block *blocks, struct code_move **ret_moves) {
    if (!weights->windows)
        return bring_moves(weights, chunk, blocks, ret_moves);
    for (uint32_t b = 0; b < weights->plan.segments[chunk].blocks; b++)
        chunk_moves_of(&weights->weights->moves->chunks[chunk], b, &blocks[b]);
    return ULP_OK;
}

static enum ulp_status code_here(struct making *making, size_t chunk, struct worker *worker,
                                 uint8_t *old, uint8_t *new) {
    const struct cuda_segment *segment = &making->weights->plan.segments[chunk];
    struct code_move *moves = NULL;
    enum code_coder coder;
    enum ulp_status status = bring_elements(making->weights, chunk, BRING_NEW, new);

    if (!status && old)
        status = bring_elements(making->weights, chunk, BRING_OLD, old);
    if (!status)
        status = worker_blocks(worker, segment->blocks);
    if (!status)
        status = worker_encoder(worker);
    if (!status) {
        lay_out(making->weights, chunk, old, new, worker->blocks);
        if (making->history)
            status = lay_out_moves(making->weights, chunk, worker->blocks, &moves);
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
    enum ulp_status status = mem_zeroed(of->words, of->kind.width, &new);

    if (!status && !making->window)
        status = mem_zeroed(of->words, of->kind.width, &old);
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

/* A chunk's blocks as the device sees them. */
static const struct cuda_block *blocks_of(const struct making *making, size_t chunk) {
    const struct window *window = making->window;
    const struct device_plan *plan = &making->weights->plan;

    return window ? &window->blocks[window->segments[chunk - window->first].first_block]
                  : &plan->blocks[plan->segments[chunk].first_block];
}

/* Plain if that is shorter. */
static enum ulp_status put_few(struct making *making, size_t chunk) {
    const struct cuda_segment_report *report = &making->reports[chunk];
    struct workers *workers = making->weights->weights->workers;
    struct worker *worker = NULL;
    enum ulp_status status =
        workers_take(workers, making->output.table.grid.chunks[chunk].words, &worker);

    if (!status)
        status = few_changes_code(making->weights, chunk, blocks_of(making, chunk), report->changes,
                                  worker);
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

static enum ulp_status put_chunks(struct making *making, size_t first, size_t count) {
    enum ulp_status status = bring_coded(making, first, count);

    for (size_t i = first; !status && i < first + count; i++)
        status = put_chunk(making, i);
    room_give(&making->weights->spare_bytes, &making->bytes);
    return status;
}

static enum ulp_status put_window(struct making *making, struct window *window) {
    enum ulp_status status = window_finish(window, making->reports + window->first, &making->coded);

    making->window = window;
    return status ? status : put_chunks(making, window->first, window->chunks);
}

/* While one window is put out the others are being copied and compared. */
static enum ulp_status make_by_windows(struct making *making) {
    struct windows *windows = making->weights->windows;
    const size_t chunks = making->output.table.grid.chunk_count;
    size_t next = 0, opened = 0, done = 0;
    enum ulp_status status = windows_begin(windows, making->weights->stream);

    while (!status && (next < chunks || done < opened)) {
        if (next < chunks && opened - done < WINDOWS) {
            struct window *window = &windows->window[opened++ % WINDOWS];

            status = window_open(windows, window, next, making->history, making->pool);
            next += window->chunks;
        } else {
            status = put_window(making, &windows->window[done++ % WINDOWS]);
        }
    }
    if (status)
        windows_stop(windows);
    return status ? status
                  : windows_end(windows, making->weights->stream, making->output.table.sums);
}

static enum ulp_status make_at_once(struct making *making) {
    enum ulp_status status = run(making);

    return status ? status : put_chunks(making, 0, making->output.table.grid.chunk_count);
}

static enum ulp_status make(struct making *making) {
    const struct table *table = &making->output.table;
    enum ulp_status status =
        mem_zeroed(table->grid.chunk_count, sizeof *making->reports, &making->reports);

    if (!status)
        status = making->weights->windows ? make_by_windows(making) : make_at_once(making);
    if (!status && table->history)
        making->output.table.before = making->weights->weights->moves->before;
    if (!status)
        status = output_end(&making->output);
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

enum ulp_status device_diff(struct device_weights *weights, const struct ulp_tensor *tensors,
                            size_t count, const struct ulp_diff_options *options,
                            const struct ulp_sink *sink, struct ulp_diff_report *ret_report) {
    static const struct ulp_diff_options plain = {0};
    const uint64_t started = clock_monotonic_ns();
    struct making making = {.weights = weights};
    struct ulp_tensor *new = NULL;
    struct arena arena = {0};
    struct table table = {0};
    enum ulp_status status = device_weights_check(weights);

    options = options ? options : &plain;
    if (!status)
        status = check_options(options);
    if (!status)
        status = weights_match(weights->weights, tensors, count, &arena, &new);
    if (!status)
        status = device_plan_set_new(&weights->plan, &weights->weights->grid, new);
    if (!status)
        status = table_for(weights->weights, NULL, 0, &table);
    if (!status) {
        making.history = options->history && weights->weights->moves;
        making.pool = options->pool;
        status = output_begin(sink, &table, &making.output);
        if (!status)
            status = make(&making);
        if (!status && ret_report) {
            *ret_report = diff_report(&making.output);
            ret_report->encode_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
        }
        output_release(&making.output);
    }
    arena_release(&arena);
    return status;
}
