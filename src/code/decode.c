// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/status.h"
#include "code/code.h"
#include "code/context_scan.h"
#include "code/payload.h"
#include "code/plain.h"
#include "code/segment.h"

#include <string.h>

struct code_segment {
    struct code_kind kind;
    struct stream_header header;
    uint32_t *elements;
    size_t count;
    struct block_entry *entries;
    const uint8_t **payloads;
    struct payload_decoder *tables; /* of the one sort that its coder wants ... */
    struct plain_decoder *plain;    /* ... or the other; none if it was only parsed */
};

static enum ulp_status damaged(const char *what) {
    return fail(ULP_E_CODE, "a block is damaged: %s", what);
}

static void build_context_tables(struct code_segment *segment) {
    for (uint32_t k = 0; k < segment->header.map.count; k++) {
        const struct class_model *model = &segment->header.models[k];
        struct tans_shares shares;

        if (model->used) {
            tans_geometric(model->rate, model->top_gap, &shares);
            tans_decoder_build(&shares, GAP_SYMBOLS, &segment->tables->gaps[k]);
            segment->tables->gap_bits[k] = TANS_LOG + gap_form(model->top_gap).extra;
        }
        if (model->changes) {
            tans_decoder_build(&model->values, VALUE_SYMBOLS, &segment->tables->values[k]);
            segment->tables->value_bits[k] = TANS_LOG + value_form(model->top_value).extra;
        }
    }
}

static enum ulp_status build_tables(struct code_segment *segment) {
    enum ulp_status status;

    if (segment->header.coder < CODE_PLAIN) {
        status = mem_zeroed(1, sizeof *segment->tables, &segment->tables);
        if (!status)
            build_context_tables(segment);
    } else {
        status = mem_zeroed(1, sizeof *segment->plain, &segment->plain);
        if (!status)
            plain_decoder_build(&segment->header, segment->plain);
    }
    return status;
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
    for (size_t b = 0; b < segment->count; b++) {
        const struct block_entry *entry = &segment->entries[b];

        segment->payloads[b] = at;
        at += (size_t)entry->raw + entry->bytes;
        if (!entry->bytes != !block_symbols(&segment->header, entry))
            return damaged("its payload is there for nothing, or missing");
    }
    return ULP_OK;
}

enum ulp_status code_parse(struct code_kind kind, const uint32_t *elements, size_t count,
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
        status = stream_read(bytes, byte_count, kind.width, elements, count, &segment->header,
                             segment->entries, &used);
    }
    if (!status && segment->header.coder < CODE_PLAIN)
        status = check_values(segment);
    if (!status)
        status = find_payloads(segment, bytes + used);
    if (status) {
        code_close(segment);
        return status;
    }
    *ret_segment = segment;
    return ULP_OK;
}

enum ulp_status code_open(struct code_kind kind, const uint32_t *elements, size_t count,
                          const uint8_t *bytes, size_t byte_count,
                          struct code_segment **ret_segment) {
    struct code_segment *segment = NULL;
    enum ulp_status status = code_parse(kind, elements, count, bytes, byte_count, &segment);

    if (!status)
        status = build_tables(segment);
    if (status) {
        code_close(segment);
        return status;
    }
    *ret_segment = segment;
    return ULP_OK;
}

void code_close(struct code_segment *segment) {
    if (!segment)
        return;
    mem_free(segment->elements);
    mem_free(segment->entries);
    mem_free(segment->payloads);
    mem_free(segment->tables);
    mem_free(segment->plain);
    mem_free(segment);
}

enum code_coder code_coder_of(const struct code_segment *segment) {
    return segment->header.coder;
}

bool code_needs_history(const struct code_segment *segment) {
    return segment->header.coder == CODE_HISTORY;
}

const struct stream_header *code_header(const struct code_segment *segment) {
    return &segment->header;
}

const struct block_entry *code_entry(const struct code_segment *segment, size_t block) {
    return &segment->entries[block];
}

const uint8_t *code_payload(const struct code_segment *segment, size_t block) {
    return segment->payloads[block];
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

/* The largest value of the widest symbol would be a second form of another step, or of none. Only
 * classes whose models go that far have to be looked at. */
static bool values_fit(const struct code_segment *segment, const struct event_feed *feeds) {
    const uint64_t beyond = UINT64_MAX >> (64 - 8 * segment->kind.width);

    for (uint32_t k = 0; k < segment->header.map.count; k++) {
        if (!feeds[k].changes || segment->header.models[k].top_value < value_symbol(beyond))
            continue;
        for (uint32_t i = 0; i < feeds[k].changes; i++) {
            uint64_t upper = feeds[k].upper ? feeds[k].upper[i] : 0;

            if ((upper << 32 | feeds[k].values[i]) >= beyond)
                return false;
        }
    }
    return true;
}

/* Reads the payload of a context-coded block into the scratch. */
static enum ulp_status read_numbers(const struct code_segment *segment,
                                    struct code_scratch *scratch, size_t block,
                                    struct event_feed *feeds) {
    const struct block_entry *entry = &segment->entries[block];
    const uint32_t classes = segment->header.map.count;
    const bool wide = segment->kind.width == 8;
    enum ulp_status status = scratch_reserve(scratch, entry, classes, wide);
    struct payload_target target = scratch->target;

    if (!wide)
        target.upper = NULL;
    if (!status)
        status =
            payload_read(segment->tables, classes, entry, segment->payloads[block], target, feeds);
    if (!status && !values_fit(segment, feeds))
        status = damaged("a value is wider than the elements");
    return status;
}

static enum ulp_status context_decode(const struct code_segment *segment,
                                      struct code_scratch *scratch, size_t block,
                                      const struct code_block *old, uint32_t *ret_positions,
                                      void *ret_values, uint32_t *ret_count) {
    struct event_feed feeds[CLASSES_MAX];
    enum ulp_status status = read_numbers(segment, scratch, block, feeds);

    if (status)
        return status;
    if (!scan_decode(segment->kind, &segment->header.map, old, feeds, ret_positions, ret_values))
        return damaged("its events do not fit these weights; is this the right base?");
    *ret_count = block_changes(&segment->entries[block], segment->header.map.count);
    return ULP_OK;
}

uint64_t code_block_bytes(const struct code_segment *segment, size_t block) {
    return (uint64_t)segment->entries[block].raw + segment->entries[block].bytes;
}

/* A value is the zigzag of a step, less one. */
static uint64_t size_of_value(uint64_t value) {
    return value / 2 + 1;
}

static enum ulp_status context_sizes(const struct code_segment *segment,
                                     struct code_scratch *scratch, size_t block,
                                     void (*fn)(void *user, uint64_t size), void *user) {
    struct event_feed feeds[CLASSES_MAX];
    enum ulp_status status = read_numbers(segment, scratch, block, feeds);

    for (uint32_t k = 0; !status && fn && k < segment->header.map.count; k++) {
        for (uint32_t i = 0; i < feeds[k].changes; i++) {
            uint64_t upper = feeds[k].upper ? feeds[k].upper[i] : 0;

            fn(user, size_of_value(upper << 32 | feeds[k].values[i]));
        }
    }
    return status;
}

enum ulp_status code_each_size(const struct code_segment *segment, struct code_scratch *scratch,
                               size_t block, void (*fn)(void *user, uint64_t size), void *user) {
    if (segment->header.coder < CODE_PLAIN)
        return context_sizes(segment, scratch, block, fn, user);
    return plain_check(segment->plain, &segment->header, &segment->entries[block],
                       segment->payloads[block], segment->elements[block]);
}

enum ulp_status code_decode(const struct code_segment *segment, struct code_scratch *scratch,
                            size_t block, const struct code_block *old, uint32_t *ret_positions,
                            void *ret_values, uint32_t *ret_count) {
    enum ulp_status status = code_block_check(old, code_needs_history(segment));

    if (status)
        return status;
    if (old->elements != segment->elements[block])
        return fail(ULP_E_USAGE, "%u elements for a block of %u", old->elements,
                    segment->elements[block]);
    if (segment->header.coder < CODE_PLAIN)
        return context_decode(segment, scratch, block, old, ret_positions, ret_values, ret_count);
    return plain_decode(segment->plain, &segment->header, segment->kind, &segment->entries[block],
                        segment->payloads[block], old, ret_positions, ret_values, ret_count);
}
