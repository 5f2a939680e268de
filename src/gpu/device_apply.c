// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_apply.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "cuda/memory.h"
#include "gpu/device_cast.h"
#include "gpu/device_parts.h"
#include "gpu/device_second.h"
#include "gpu/on_host.h"
#include "patch/fit.h"

#include <string.h>

struct device_apply {
    struct device_weights *weights;
    struct device_parts parts;
    struct cuda_decode decode; /* arrays in `room` */
    struct room room;
    size_t uploaded;            /* bytes at its start: the arrays that the host filled in */
    size_t payload;             /* where the bytes of the patch are ... */
    size_t payload_bytes;       /* ... and how many */
    size_t result;              /* sums and the number of failures */
    uint64_t changes;           /* positions in the list */
    struct coded_chunk *chunks; /* only while it is prepared */
    struct room bytes;          /* likewise: pinned, the bytes of the patch */
    struct ulp_sum *sums;       /* new before a commit and old after it ... */
    struct ulp_root root;       /* ... likewise ... */
    struct device_moves *moves; /* ... and what is remembered; NULL unless asked for */
    struct moves *before;
    bool already, committed;
    bool spoilt; /* the list is neither old nor new: the device failed */
    struct ulp_apply_report report;
};

/* ---- reading the chunks ---- */

static enum ulp_status parse_chunk(void *user, uint64_t segment) {
    struct device_apply *apply = user;
    struct coded_chunk *chunk = &apply->chunks[segment];
    const struct ulp_patch *patch = apply->parts.patches[chunk->part];
    struct workers *workers = apply->weights->weights->workers;
    struct worker *worker = NULL;
    enum ulp_status status;

    if (!patch->table.chunks[chunk->number].bytes)
        return ULP_OK;
    status = workers_take(workers, patch->table.grid.chunks[chunk->number].words, &worker);
    if (!status)
        status = patch_chunk_parse(patch, chunk->number, apply->bytes.memory + chunk->at, worker,
                                   &chunk->segment);
    workers_give(workers, worker);
    if (!status)
        chunk->on_host = code_coder_of(chunk->segment) >= CODE_PLAIN;
    return status;
}

static enum ulp_status parse_chunks(struct device_apply *apply,
                                    const struct ulp_apply_options *options) {
    enum ulp_status status =
        device_parts_chunks(&apply->parts, &apply->chunks, &apply->payload_bytes);

    if (!status)
        status = room_take(&apply->weights->spare_bytes, apply->payload_bytes, true, &apply->bytes);
    if (!status)
        status = ulp_pool_run(options->pool, apply->parts.plan->device.segment_count, parse_chunk,
                              apply, options->progress);
    return status;
}

static enum ulp_status decode_all_on_host(struct device_apply *apply) {
    struct lock lock;
    enum ulp_status status = ULP_OK;

    lock_make(&lock);
    for (size_t i = 0; !status && i < apply->parts.plan->device.segment_count; i++) {
        struct coded_chunk *chunk = &apply->chunks[i];
        const struct sum_target target =
            device_parts_target(&apply->parts, chunk->part, apply->sums, &lock);

        if (chunk->segment && chunk->on_host)
            status = on_host_decode(apply->weights, apply->parts.plan, i,
                                    apply->parts.patches[chunk->part], chunk->number, &target,
                                    &chunk->decoded);
    }
    lock_destroy(&lock);
    return status;
}

/* ---- laying out the device's memory ---- */

/* Where what is in the room begins. */
static void point_into(struct device_apply *apply, const struct coded_arrays *arrays,
                       const struct coded_sizes *sizes, size_t tables, size_t lists,
                       size_t values) {
    struct cuda_decode *decode = &apply->decode;
    uint8_t *base = apply->room.memory;

    decode->plan = apply->parts.plan->device.blocks;
    decode->places = apply->parts.plan->device_places;
    decode->models = (const struct decode_model *)(void *)(base + arrays->models);
    decode->shares = (const uint16_t *)(void *)(base + arrays->shares);
    decode->segments = (const struct decode_segment *)(void *)(base + arrays->segments);
    decode->blocks = (const struct decode_block *)(void *)(base + arrays->blocks);
    decode->counts = (const uint32_t *)(void *)(base + arrays->counts);
    decode->payload = base + apply->payload;
    decode->tables = (uint32_t *)(void *)(base + tables);
    decode->table_count = sizes->models;
    memcpy(decode->ranges, sizes->ranges, sizeof decode->ranges);
    decode->positions = (uint32_t *)(void *)(base + lists);
    decode->values = base + values;
    if (apply->parts.patches[0]->table.history && apply->weights->moves)
        decode->moves = (const decode_move *)(void *)apply->weights->moves->room.memory;
}

static enum ulp_status lay_out(struct device_apply *apply, const struct coded_sizes *sizes,
                               const struct coded_arrays *arrays) {
    const size_t sum_bytes = apply->parts.plan->device.piece_count * sizeof(struct ulp_sum);
    size_t bytes = arrays->bytes, tables, faults, lists, values;
    enum ulp_status status;

    apply->uploaded = bytes;
    apply->changes = sizes->changes;
    apply->payload = room_place(&bytes, 1, apply->payload_bytes + DECODE_SLACK);
    tables = room_place(&bytes, sizes->models, DECODE_STATES * sizeof(uint32_t));
    apply->result = room_place(&bytes, 1, sum_bytes + sizeof(uint64_t));
    faults = room_place(&bytes, sizes->blocks, sizeof(uint32_t));
    lists = room_place(&bytes, (size_t)sizes->changes, sizeof(uint32_t));
    values = room_place(&bytes, 1, (size_t)sizes->value_bytes);
    status = room_take(&apply->weights->spare, bytes, false, &apply->room);
    if (status)
        return status;
    point_into(apply, arrays, sizes, tables, lists, values);
    apply->decode.sums = (unsigned long long *)(void *)(apply->room.memory + apply->result);
    apply->decode.failed = (uint32_t *)(void *)(apply->room.memory + apply->result + sum_bytes);
    apply->decode.faults = (uint32_t *)(void *)(apply->room.memory + faults);
    apply->report.staged_bytes = bytes;
    status = cuda_clear(apply->room.memory + apply->result, lists - apply->result,
                        apply->weights->stream);
    return device_status(status, "making room for a patch");
}

static enum ulp_status copy_decoded(struct device_apply *apply, size_t chunk) {
    const struct coded_chunk *coded = &apply->chunks[chunk];
    const unsigned width = apply->parts.plan->segments[chunk].kind.width;
    const struct decoded_chunk *decoded = &coded->decoded;
    enum ulp_status status =
        cuda_copy_in(apply->decode.positions + coded->first, decoded->positions,
                     (size_t)decoded->changes * sizeof *decoded->positions, apply->weights->stream);

    if (!status)
        status = cuda_copy_in(apply->decode.values + coded->values, decoded->values,
                              (size_t)decoded->changes * width, apply->weights->stream);
    return status;
}

static enum ulp_status upload(struct device_apply *apply, const uint8_t *arrays) {
    enum ulp_status status =
        cuda_copy_in(apply->room.memory, arrays, apply->uploaded, apply->weights->stream);

    if (!status)
        status = cuda_copy_in(apply->room.memory + apply->payload, apply->bytes.memory,
                              apply->payload_bytes, apply->weights->stream);
    for (size_t i = 0; !status && i < apply->parts.plan->device.segment_count; i++) {
        if (apply->chunks[i].segment && apply->chunks[i].on_host)
            status = copy_decoded(apply, i);
    }
    return device_status(status, "taking a patch");
}

/* ---- decoding ---- */

static enum ulp_status tell_fault(struct device_apply *apply) {
    static const char *const texts[] = {
        [DECODE_NO_END] = "its payload has no end",
        [DECODE_GAP] = "a gap leads out of it",
        [DECODE_VALUE] = "a value is wider than the elements",
        [DECODE_STATE] = "its payload does not end where it began",
        [DECODE_LENGTH] = "its payload is too long or too short",
        [DECODE_MISFIT] = "its events do not fit these weights; is this the right base?",
    };
    uint32_t blocks = 0, *faults = NULL, fault = 0;
    enum ulp_status status;

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        blocks += apply->decode.ranges[w].all;
    status = mem_zeroed(blocks, sizeof *faults, &faults);
    if (!status)
        status = device_status(cuda_copy_out(faults, apply->decode.faults, blocks * sizeof *faults,
                                             apply->weights->stream),
                               "telling what is wrong with a patch");
    if (!status)
        status =
            device_status(cuda_wait(apply->weights->stream), "telling what is wrong with a patch");
    for (uint32_t i = 0; !status && i < blocks && !fault; i++)
        fault = faults[i];
    mem_free(faults);
    if (status)
        return status;
    return fail(ULP_E_CODE, "a block is damaged: %s",
                fault && fault <= DECODE_MISFIT ? texts[fault] : "nobody knows how");
}

static enum ulp_status launch(struct device_apply *apply, const struct decode_block *blocks) {
    void *stream = apply->weights->stream;
    enum ulp_status status = cuda_decode_tables(&apply->decode, stream);

    if (!status)
        status = cuda_decode_payload(&apply->decode, stream);
    if (!status)
        status = device_parts_scan(&apply->parts, &apply->decode, blocks);
    return status;
}

/* The device's sums are how those of the pieces change; of regions there is one more, of no piece.
 * `blocks` are those of the decoder. */
static enum ulp_status run(struct device_apply *apply, const struct decode_block *blocks) {
    const size_t pieces = apply->parts.plan->device.piece_count;
    struct ulp_sum *changes = NULL; /* and behind them the number of failures */
    uint32_t failed = 0;
    enum ulp_status status = mem_zeroed(pieces + 1, sizeof *changes, &changes);

    if (!status) {
        status = launch(apply, blocks);
        if (!status)
            status =
                cuda_copy_out(changes, apply->decode.sums,
                              pieces * sizeof *changes + sizeof(uint64_t), apply->weights->stream);
        if (!status)
            status = cuda_wait(apply->weights->stream);
        status = device_status(status, "decoding a patch");
    }
    if (!status) {
        memcpy(&failed, &changes[pieces], sizeof failed);
        if (failed)
            status = tell_fault(apply);
    }
    for (size_t i = 0; !status && i < apply->weights->weights->grid.piece_count; i++) {
        apply->sums[i].lane[0] += changes[i].lane[0];
        apply->sums[i].lane[1] += changes[i].lane[1];
    }
    mem_free(changes);
    return status;
}

static enum ulp_status decode(struct device_apply *apply) {
    struct device_weights *weights = apply->weights;
    struct coded_sizes sizes = {0};
    struct coded_arrays arrays = {0};
    struct room filled = {0};
    enum ulp_status status = coded_measure(apply->parts.plan, apply->chunks, &sizes);

    if (!status) {
        arrays = coded_layout(&sizes);
        status = lay_out(apply, &sizes, &arrays);
    }
    if (!status)
        status = room_take(&weights->spare_arrays, arrays.bytes, true, &filled);
    if (!status) {
        memset(filled.memory, 0, arrays.bytes);
        coded_fill(apply->parts.plan, apply->chunks, &sizes, &arrays, apply->bytes.memory,
                   apply->decode.moves ? weights->moves : NULL, filled.memory);
        status = upload(apply, filled.memory);
    }
    if (!status)
        status = run(apply, (const struct decode_block *)(void *)(filled.memory + arrays.blocks));
    else
        (void)cuda_wait(weights->stream); /* nothing may be read from memory that goes */
    room_give(&weights->spare_arrays, &filled);
    return status;
}

/* ---- preparing ---- */

/* What only preparing needs. */
static void release_chunks(struct device_apply *apply) {
    for (size_t i = 0; apply->chunks && i < apply->parts.plan->device.segment_count; i++) {
        code_close(apply->chunks[i].segment);
        on_host_release(&apply->chunks[i].decoded);
    }
    mem_free(apply->chunks);
    apply->chunks = NULL;
    room_give(&apply->weights->spare_bytes, &apply->bytes);
    device_parts_decoded(&apply->parts);
}

static enum ulp_status prepare(struct device_apply *apply,
                               const struct ulp_apply_options *options) {
    const struct ulp_weights *weights = apply->weights->weights;
    const size_t pieces = weights->grid.piece_count;
    const bool remember = options->remember && apply->parts.patches[0]->table.grid.whole;
    enum ulp_status status = mem_zeroed(pieces, sizeof *apply->sums, &apply->sums);

    if (!status && pieces)
        memcpy(apply->sums, weights->sums, pieces * sizeof *apply->sums);
    if (!status)
        status = parse_chunks(apply, options);
    if (!status)
        status = decode_all_on_host(apply);
    if (!status)
        status = device_parts_upload(&apply->parts);
    if (!status)
        status = decode(apply);
    if (!status)
        status = device_parts_check(&apply->parts, apply->sums, &apply->report.child);
    if (!status && remember)
        status = mem_zeroed(1, sizeof *apply->before, &apply->before);
    if (!status && remember) {
        apply->before->before = weights->root;
        status = device_moves_make(apply->parts.plan, &apply->decode, apply->parts.changes,
                                   apply->weights->stream, &apply->moves);
    }
    release_chunks(apply);
    apply->root = apply->report.child;
    return status;
}

/* What the patches lead to: who applies parts may know, or they tile all tensors. */
static enum ulp_status find_child(const struct ulp_patch *const *parts, size_t count,
                                  const struct ulp_root *child, struct ulp_root *ret_child) {
    if (!child && !parts[0]->table.grid.whole)
        return parts_root(parts, count, ret_child);
    *ret_child = child ? *child : parts[0]->table.child;
    return ULP_OK;
}

/* Where two states are, what a patch changes is kept by the blocks of whole tensors. */
static enum ulp_status check_whole(const struct ulp_patch *const *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!parts[i]->table.grid.whole)
            return fail(ULP_E_REGIONS, "%s is a partial patch; two states take whole ones",
                        quote(parts[i]->name).text);
    }
    return ULP_OK;
}

enum ulp_status device_apply_prepare_parts(struct device_weights *weights,
                                           const struct ulp_patch *const *parts, size_t count,
                                           const struct ulp_root *child,
                                           const struct ulp_apply_options *options,
                                           struct device_apply **ret_apply) {
    static const struct ulp_apply_options plain = {0};
    const uint64_t started = clock_monotonic_ns();
    struct device_apply *apply = NULL;
    enum ulp_status status =
        device_weights_check_here(weights, "apply the patch to them with ulp_apply()");

    if (!status)
        status = device_cast_none(weights, "taking a patch");
    if (!status)
        status = device_weights_check(weights);
    if (!status && weights->second)
        status = check_whole(parts, count);
    if (!status)
        status = mem_zeroed(1, sizeof *apply, &apply);
    if (status)
        return status;
    apply->weights = weights;
    apply->report.parent = parts[0]->table.parent;
    status = find_child(parts, count, child, &apply->report.child);
    if (!status)
        status = fit_check(weights->weights, parts, count, &apply->report.child, &apply->already);
    if (!status)
        status = device_parts_make(weights, parts, count, &apply->parts);
    apply->report.changed = apply->parts.changes;
    if (!status && !apply->already)
        status = prepare(apply, options ? options : &plain);
    apply->report.already = apply->already;
    apply->report.decode_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
    if (status) {
        device_apply_free(apply);
        return status;
    }
    *ret_apply = apply;
    return ULP_OK;
}

enum ulp_status device_apply_prepare(struct device_weights *weights, const struct ulp_patch *patch,
                                     const struct ulp_apply_options *options,
                                     struct device_apply **ret_apply) {
    return device_apply_prepare_parts(weights, &patch, 1, NULL, options, ret_apply);
}

void device_apply_free(struct device_apply *apply) {
    if (!apply)
        return;
    room_give(&apply->weights->spare, &apply->room);
    device_parts_release(&apply->parts);
    device_moves_free(apply->moves);
    moves_free(apply->before);
    mem_free(apply->sums);
    mem_free(apply);
}

const struct cuda_decode *device_apply_decode(const struct device_apply *apply) {
    return &apply->decode;
}

/* ---- writing ---- */

/* Sums, root and history change places with what is staged, as the weights have. */
static void exchange(struct device_apply *apply) {
    struct device_weights *on = apply->weights;
    struct ulp_weights *weights = on->weights;
    struct ulp_sum *sums = weights->sums;
    struct ulp_root root = weights->root;
    struct device_moves *moves = on->moves;
    struct moves *before = weights->moves;

    weights->sums = apply->sums;
    weights->root = apply->root;
    weights->moves = apply->before;
    on->moves = apply->moves;
    apply->sums = sums;
    apply->root = root;
    apply->before = before;
    apply->moves = moves;
    apply->committed = !apply->committed;
}

static enum ulp_status still_at(const struct device_apply *apply, const struct ulp_root *root) {
    const struct ulp_root *is = &apply->weights->weights->root;

    if (same_root(is, root))
        return ULP_OK;
    return fail(ULP_E_WRONG_BASE, "the weights have changed since: they were %s..., and are %s...",
                short_root(root).hex, short_root(is).hex);
}

/* With a second state: the present one is left alone, and the other takes its place. */
static enum ulp_status change_places(struct device_apply *apply) {
    enum ulp_status status = ULP_OK;

    if (apply->spoilt)
        return fail(ULP_E_USAGE,
                    "the device failed while this patch was being written: the weights "
                    "are whole, but the patch has to be prepared anew");
    if (apply->decode.places) /* prepared before the second state came */
        return fail(ULP_E_REGIONS, "this is a partial patch; two states take whole ones");
    status = device_second_reserve(apply->weights, &apply->decode, apply->changes);
    if (status)
        return status;
    status = device_second_write(apply->weights, &apply->decode, apply->changes, &apply->root);
    if (status)
        apply->spoilt = true;
    else
        exchange(apply);
    return status;
}

static enum ulp_status swap(struct device_apply *apply) {
    struct device_weights *weights = apply->weights;
    enum ulp_status status = device_cast_none(weights, "writing a patch");

    if (!status)
        status = device_weights_check(weights);
    if (status)
        return status;
    if (weights->second)
        return change_places(apply);
    status = cuda_decode_swap(&apply->decode, weights->poisoned, weights->stream);
    if (!status)
        status = cuda_wait(weights->stream);
    if (status)
        return device_status(status, "writing the weights, which are neither old nor new now and "
                                     "are marked so");
    exchange(apply);
    return ULP_OK;
}

enum ulp_status device_apply_commit(struct device_apply *apply,
                                    struct ulp_apply_report *ret_report) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status;

    if (apply->committed)
        return fail(ULP_E_USAGE, "this patch was committed already");
    status = still_at(apply, apply->already ? &apply->report.child : &apply->report.parent);
    if (!status && !apply->already)
        status = swap(apply);
    if (status)
        return status;
    apply->report.write_seconds = (double)(clock_monotonic_ns() - started) / 1e9;
    if (ret_report)
        *ret_report = apply->report;
    return ULP_OK;
}

enum ulp_status device_apply_undo(struct device_apply *apply) {
    enum ulp_status status;

    if (apply->already)
        return ULP_OK;
    if (!apply->committed)
        return fail(ULP_E_USAGE, "there is nothing to undo: the patch was not committed");
    status = still_at(apply, &apply->report.child);
    return status ? status : swap(apply);
}
