// SPDX-License-Identifier: Apache-2.0
#include "gpu/round.h"

#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/bring.h"
#include "gpu/device_journal.h"
#include "gpu/few_changes.h"

#include <string.h>

/* ---- what the device coded ---- */

/* In one go: the chunks follow each other. */
static enum ulp_status bring_coded(struct device_weights *weights, const struct round *round,
                                   struct room *ret_bytes) {
    uint64_t end = 0;
    enum ulp_status status;

    for (size_t i = 0; i < round->plan->device.segment_count; i++) {
        const struct cuda_segment_report *report = &round->reports[i];

        if (report->bytes && report->offset + report->bytes > end)
            end = report->offset + report->bytes;
    }
    status = room_take(&weights->spare_bytes, (size_t)end, true, ret_bytes);
    if (!status)
        status = device_status(
            cuda_copy_out(ret_bytes->memory, round->coded, (size_t)end, round->stream),
            "bringing a patch to the host");
    return status ? status
                  : device_status(cuda_wait(round->stream), "bringing a patch to the host");
}

static enum ulp_status put_coded(struct making *making, const struct round *round, size_t segment,
                                 const uint8_t *bytes) {
    const struct cuda_segment_report *report = &round->reports[segment];

    if (report->changes && making->history)
        making->output.table.history = true;
    return output_summed_chunk(&making->output, round->first + segment, bytes + report->offset,
                               (size_t)report->bytes, report->changes, report->checksum);
}

/* ---- what the CPU codes ---- */

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

/* The same of weights in the host's memory. */
static enum ulp_status lay_out_moves(const struct device_weights *weights, size_t chunk,
                                     struct code_block *blocks, struct code_move **ret_moves) {
    if (!weights->windows)
        return bring_moves(weights, chunk, blocks, ret_moves);
    for (uint32_t b = 0; b < weights->plan.segments[chunk].blocks; b++)
        chunk_moves_of(&weights->weights->moves->chunks[chunk], b, &blocks[b]);
    return ULP_OK;
}

/* `old` is NULL where the old elements are in the host's memory already: those of the weights' plan. */
static void lay_out(const struct device_weights *weights, const struct round *round, size_t segment,
                    const uint8_t *old, const uint8_t *new, struct code_block *blocks) {
    const struct cuda_segment *of = &round->plan->segments[segment];
    const struct cuda_block *here =
        old ? NULL
            : weights->plan.blocks + weights->plan.segments[round->first + segment].first_block;

    for (uint32_t b = 0; b < of->blocks; b++) {
        const uint32_t elements = round->plan->blocks[of->first_block + b].elements;

        blocks[b] =
            (struct code_block){.old = old ? old : here[b].old, .new = new, .elements = elements};
        if (old)
            old += (size_t)elements * of->kind.width;
        new += (size_t)elements * of->kind.width;
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

/* With a journal: what they are now, and over that what it says. */
static enum ulp_status bring_old(struct making *making, const struct round *round, size_t segment,
                                 const uint8_t *new, uint8_t *old) {
    const struct cuda_segment *of = &round->plan->segments[segment];

    if (!making->journal)
        return bring_elements(making->weights, round->plan, segment, BRING_OLD, old);
    memcpy(old, new, (size_t)of->elements * of->kind.width);
    return device_journal_overlay(making->journal, &making->weights->plan, round->first + segment,
                                  making->weights->stream, old);
}

static enum ulp_status code_here(struct making *making, const struct round *round, size_t segment,
                                 struct worker *worker, uint8_t *old, uint8_t *new) {
    const struct cuda_segment *of = &round->plan->segments[segment];
    struct code_move *moves = NULL;
    enum ulp_status status = bring_elements(making->weights, round->plan, segment, BRING_NEW, new);

    if (!status && old)
        status = bring_old(making, round, segment, new, old);
    if (!status)
        status = worker_blocks(worker, of->blocks);
    if (!status)
        status = worker_encoder(worker);
    if (!status) {
        lay_out(making->weights, round, segment, old, new, worker->blocks);
        if (making->history)
            status = lay_out_moves(making->weights, round->first + segment, worker->blocks, &moves);
    }
    if (!status)
        status = code_with(making, of, worker);
    mem_free(moves);
    return status;
}

static enum ulp_status put_here(struct making *making, const struct round *round, size_t segment) {
    const struct cuda_segment *of = &round->plan->segments[segment];
    struct workers *workers = making->weights->weights->workers;
    struct worker *worker = NULL;
    uint8_t *old = NULL, *new = NULL;
    enum ulp_status status = mem_zeroed(of->elements, of->kind.width, &new);

    if (!status && !making->weights->windows)
        status = mem_zeroed(of->elements, of->kind.width, &old);
    if (!status)
        status = workers_take(workers, of->elements, &worker);
    if (!status)
        status = code_here(making, round, segment, worker, old, new);
    if (!status)
        status = output_chunk(&making->output, round->first + segment, worker->bytes.data,
                              worker->bytes.used, round->reports[segment].changes);
    workers_give(workers, worker);
    mem_free(old);
    mem_free(new);
    return status;
}

/* Plain if that is shorter. */
static enum ulp_status put_few(struct making *making, const struct round *round, size_t segment,
                               struct few_changes *few, const uint8_t *bytes) {
    const struct cuda_segment_report *report = &round->reports[segment];
    struct workers *workers = making->weights->weights->workers;
    struct worker *worker = NULL;
    enum ulp_status status =
        workers_take(workers, round->plan->segments[segment].elements, &worker);

    if (!status)
        status = few_changes_code(few, round, segment, worker);
    if (!status && worker->bytes.used < report->bytes)
        status = output_chunk(&making->output, round->first + segment, worker->bytes.data,
                              worker->bytes.used, report->changes);
    else if (!status)
        status = put_coded(making, round, segment, bytes);
    workers_give(workers, worker);
    return status;
}

/* ---- all of them ---- */

static enum ulp_status put_chunk(struct making *making, const struct round *round, size_t segment,
                                 struct few_changes *few, const uint8_t *bytes) {
    const struct cuda_segment_report *report = &round->reports[segment];

    if (report->elsewhere || (report->changes && making->coder > ULP_CODER_CONTEXT))
        return put_here(making, round, segment);
    if (few_changes_in(making, report))
        return put_few(making, round, segment, few, bytes);
    return put_coded(making, round, segment, bytes);
}

enum ulp_status round_put(struct making *making, const struct round *round) {
    struct few_changes few = {0};
    struct room bytes = {0};
    enum ulp_status status = bring_coded(making->weights, round, &bytes);

    if (!status)
        status = few_changes_list(making, round, &few);
    for (size_t i = 0; !status && i < round->plan->device.segment_count; i++)
        status = put_chunk(making, round, i, &few, bytes.memory);
    few_changes_release(&few);
    room_give(&making->weights->spare_bytes, &bytes);
    return status;
}
