// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/status.h"
#include "code/code.h"
#include "code/context_scan.h"
#include "code/payload.h"
#include "code/stream.h"

#include <string.h>

struct code_segment {
    struct code_kind kind;
    struct stream_header header;
    uint32_t *elements;
    size_t count;
    struct block_entry *entries;
    const uint8_t **payloads;
    struct payload_decoder tables;
};

static enum ulp_status damaged(const char *what) {
    return fail(ULP_E_CODE, "a block is damaged: %s", what);
}

static void build_tables(struct code_segment *segment) {
    for (uint32_t k = 0; k < segment->header.map.count; k++) {
        const struct class_model *model = &segment->header.models[k];
        struct tans_shares shares;

        if (model->used) {
            tans_geometric(model->rate, model->top_gap, &shares);
            tans_decoder_build(&shares, GAP_SYMBOLS, &segment->tables.gaps[k]);
            segment->tables.gap_bits[k] = TANS_LOG + gap_form(model->top_gap).extra;
        }
        if (model->changes) {
            tans_decoder_build(&model->values, VALUE_SYMBOLS, &segment->tables.values[k]);
            segment->tables.value_bits[k] = TANS_LOG + value_form(model->top_value).extra;
        }
    }
}

/* A value must fit the element it steps to. */
static enum ulp_status check_values(const struct code_segment *segment) {
    uint32_t most = segment->kind.width == 8
                        ? VALUE_SYMBOLS - 1
                        : value_symbol((UINT64_C(1) << 8 * segment->kind.width) - 2);

    for (uint32_t k = 0; k < segment->header.map.count; k++) {
        if (segment->header.models[k].changes && segment->header.models[k].top_value > most)
            return damaged("a value is wider than the elements");
    }
    return ULP_OK;
}

static enum ulp_status find_payloads(struct code_segment *segment, const uint8_t *at) {
    const uint32_t classes = segment->header.map.count;

    for (size_t b = 0; b < segment->count; b++) {
        const struct block_entry *entry = &segment->entries[b];

        segment->payloads[b] = at;
        at += entry->bytes;
        if (!entry->bytes != !(block_events(entry, classes) + block_changes(entry, classes)))
            return damaged("its payload is there for nothing, or missing");
    }
    return ULP_OK;
}

enum ulp_status code_open(struct code_kind kind, const uint32_t *elements, size_t count,
                          const uint8_t *bytes, size_t byte_count,
                          struct code_segment **ret_segment) {
    struct code_segment *segment = NULL;
    size_t used = 0;
    enum ulp_status status;

    if (count > CODE_BLOCKS_MAX)
        return fail(ULP_E_LIMIT, "%zu blocks; the limit is %u", count, CODE_BLOCKS_MAX);
    for (size_t b = 0; b < count; b++) {
        if (elements[b] > CODE_BLOCK_MAX)
            return fail(ULP_E_LIMIT, "a block of %u elements; the limit is %u", elements[b],
                        CODE_BLOCK_MAX);
    }
    status = mem_zeroed(1, sizeof *segment, &segment);
    if (!status)
        status = mem_zeroed(count, sizeof *segment->elements, &segment->elements);
    if (!status)
        status = mem_zeroed(count, sizeof *segment->entries, &segment->entries);
    if (!status)
        status = mem_zeroed(count, sizeof *segment->payloads, &segment->payloads);
    if (!status) {
        segment->kind = kind;
        segment->count = count;
        memcpy(segment->elements, elements, count * sizeof *elements);
        status = stream_read(bytes, byte_count, elements, count, &segment->header, segment->entries,
                             &used);
    }
    if (!status)
        status = check_values(segment);
    if (!status)
        status = find_payloads(segment, bytes + used);
    if (status) {
        code_close(segment);
        return status;
    }
    build_tables(segment);
    *ret_segment = segment;
    return ULP_OK;
}

void code_close(struct code_segment *segment) {
    if (!segment)
        return;
    mem_free(segment->elements);
    mem_free(segment->entries);
    mem_free(segment->payloads);
    mem_free(segment);
}

bool code_needs_history(const struct code_segment *segment) {
    return segment->header.history;
}

uint32_t code_changes(const struct code_segment *segment, size_t block) {
    return block_changes(&segment->entries[block], segment->header.map.count);
}

/* ---- blocks ---- */

struct code_scratch {
    struct payload_target target;
    size_t rank_room, value_room, upper_room;
};

enum ulp_status code_scratch_new(struct code_scratch **ret_scratch) {
    return mem_zeroed(1, sizeof **ret_scratch, ret_scratch);
}

void code_scratch_free(struct code_scratch *scratch) {
    if (!scratch)
        return;
    mem_free(scratch->target.ranks);
    mem_free(scratch->target.values);
    mem_free(scratch->target.upper);
    mem_free(scratch);
}

/* What was there is not kept. */
static enum ulp_status reserve(uint32_t **array, size_t count, size_t *room) {
    enum ulp_status status;

    if (count <= *room)
        return ULP_OK;
    status = mem_resize(array, count, sizeof **array);
    *room = status ? *room : count;
    return status;
}

static enum ulp_status scratch_reserve(struct code_scratch *scratch,
                                       const struct block_entry *entry, uint32_t classes,
                                       bool wide) {
    const size_t ranks = (size_t)block_events(entry, classes) + classes + FEED_SLACK;
    const size_t values = (size_t)block_changes(entry, classes) + FEED_SLACK;
    enum ulp_status status = reserve(&scratch->target.ranks, ranks, &scratch->rank_room);

    if (!status)
        status = reserve(&scratch->target.values, values, &scratch->value_room);
    if (!status && wide)
        status = reserve(&scratch->target.upper, values, &scratch->upper_room);
    return status;
}

enum ulp_status code_decode(const struct code_segment *segment, struct code_scratch *scratch,
                            size_t block, const struct code_block *old, uint32_t *ret_positions,
                            void *ret_values) {
    const struct block_entry *entry = &segment->entries[block];
    const uint32_t classes = segment->header.map.count;
    const bool wide = segment->kind.width == 8;
    struct event_feed feeds[CLASSES_MAX];
    enum ulp_status status = code_block_check(old, segment->header.history);

    if (!status && old->elements != segment->elements[block])
        status = fail(ULP_E_USAGE, "%u elements for a block of %u", old->elements,
                      segment->elements[block]);
    if (!status)
        status = scratch_reserve(scratch, entry, classes, wide);
    if (!status)
        status = payload_read(
            &segment->tables, classes, entry, segment->payloads[block],
            wide ? scratch->target
                 : (struct payload_target){scratch->target.ranks, scratch->target.values, NULL},
            feeds);
    if (!status &&
        !scan_decode(segment->kind, &segment->header.map, old, feeds, ret_positions, ret_values))
        status = damaged("its events do not fit these weights; is this the right base?");
    return status;
}
