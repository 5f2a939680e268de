// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/status.h"
#include "code/bits.h"
#include "code/code.h"
#include "code/context_scan.h"
#include "code/stream.h"

#include <string.h>

struct code_segment {
    struct code_kind kind;
    struct stream_header header;
    uint32_t *elements;
    size_t count;
    struct block_entry *entries;
    const uint8_t **payloads;
    struct tans_decoder gap_tables[CLASSES_MAX], value_tables[CLASSES_MAX];
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
            tans_decoder_build(&shares, GAP_SYMBOLS, &segment->gap_tables[k]);
        }
        if (model->changes)
            tans_decoder_build(&model->values, VALUE_SYMBOLS, &segment->value_tables[k]);
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

/* ---- payloads ---- */

struct symbol_reader {
    struct bit_reader bits;
    uint32_t states[STREAM_STATES]; /* less TANS_STATES */
};

static uint64_t get_extra(struct bit_reader *bits, uint32_t extra) {
    uint64_t high = 0;

    if (extra > 32) {
        high = bits_get(bits, extra - 32) << 32;
        extra = 32;
    }
    return high | bits_get(bits, extra);
}

static uint32_t get_symbol(struct symbol_reader *reader, const struct tans_decoder *table,
                           uint32_t turn) {
    uint32_t *state = &reader->states[turn % STREAM_STATES];
    uint32_t symbol = table->state[*state].symbol;

    *state =
        table->state[*state].next + (uint32_t)bits_get(&reader->bits, table->state[*state].bits);
    return symbol;
}

static void get_values(struct symbol_reader *reader, const struct tans_decoder *table,
                       uint32_t count, uint64_t *values) {
    for (uint32_t i = 0; i < count; i++) {
        struct symbol_form form = value_form(get_symbol(reader, table, i));

        values[i] = (form.lead << form.extra) + get_extra(&reader->bits, form.extra);
    }
}

/* Ranks rise by a gap and one; whether they stay inside the class only the weights can tell, but
 * they must not wrap around. */
static bool get_ranks(struct symbol_reader *reader, const struct tans_decoder *table,
                      uint32_t count, uint32_t *ranks) {
    uint64_t rank = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct symbol_form form = gap_form(get_symbol(reader, table, i));

        rank += (form.lead << form.extra) + bits_get(&reader->bits, form.extra);
        if (rank >= CODE_BLOCK_MAX)
            return false;
        ranks[i] = (uint32_t)rank++;
    }
    return true;
}

static enum ulp_status read_payload(const struct code_segment *segment, size_t block,
                                    uint32_t *ranks, uint64_t *values, struct event_feed *feeds) {
    const struct block_entry *entry = &segment->entries[block];
    struct symbol_reader reader = {0};

    if (!entry->bytes)
        return ULP_OK;
    if (!bits_open(&reader.bits, segment->payloads[block], entry->bytes))
        return damaged("its payload has no end");
    for (uint32_t i = 0; i < STREAM_STATES; i++)
        reader.states[i] = (uint32_t)bits_get(&reader.bits, TANS_LOG);
    for (uint32_t k = 0; k < segment->header.map.count; k++) {
        feeds[k] = (struct event_feed){ranks, values, entry->events[k], entry->changes[k]};
        if (!get_ranks(&reader, &segment->gap_tables[k], entry->events[k], ranks))
            return damaged("a gap leads out of it");
        get_values(&reader, &segment->value_tables[k], entry->changes[k], values);
        ranks += entry->events[k];
        values += entry->changes[k];
    }
    for (uint32_t i = 0; i < STREAM_STATES; i++) {
        if (reader.states[i])
            return damaged("its payload does not end where it began");
    }
    return reader.bits.left ? damaged("its payload is too long or too short") : ULP_OK;
}

enum ulp_status code_decode(const struct code_segment *segment, size_t block,
                            const struct code_block *old, uint32_t *ret_positions,
                            void *ret_values) {
    const struct block_entry *entry = &segment->entries[block];
    const uint32_t classes = segment->header.map.count;
    struct event_feed feeds[CLASSES_MAX] = {{0}};
    uint32_t *ranks = NULL;
    uint64_t *values = NULL;
    enum ulp_status status = code_block_check(old, segment->header.history);

    if (!status && old->elements != segment->elements[block])
        status = fail(ULP_E_USAGE, "%u elements for a block of %u", old->elements,
                      segment->elements[block]);
    if (!status)
        status = mem_zeroed(block_events(entry, classes), sizeof *ranks, &ranks);
    if (!status)
        status = mem_zeroed(block_changes(entry, classes), sizeof *values, &values);
    if (!status)
        status = read_payload(segment, block, ranks, values, feeds);
    if (!status &&
        !scan_decode(segment->kind, &segment->header.map, old, feeds, ret_positions, ret_values))
        status = damaged("its events do not fit these weights; is this the right base?");
    mem_free(ranks);
    mem_free(values);
    return status;
}
