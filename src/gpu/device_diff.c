// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_diff.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/bring.h"
#include "gpu/few_changes.h"
#include "gpu/part_diff.h"
#include "patch/diff.h"

#include <string.h>

/* One patch on its way. */
struct making {
    struct device_weights *weights;
    struct patch_output output;
    enum ulp_coder coder;
    bool history;

    /* The round: all chunks of a patch, or a run of those of a partial one. */
    struct device_plan *plan;
    struct cuda_encoder *encoder;
    size_t first; /* chunk, which is segment 0 of the plan */
    struct cuda_segment_report *reports;
    const uint8_t *coded; /* on the device */
    struct room bytes;    /* the same, here */
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

/* The sums start from those of the weights, and come back as those of the child. Those of regions are
 * known already. */
static enum ulp_status run_in(struct making *making, uint8_t *room, size_t first, size_t count) {
    struct device_weights *weights = making->weights;
    const bool whole = making->output.table.grid.whole;
    const size_t bytes = making->plan->device.piece_count * sizeof(struct ulp_sum);
    struct cuda_moves moves = {NULL, NULL, NULL};
    enum ulp_status status =
        whole ? cuda_copy_in(room, weights->weights->sums, bytes, weights->stream)
              : cuda_clear(room, bytes, weights->stream);

    if (!status && making->history)
        status = upload_moves(weights, room, first, count, &moves);
    if (!status)
        status = cuda_encoder_run(making->encoder, making->plan->blocks, &moves,
                                  (uint64_t *)(void *)room, weights->stream, making->reports,
                                  &making->coded);
    if (!status && whole)
        status = cuda_copy_out(making->output.table.sums, room, bytes, weights->stream);
    return status ? status : cuda_wait(weights->stream);
}

static enum ulp_status run(struct making *making) {
    struct device_weights *weights = making->weights;
    const uint32_t blocks = making->plan->device.block_count;
    struct room room = {0};
    size_t bytes = 0;
    enum ulp_status status;

    room_place(&bytes, making->plan->device.piece_count, sizeof(struct ulp_sum));
    const size_t first = room_place(&bytes, blocks, sizeof(uint64_t));
    const size_t count = room_place(&bytes, blocks, sizeof(uint32_t));

    status = room_take(&weights->spare, bytes, false, &room);
    if (!status)
        status = device_status(run_in(making, room.memory, first, count), "comparing weights");
    room_give(&weights->spare, &room);
    return status;
}

/* All chunks of the round in one go: they follow each other. */
static enum ulp_status bring_coded(struct making *making) {
    struct device_weights *weights = making->weights;
    uint64_t end = 0;
    enum ulp_status status;

    for (size_t i = 0; i < making->plan->device.segment_count; i++) {
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

static void lay_out(const struct device_plan *plan, size_t segment_number, const uint8_t *old,
                    const uint8_t *new, struct code_block *blocks) {
    const struct cuda_segment *segment = &plan->segments[segment_number];

    for (uint32_t b = 0; b < segment->blocks; b++) {
        const uint32_t elements = plan->blocks[segment->first_block + b].elements;

        blocks[b] = (struct code_block){.old = old, .new = new, .elements = elements};
        old += (size_t)elements * segment->kind.width;
        new += (size_t)elements * segment->kind.width;
    }
}

/* The coder that was asked for, or whatever takes the fewest bytes. */
static enum ulp_status code_with(struct making *making, const struct cuda_segment *segment,
                                 struct worker *worker) {
    enum code_coder coder = making->history ? CODE_HISTORY : CODE_CONTEXT;
    enum ulp_status status;

    buffer_clear(&worker->bytes);
    if (making->coder == ULP_CODER_BEST) {
        status = code_encode_best(worker->encoder, segment->kind, making->history, worker->blocks,
                                  segment->blocks, &worker->bytes, &coder);
    } else {
        if (making->coder != ULP_CODER_CONTEXT)
            coder = making->coder == ULP_CODER_PLAIN ? CODE_PLAIN : CODE_DENSE;
        status = code_encode(worker->encoder, segment->kind, coder, worker->blocks, segment->blocks,
                             &worker->bytes);
    }
    if (!status && coder == CODE_HISTORY)
        making->output.table.history = true;
    return status;
}

static enum ulp_status code_here(struct making *making, size_t segment_number,
                                 struct worker *worker, uint8_t *old, uint8_t *new) {
    const struct cuda_segment *segment = &making->plan->segments[segment_number];
    struct code_move *moves = NULL;
    enum ulp_status status =
        bring_elements(making->weights, making->plan, segment_number, BRING_OLD, old);

    if (!status)
        status = bring_elements(making->weights, making->plan, segment_number, BRING_NEW, new);
    if (!status)
        status = worker_blocks(worker, segment->blocks);
    if (!status)
        status = worker_encoder(worker);
    if (!status) {
        lay_out(making->plan, segment_number, old, new, worker->blocks);
        if (making->history)
            status = bring_moves(making->weights, segment_number, worker->blocks, &moves);
    }
    if (!status)
        status = code_with(making, segment, worker);
    mem_free(moves);
    return status;
}

static enum ulp_status put_here(struct making *making, size_t segment) {
    const struct grid_chunk *of = &making->output.table.grid.chunks[making->first + segment];
    struct workers *workers = making->weights->weights->workers;
    struct worker *worker = NULL;
    uint8_t *old = NULL, *new = NULL;
    enum ulp_status status = mem_zeroed(of->words, of->kind.width, &old);

    if (!status)
        status = mem_zeroed(of->words, of->kind.width, &new);
    if (!status)
        status = workers_take(workers, of->words, &worker);
    if (!status)
        status = code_here(making, segment, worker, old, new);
    if (!status)
        status = output_chunk(&making->output, making->first + segment, worker->bytes.data,
                              worker->bytes.used, making->reports[segment].changes);
    workers_give(workers, worker);
    mem_free(old);
    mem_free(new);
    return status;
}

static enum ulp_status put_coded(struct making *making, size_t segment) {
    const struct cuda_segment_report *report = &making->reports[segment];

    if (report->changes && making->history)
        making->output.table.history = true;
    return output_summed_chunk(&making->output, making->first + segment,
                               making->bytes.memory + report->offset, (size_t)report->bytes,
                               report->changes, report->checksum);
}

/* Plain if that is shorter. */
static enum ulp_status put_few(struct making *making, size_t segment) {
    const struct cuda_segment_report *report = &making->reports[segment];
    struct workers *workers = making->weights->weights->workers;
    struct worker *worker = NULL;
    enum ulp_status status =
        workers_take(workers, making->plan->segments[segment].elements, &worker);

    if (!status)
        status = few_changes_code(making->weights, making->plan, segment, report->changes, worker);
    if (!status && worker->bytes.used < report->bytes)
        status = output_chunk(&making->output, making->first + segment, worker->bytes.data,
                              worker->bytes.used, report->changes);
    else if (!status)
        status = put_coded(making, segment);
    workers_give(workers, worker);
    return status;
}

static enum ulp_status put_chunk(struct making *making, size_t segment) {
    const struct cuda_segment_report *report = &making->reports[segment];

    if (report->elsewhere || (report->changes && making->coder > ULP_CODER_CONTEXT))
        return put_here(making, segment);
    if (report->changes && report->changes <= CODE_FEW_CHANGES && making->coder == ULP_CODER_BEST)
        return put_few(making, segment);
    return put_coded(making, segment);
}

/* ---- rounds ---- */

static enum ulp_status make_round(struct making *making) {
    const uint32_t segments = making->plan->device.segment_count;
    enum ulp_status status = mem_zeroed(segments, sizeof *making->reports, &making->reports);

    if (!status)
        status = run(making);
    if (!status)
        status = bring_coded(making);
    for (size_t i = 0; !status && i < segments; i++)
        status = put_chunk(making, i);
    room_give(&making->weights->spare_bytes, &making->bytes);
    mem_free(making->reports);
    making->reports = NULL;
    return status;
}

static enum ulp_status make_whole(struct making *making, const struct ulp_tensor *new) {
    struct device_weights *weights = making->weights;
    enum ulp_status status = device_plan_set_new(&weights->plan, &weights->weights->grid, new);

    if (!status)
        status = device_status(make_encoder(weights), "making an encoder");
    making->plan = &weights->plan;
    making->encoder = weights->encoder;
    return status ? status : make_round(making);
}

static enum ulp_status make_part(void *user, struct device_plan *plan, struct cuda_encoder *encoder,
                                 size_t first) {
    struct making *making = user;

    making->plan = plan;
    making->encoder = encoder;
    making->first = first;
    return make_round(making);
}

/* ---- all of it ---- */

/* Of a tile everything that is held, unless only some of its regions are asked for. */
static enum ulp_status table_of_options(const struct ulp_weights *weights,
                                        const struct ulp_diff_options *options,
                                        struct table *ret_table) {
    if (options->regions)
        return table_for(weights, options->regions, options->region_count, ret_table);
    return table_for(weights, weights->regions, weights->region_count, ret_table);
}

static enum ulp_status make(struct making *making, const struct ulp_tensor *new) {
    const struct table *table = &making->output.table;
    enum ulp_status status = table->grid.whole ? make_whole(making, new)
                                               : part_diff(making->weights, &table->grid, new,
                                                           table->sums, make_part, making);
    if (!status && table->history)
        making->output.table.before = making->weights->weights->moves->before;
    return status ? status : output_end(&making->output);
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
        status = weights_match(weights->weights, tensors, count, &arena, &new);
    if (!status)
        status = diff_options_check(options);
    if (!status)
        status = table_of_options(weights->weights, options, &table);
    if (!status) {
        making.coder = options->coder;
        making.history = options->history && table.grid.whole && weights->moves &&
                         options->coder <= ULP_CODER_CONTEXT;
        status = output_begin(sink, &table, &making.output);
        if (!status)
            status = make(&making, new);
        if (!status && ret_report) {
            *ret_report = diff_report(&making.output);
            ret_report->encode_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
        }
        output_release(&making.output);
    }
    arena_release(&arena);
    return status;
}
