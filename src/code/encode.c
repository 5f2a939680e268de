// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/status.h"
#include "code/code.h"
#include "code/context_scan.h"
#include "code/payload.h"
#include "code/plain.h"
#include "code/stream.h"
#include "scan/scan.h"

#include <string.h>

/* Cells are counted on about this many elements; more changes nothing that can be seen. */
#define SAMPLE_ELEMENTS (1u << 19)

/* What one more class costs: its models, and a count in each block's entry. */
#define CLASS_HEADER_BITS 130u
#define CLASS_BLOCK_BITS 7u

/* Far more than the largest segment can make. */
#define PAYLOAD_BYTES_MAX (UINT64_C(1) << 32)

/* A segment in which at least one element in so many changes may be shorter without the old elements. */
#define MANY_OF 8u

struct code_encoder {
    struct code_kind kind;
    const struct code_block *blocks;
    size_t count;
    uint64_t elements;
    struct stream_header header;
    struct event_list lists[CLASSES_MAX];
    uint64_t seen[CLASSES_MAX];
    struct block_entry *entries;
    size_t entry_room;
    uint32_t *positions; /* of the changes of a block */
    size_t position_room;
    code_changes_fn watch;
    void *watch_user;
    struct cell_counts counts;
    struct payload_encoder tables;
    struct plain_encoder plain;
    struct buffer payload;
    struct buffer best, trial; /* whole segments, to choose from */
};

enum ulp_status code_encoder_new(struct code_encoder **ret_encoder) {
    struct code_encoder *encoder = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *encoder, &encoder);

    if (status)
        return status;
    encoder->payload = encoder->best = encoder->trial = BUFFER(PAYLOAD_BYTES_MAX);
    *ret_encoder = encoder;
    return ULP_OK;
}

void code_encoder_free(struct code_encoder *encoder) {
    if (!encoder)
        return;
    for (uint32_t k = 0; k < CLASSES_MAX; k++) {
        mem_free(encoder->lists[k].gaps);
        mem_free(encoder->lists[k].values);
        mem_free(encoder->lists[k].upper);
    }
    mem_free(encoder->entries);
    mem_free(encoder->positions);
    plain_encoder_release(&encoder->plain);
    buffer_release(&encoder->payload);
    buffer_release(&encoder->best);
    buffer_release(&encoder->trial);
    mem_free(encoder);
}

/* A new segment, in the memory of the one before. */
static enum ulp_status restart(struct code_encoder *encoder) {
    enum ulp_status status = ULP_OK;

    memset(&encoder->header, 0, sizeof encoder->header);
    memset(encoder->seen, 0, sizeof encoder->seen);
    memset(&encoder->counts, 0, sizeof encoder->counts);
    buffer_clear(&encoder->payload);
    for (uint32_t k = 0; k < CLASSES_MAX; k++)
        encoder->lists[k].gap_count = encoder->lists[k].value_count = 0;
    if (encoder->entry_room < encoder->count) {
        status = mem_resize(&encoder->entries, encoder->count, sizeof *encoder->entries);
        encoder->entry_room = status ? encoder->entry_room : encoder->count;
    }
    if (!status && encoder->count)
        memset(encoder->entries, 0, encoder->count * sizeof *encoder->entries);
    return status;
}

static enum ulp_status check_blocks(struct code_encoder *encoder, bool history) {
    for (size_t b = 0; b < encoder->count; b++) {
        enum ulp_status status = code_block_check(&encoder->blocks[b], history);

        if (status)
            return status;
        encoder->elements += encoder->blocks[b].elements;
    }
    if (encoder->count > CODE_BLOCKS_MAX || encoder->elements > CODE_SEGMENT_MAX)
        return fail(ULP_E_LIMIT, "a segment of %zu blocks and %llu elements; the limits are %u, %u",
                    encoder->count, (unsigned long long)encoder->elements, CODE_BLOCKS_MAX,
                    CODE_SEGMENT_MAX);
    return ULP_OK;
}

static enum ulp_status choose_classes(struct code_encoder *encoder, bool history) {
    uint32_t stride = (uint32_t)(encoder->elements / SAMPLE_ELEMENTS) + 1;

    for (size_t b = 0; b < encoder->count; b++)
        scan_sample(encoder->kind, &encoder->blocks[b], stride, &encoder->counts);
    return classes_choose(&encoder->counts, history ? CELLS : EXPONENT_CELLS,
                          CLASS_HEADER_BITS + CLASS_BLOCK_BITS * encoder->count,
                          &encoder->header.map);
}

/* Whether values have an upper half. */
static bool is_wide(const struct code_encoder *encoder) {
    return encoder->kind.width == 8;
}

static enum ulp_status make_room(struct event_list *list, uint32_t elements, bool wide) {
    const size_t more = (size_t)elements + LIST_SLACK;
    enum ulp_status status = ULP_OK;

    while (!status && list->gap_room - list->gap_count < more)
        status = mem_grow(&list->gaps, list->gap_room, sizeof *list->gaps, &list->gap_room);
    while (!status && list->value_room - list->value_count < more)
        status = mem_grow(&list->values, list->value_room, sizeof *list->values, &list->value_room);
    while (!status && wide && list->upper_room - list->value_count < more)
        status = mem_grow(&list->upper, list->upper_room, sizeof *list->upper, &list->upper_room);
    return status;
}

/* Room for the places of a block, and one more, that is written before it is known to be none. */
static enum ulp_status position_room(struct code_encoder *encoder, uint32_t elements) {
    enum ulp_status status;

    if (elements < encoder->position_room)
        return ULP_OK;
    status = mem_resize(&encoder->positions, (size_t)elements + 1, sizeof *encoder->positions);
    if (!status)
        encoder->position_room = (size_t)elements + 1;
    return status;
}

static void tell(const struct code_encoder *encoder, size_t block, uint32_t count) {
    if (encoder->watch)
        encoder->watch(encoder->watch_user, block, encoder->positions, count);
}

static enum ulp_status scan_block(struct code_encoder *encoder, size_t b) {
    const struct code_block *block = &encoder->blocks[b];
    enum ulp_status status = position_room(encoder, block->elements);

    for (uint32_t k = 0; k < encoder->header.map.count && !status; k++)
        status = make_room(&encoder->lists[k], block->elements, is_wide(encoder));
    if (!status)
        scan_encode(encoder->kind, &encoder->header.map, block, encoder->lists, encoder->seen,
                    encoder->positions);
    return status;
}

static enum ulp_status scan_all(struct code_encoder *encoder) {
    const uint32_t classes = encoder->header.map.count;

    for (size_t b = 0; b < encoder->count; b++) {
        struct block_entry *entry = &encoder->entries[b];
        enum ulp_status status;

        for (uint32_t k = 0; k < classes; k++) {
            entry->events[k] = (uint32_t)encoder->lists[k].gap_count;
            entry->changes[k] = (uint32_t)encoder->lists[k].value_count;
        }
        status = scan_block(encoder, b);
        if (status)
            return status;
        for (uint32_t k = 0; k < classes; k++) {
            entry->events[k] = (uint32_t)encoder->lists[k].gap_count - entry->events[k];
            entry->changes[k] = (uint32_t)encoder->lists[k].value_count - entry->changes[k];
        }
        tell(encoder, b, block_changes(entry, classes));
    }
    return ULP_OK;
}

static void model_gaps(struct code_encoder *encoder, uint32_t k) {
    const struct event_list *list = &encoder->lists[k];
    struct class_model *model = &encoder->header.models[k];
    struct tans_shares shares;
    uint32_t largest = 0;

    model->used = list->gap_count != 0;
    if (!model->used)
        return;
    for (size_t i = 0; i < list->gap_count; i++)
        largest = list->gaps[i] > largest ? list->gaps[i] : largest;
    model->rate = tans_rate(list->gap_count, encoder->seen[k]);
    model->top_gap = (uint8_t)gap_symbol(largest);
    tans_geometric(model->rate, model->top_gap, &shares);
    tans_encoder_build(&shares, GAP_SYMBOLS, &encoder->tables.gaps[k]);
}

static void model_values(struct code_encoder *encoder, uint32_t k) {
    const struct event_list *list = &encoder->lists[k];
    struct class_model *model = &encoder->header.models[k];
    uint64_t counts[VALUE_SYMBOLS] = {0};

    model->changes = list->value_count != 0;
    if (!model->changes)
        return;
    for (size_t i = 0; i < list->value_count; i++) {
        uint64_t upper = is_wide(encoder) ? list->upper[i] : 0;

        counts[value_symbol(upper << 32 | list->values[i])]++;
    }
    for (uint32_t s = 0; s < VALUE_SYMBOLS; s++)
        model->top_value = counts[s] ? (uint8_t)s : model->top_value;
    tans_normalise(counts, VALUE_SYMBOLS, &model->values);
    tans_encoder_build(&model->values, VALUE_SYMBOLS, &encoder->tables.values[k]);
}

/* ---- payloads ---- */

static uint32_t put_block(struct code_encoder *encoder, const struct block_entry *entry,
                          const size_t *gap_at, const size_t *value_at) {
    uint8_t *to = encoder->payload.data + encoder->payload.used;
    struct payload_lists lists;

    for (uint32_t k = 0; k < encoder->header.map.count; k++) {
        lists.gaps[k] = encoder->lists[k].gaps + gap_at[k];
        lists.gap_counts[k] = entry->events[k];
        lists.values[k] = encoder->lists[k].values + value_at[k];
        lists.upper[k] = is_wide(encoder) ? encoder->lists[k].upper + value_at[k] : NULL;
        lists.value_counts[k] = entry->changes[k];
    }
    return (uint32_t)(payload_write(&encoder->tables, encoder->header.map.count, &lists, to) - to);
}

static enum ulp_status put_all(struct code_encoder *encoder) {
    size_t gap_at[CLASSES_MAX] = {0}, value_at[CLASSES_MAX] = {0};
    const uint32_t classes = encoder->header.map.count;

    for (size_t b = 0; b < encoder->count; b++) {
        struct block_entry *entry = &encoder->entries[b];
        size_t symbols = block_events(entry, classes) + block_changes(entry, classes);
        enum ulp_status status;

        if (!symbols)
            continue; /* nothing happened here: no payload at all */
        status = buffer_reserve(&encoder->payload, symbols * PAYLOAD_SYMBOL_MAX + PAYLOAD_SLACK);
        if (status)
            return status;
        entry->bytes = put_block(encoder, entry, gap_at, value_at);
        encoder->payload.used += entry->bytes;
        for (uint32_t k = 0; k < classes; k++) {
            gap_at[k] += entry->events[k];
            value_at[k] += entry->changes[k];
        }
    }
    return ULP_OK;
}

static enum ulp_status context_encode(struct code_encoder *encoder, bool history) {
    enum ulp_status status = choose_classes(encoder, history);

    if (!status)
        status = scan_all(encoder);
    for (uint32_t k = 0; !status && k < encoder->header.map.count; k++) {
        model_gaps(encoder, k);
        model_values(encoder, k);
    }
    return status ? status : put_all(encoder);
}

/* ---- segments ---- */

/* Appends the segment in one form. */
static enum ulp_status encode_as(struct code_encoder *encoder, enum code_coder coder,
                                 struct buffer *out) {
    size_t before = out->used;
    enum ulp_status status = restart(encoder);

    encoder->header.coder = coder;
    if (!status && coder < CODE_PLAIN)
        status = context_encode(encoder, coder == CODE_HISTORY);
    else if (!status)
        status = plain_encode(&encoder->plain, encoder->kind, encoder->blocks, encoder->count,
                              &encoder->header, encoder->entries, &encoder->payload);
    if (!status)
        status = stream_write(&encoder->header, encoder->entries, encoder->count, out);
    if (!status)
        status = buffer_append(out, encoder->payload.data, encoder->payload.used);
    if (status)
        buffer_cut(out, before);
    return status;
}

static enum ulp_status take_blocks(struct code_encoder *encoder, struct code_kind kind,
                                   bool history, const struct code_block *blocks, size_t count) {
    encoder->kind = kind;
    encoder->blocks = blocks;
    encoder->count = count;
    encoder->elements = 0;
    return check_blocks(encoder, history);
}

void code_encoder_watch(struct code_encoder *encoder, code_changes_fn fn, void *user) {
    encoder->watch = fn;
    encoder->watch_user = user;
}

/* The walk of a context coder finds the places of the changes; for the others this does. */
static enum ulp_status tell_all(struct code_encoder *encoder) {
    const struct scan_kernels *kernels = scan_kernels(encoder->kind.width);
    enum ulp_status status = ULP_OK;

    for (size_t b = 0; b < encoder->count && !status; b++) {
        const struct code_block *block = &encoder->blocks[b];

        status = position_room(encoder, block->elements);
        if (!status)
            tell(encoder, b,
                 (uint32_t)kernels->collect(block->old, block->new, block->elements,
                                            encoder->positions));
    }
    return status;
}

enum ulp_status code_encode(struct code_encoder *encoder, struct code_kind kind,
                            enum code_coder coder, const struct code_block *blocks, size_t count,
                            struct buffer *out) {
    enum ulp_status status = take_blocks(encoder, kind, coder == CODE_HISTORY, blocks, count);

    if (!status && encoder->watch && coder >= CODE_PLAIN)
        status = tell_all(encoder);
    return status ? status : encode_as(encoder, coder, out);
}

/* Puts the segment in this form in the place of the best one so far if it is shorter. */
static enum ulp_status try_coder(struct code_encoder *encoder, enum code_coder coder,
                                 enum code_coder *best) {
    enum ulp_status status;

    buffer_clear(&encoder->trial);
    status = encode_as(encoder, coder, &encoder->trial);
    if (!status && encoder->trial.used < encoder->best.used) {
        struct buffer longer = encoder->best;

        encoder->best = encoder->trial;
        encoder->trial = longer;
        *best = coder;
    }
    return status;
}

enum ulp_status code_encode_best(struct code_encoder *encoder, struct code_kind kind, bool history,
                                 const struct code_block *blocks, size_t count, struct buffer *out,
                                 enum code_coder *ret_coder) {
    enum code_coder best = history ? CODE_HISTORY : CODE_CONTEXT;
    enum ulp_status status = take_blocks(encoder, kind, history, blocks, count);
    uint64_t changes = 0;
    bool few, many;

    buffer_clear(&encoder->best);
    if (!status)
        status = encode_as(encoder, best, &encoder->best);
    for (size_t b = 0; b < count && !status; b++)
        changes += block_changes(&encoder->entries[b], encoder->header.map.count);
    few = changes <= CODE_FEW_CHANGES;
    many = changes * MANY_OF >= encoder->elements;
    if (!status && (few || many))
        status = try_coder(encoder, CODE_PLAIN, &best);
    if (!status && many)
        status = try_coder(encoder, CODE_DENSE, &best);
    if (!status)
        status = buffer_append(out, encoder->best.data, encoder->best.used);
    if (!status)
        *ret_coder = best;
    return status;
}
