// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_diff.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/device_cast.h"
#include "gpu/device_journal.h"
#include "gpu/part_diff.h"
#include "gpu/round.h"
#include "patch/diff.h"

#include <string.h>

#define LARGE_ROUNDS 4u /* windows that a state is at least, for taking them */

/* ---- a round on the device ---- */

/* What a run works in, in device memory: the sums, and behind them where the moves of each block are. */
struct run_room {
    uint8_t *memory;
    size_t first, count;
};

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

/* The sums start from those of the weights, and come back as those of the child. Those of regions are
 * known already. */
static enum ulp_status run_in(struct making *making, struct cuda_encoder *encoder,
                              struct round *round, struct cuda_segment_report *reports,
                              const struct run_room *room) {
    struct device_weights *weights = making->weights;
    const bool whole = making->output.table.grid.whole;
    const size_t bytes = round->plan->device.piece_count * sizeof(struct ulp_sum);
    struct cuda_moves moves = {NULL, NULL, NULL};
    enum ulp_status status =
        whole ? cuda_copy_in(room->memory, weights->weights->sums, bytes, weights->stream)
              : cuda_clear(room->memory, bytes, weights->stream);

    if (!status && making->history)
        status = upload_moves(weights, room->memory, room->first, room->count, &moves);
    if (!status)
        status = cuda_encoder_run(
            encoder, round->plan->blocks, &moves, making->journal ? &making->journal->device : NULL,
            (uint64_t *)(void *)room->memory, weights->stream, reports, &round->coded);
    if (!status && whole)
        status = cuda_copy_out(making->output.table.sums, room->memory, bytes, weights->stream);
    return status ? status : cuda_wait(weights->stream);
}

static enum ulp_status run(struct making *making, struct cuda_encoder *encoder, struct round *round,
                           struct cuda_segment_report *reports) {
    struct device_weights *weights = making->weights;
    const uint32_t blocks = round->plan->device.block_count;
    struct run_room in = {0};
    struct room room = {0};
    size_t bytes = 0;
    enum ulp_status status;

    room_place(&bytes, round->plan->device.piece_count, sizeof(struct ulp_sum));
    in.first = room_place(&bytes, blocks, sizeof(uint64_t));
    in.count = room_place(&bytes, blocks, sizeof(uint32_t));
    status = room_take(&weights->spare, bytes, false, &room);
    in.memory = room.memory;
    if (!status)
        status = device_status(run_in(making, encoder, round, reports, &in), "comparing weights");
    room_give(&weights->spare, &room);
    return status;
}

static enum ulp_status make_round(void *user, struct device_plan *plan,
                                  struct cuda_encoder *encoder, size_t first) {
    struct making *making = user;
    struct cuda_segment_report *reports = NULL;
    struct round round = {.plan = plan, .first = first, .stream = making->weights->stream};
    enum ulp_status status = mem_zeroed(plan->device.segment_count, sizeof *reports, &reports);

    round.reports = reports;
    if (!status)
        status = run(making, encoder, &round, reports);
    if (!status)
        status = round_put(making, &round);
    mem_free(reports);
    return status;
}

/* ---- all of it ---- */

static enum ulp_status make_encoder(struct device_weights *weights) {
    const struct cuda_plan plan = {
        weights->plan.segments, weights->plan.blocks, weights->plan.device.segment_count,
        weights->plan.device.block_count, weights->plan.device.piece_count};

    return weights->encoder ? ULP_OK : cuda_encoder_new(&plan, NULL, &weights->encoder);
}

static enum ulp_status make_at_once(struct making *making) {
    struct device_weights *weights = making->weights;
    enum ulp_status status = device_status(make_encoder(weights), "making an encoder");

    return status ? status : make_round(making, &weights->plan, weights->encoder, 0);
}

static enum ulp_status put_window(struct making *making, struct window *window, void *stream,
                                  struct cuda_segment_report *reports) {
    const struct device_plan shown = {.segments = window->segments,
                                      .blocks = window->blocks,
                                      .device.segment_count = (uint32_t)window->chunks};
    struct round round = {
        .plan = &shown, .first = window->first, .reports = reports, .stream = stream};
    enum ulp_status status = window_finish(window, reports, &round.coded);

    return status ? status : round_put(making, &round);
}

/* While one window is put out the others are being copied and compared. */
static enum ulp_status put_windows(struct making *making, struct windows *windows,
                                   struct cuda_segment_report *reports) {
    const struct window_extras extras = {making->history, making->weights->moves, making->journal,
                                         making->pool};
    const size_t chunks = making->output.table.grid.chunk_count;
    size_t next = 0, opened = 0, done = 0;
    enum ulp_status status = windows_begin(windows, making->weights->stream);

    while (!status && (next < chunks || done < opened)) {
        if (next < chunks && opened - done < WINDOWS) {
            struct window *window = &windows->window[opened++ % WINDOWS];

            status = window_open(windows, window, next, &extras);
            next += window->chunks;
        } else {
            status =
                put_window(making, &windows->window[done++ % WINDOWS], windows->aside, reports);
        }
    }
    if (status)
        windows_stop(windows);
    return status ? status
                  : windows_end(windows, making->weights->stream, making->output.table.sums);
}

static enum ulp_status make_by_windows(struct making *making, struct windows *windows) {
    struct cuda_segment_report *reports = NULL;
    enum ulp_status status =
        mem_zeroed(making->output.table.grid.chunk_count, sizeof *reports, &reports);

    if (!status)
        status = put_windows(making, windows, reports);
    mem_free(reports);
    return status;
}

/* A large state is worth more than one round: what came out of one is put out beside the next. */
static bool is_large(const struct device_weights *weights) {
    const size_t round = weights->round_bytes ? weights->round_bytes : WINDOW_BYTES_THERE;
    size_t bytes = 0;

    for (size_t i = 0; i < weights->plan.device.segment_count; i++)
        bytes += (size_t)weights->plan.segments[i].elements * weights->plan.segments[i].kind.width;
    return bytes / LARGE_ROUNDS >= round;
}

static enum ulp_status make_by_rounds(struct making *making) {
    struct device_weights *weights = making->weights;
    enum ulp_status status = weights->rounds ? ULP_OK
                                             : windows_new(weights->weights, &weights->plan, true,
                                                           weights->round_bytes, &weights->rounds);

    return status ? status : make_by_windows(making, weights->rounds);
}

static enum ulp_status make_whole(struct making *making) {
    if (making->weights->windows)
        return make_by_windows(making, making->weights->windows);
    return is_large(making->weights) ? make_by_rounds(making) : make_at_once(making);
}

static enum ulp_status make(struct making *making, const struct ulp_tensor *new) {
    struct device_weights *weights = making->weights;
    const struct table *table = &making->output.table;
    enum ulp_status status = ULP_OK;

    if (!table->grid.whole) {
        status = part_diff(weights, &table->grid, new, table->sums, make_round, making);
    } else {
        status = device_plan_set_new(&weights->plan, &weights->weights->grid, new);
        if (!status)
            status = make_whole(making);
    }
    if (!status && table->history)
        making->output.table.before = weights->weights->moves->before;
    return status ? status : output_end(&making->output);
}

/* Of a tile everything that is held, unless only some of its regions are asked for. */
static enum ulp_status table_of_options(const struct device_weights *weights,
                                        const struct ulp_diff_options *options,
                                        struct table *ret_table) {
    const struct ulp_weights *of = weights->weights;

    if (!options->regions)
        return table_for(of, of->regions, of->region_count, ret_table);
    if (weights->windows)
        return fail(ULP_E_REGIONS, "patches of regions are not made from the host's memory");
    return table_for(of, options->regions, options->region_count, ret_table);
}

static const struct ulp_diff_options plain = {0};

/* What is known of the child when its patch is complete. */
struct child {
    struct ulp_sum *sums; /* of each piece */
    struct ulp_root *root;
};

static void tell_child(const struct making *making, const struct child *child) {
    const size_t pieces = making->output.table.grid.piece_count;

    if (pieces)
        memcpy(child->sums, making->output.table.sums, pieces * sizeof *child->sums);
    *child->root = making->output.table.child;
}

/* `child` is NULL if nobody asks. */
static enum ulp_status make_patch(struct making *making, const struct ulp_tensor *new,
                                  const struct ulp_diff_options *options,
                                  const struct ulp_sink *sink, struct ulp_diff_report *ret_report,
                                  const struct child *child) {
    const uint64_t started = clock_monotonic_ns();
    struct device_weights *weights = making->weights;
    struct table table = {0};
    enum ulp_status status = diff_options_check(options);

    if (!status)
        status = table_of_options(weights, options, &table);
    if (status)
        return status;
    making->coder = options->coder;
    making->pool = options->pool;
    making->history = options->history && table.grid.whole && weights->weights->moves &&
                      options->coder <= ULP_CODER_CONTEXT;
    status = output_begin(sink, &table, &making->output);
    if (!status)
        status = make(making, new);
    if (!status && child)
        tell_child(making, child);
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
    struct making making = {.weights = weights};
    struct ulp_tensor *new = NULL;
    struct arena arena = {0};
    enum ulp_status status = device_cast_none(weights, "comparing with another state");

    if (!status)
        status = device_weights_check(weights);
    if (!status)
        status = weights_match(weights->weights, tensors, count, &arena, &new);
    if (!status)
        status = make_patch(&making, new, options ? options : &plain, sink, ret_report, NULL);
    arena_release(&arena);
    return status;
}

enum ulp_status device_diff_journal(struct device_weights *weights,
                                    const struct device_journal *journal,
                                    const struct ulp_diff_options *options,
                                    const struct ulp_sink *sink, struct ulp_diff_report *ret_report,
                                    struct ulp_sum *ret_sums, struct ulp_root *ret_root) {
    struct making making = {.weights = weights, .journal = journal};
    const struct child child = {ret_sums, ret_root};

    options = options ? options : &plain;
    if (options->regions)
        return fail(ULP_E_REGIONS, "what was cast goes into patches of all tensors");
    return make_patch(&making, weights->weights->tensors, options, sink, ret_report, &child);
}
