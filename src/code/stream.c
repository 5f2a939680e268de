// SPDX-License-Identifier: Apache-2.0
#include "code/stream.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

/* The longest run of ones of a Rice code before the number is written whole. */
#define RICE_ESCAPE 24u

/*
 * A string of bits that is either being written or being read, so that one function per field serves
 * both ways and they cannot disagree.
 */
struct fields {
    struct buffer *out; /* writing; NULL when reading */
    const uint8_t *in;
    uint64_t at, end; /* in bits */
    enum ulp_status status;
};

static void field_fail(struct fields *fields, const char *what) {
    if (!fields->status)
        fields->status = fail(ULP_E_CODE, "the models of a segment are damaged: %s", what);
}

static void write_bit(struct fields *fields, unsigned bit) {
    if (fields->at % 8 == 0 && !fields->status)
        fields->status = buffer_append_fill(fields->out, 0, 1);
    if (!fields->status)
        fields->out->data[fields->out->used - 1] |= (uint8_t)(bit << fields->at % 8);
    fields->at++;
}

static unsigned read_bit(struct fields *fields) {
    unsigned bit = 0;

    if (fields->at >= fields->end)
        field_fail(fields, "they end too early");
    else
        bit = (unsigned)fields->in[fields->at / 8] >> fields->at % 8 & 1u;
    fields->at++;
    return bit;
}

/* `bits` bits of *value, lowest first. */
static void field_bits(struct fields *fields, uint32_t *value, unsigned bits) {
    uint32_t read = 0;

    for (unsigned i = 0; i < bits && !fields->status; i++) {
        if (fields->out)
            write_bit(fields, *value >> i & 1);
        else
            read |= read_bit(fields) << i;
    }
    if (!fields->out)
        *value = read;
}

static void field_flag(struct fields *fields, bool *flag) {
    uint32_t value = *flag;

    field_bits(fields, &value, 1);
    *flag = value != 0;
}

static void field_u8(struct fields *fields, uint8_t *byte, unsigned bits) {
    uint32_t value = *byte;

    field_bits(fields, &value, bits);
    *byte = (uint8_t)value;
}

/* Numbers around 2^k, k chosen beforehand: the rest in unary, then k bits. */
static void field_rice(struct fields *fields, uint32_t *value, unsigned k) {
    uint32_t ones = fields->out ? *value >> k : 0, one = 1, zero = 0, rest = *value;

    if (fields->out && ones >= RICE_ESCAPE)
        ones = RICE_ESCAPE;
    if (fields->out) {
        for (uint32_t i = 0; i < ones; i++)
            field_bits(fields, &one, 1);
        if (ones < RICE_ESCAPE)
            field_bits(fields, &zero, 1);
    } else {
        while (ones < RICE_ESCAPE && !fields->status && read_bit(fields))
            ones++;
    }
    if (ones == RICE_ESCAPE) {
        field_bits(fields, value, 32);
        if (!fields->out && *value >> k < RICE_ESCAPE)
            field_fail(fields, "a number is written in a long form");
        return;
    }
    field_bits(fields, &rest, k);
    if (!fields->out)
        *value = ones << k | rest;
}

/* ---- the class map: runs of cells of one class ---- */

static void field_run(struct fields *fields, uint8_t *of, uint32_t *at, uint32_t classes) {
    uint32_t run = 1, class = of[*at];

    while (fields->out && *at + run < EXPONENT_CELLS && of[*at + run] == class)
        run++;
    field_bits(fields, &class, 4);
    run--;
    field_rice(fields, &run, 1);
    if (class >= classes || run >= EXPONENT_CELLS - *at)
        field_fail(fields, "the map of the classes");
    run++;
    for (uint32_t i = 0; i < run && !fields->status; i++)
        of[*at + i] = (uint8_t) class;
    *at += run;
}

static void field_map(struct fields *fields, struct stream_header *header) {
    struct class_map *map = &header->map;
    uint32_t buckets = header->history ? MOVE_BUCKETS : 1, less = map->count - 1;

    field_bits(fields, &less, 4);
    map->count = less + 1;
    field_bits(fields, &map->flipped, 5);
    if (map->flipped > map->count)
        field_fail(fields, "more flipped classes than classes");
    for (uint32_t bucket = 0; bucket < buckets && !fields->status; bucket++) {
        uint8_t *of = map->of + bucket * EXPONENT_CELLS;

        for (uint32_t at = 0; at < EXPONENT_CELLS && !fields->status;)
            field_run(fields, of, &at, map->count);
    }
}

/* ---- the models ---- */

/* A share as its number of bits, then the bits below the highest. */
static void field_share(struct fields *fields, uint16_t *share) {
    uint32_t bits = *share ? 32 - (uint32_t)__builtin_clz(*share) : 0, low;

    field_bits(fields, &bits, 4);
    if (bits > TANS_LOG + 1)
        field_fail(fields, "a share is too large");
    if (!bits || fields->status) {
        *share = 0;
        return;
    }
    low = *share & ((1u << (bits - 1)) - 1);
    field_bits(fields, &low, bits - 1);
    *share = (uint16_t)(1u << (bits - 1) | low);
}

static void field_model(struct fields *fields, struct class_model *model) {
    uint32_t rate = model->rate;

    field_flag(fields, &model->used);
    if (model->used) {
        field_bits(fields, &rate, 16);
        model->rate = (uint16_t)rate;
        field_u8(fields, &model->top_gap, 7);
        if (model->top_gap >= GAP_SYMBOLS)
            field_fail(fields, "the largest gap");
    }
    field_flag(fields, &model->changes);
    if (!model->changes)
        return;
    field_u8(fields, &model->top_value, 8);
    if (model->top_value >= VALUE_SYMBOLS)
        field_fail(fields, "the largest value");
    for (uint32_t s = 0; s <= model->top_value && !fields->status; s++)
        field_share(fields, &model->values.share[s]);
    if (!tans_shares_valid(&model->values, VALUE_SYMBOLS) || !model->values.share[model->top_value])
        field_fail(fields, "the shares of the values");
}

/* ---- the directory: one column after the other, each as differences ---- */

static uint32_t zigzag(uint32_t difference) {
    return difference << 1 ^ (difference & 0x80000000u ? UINT32_MAX : 0);
}

static uint32_t unzigzag(uint32_t z) {
    return z >> 1 ^ (z & 1 ? UINT32_MAX : 0);
}

/* Column `column` of an entry. */
static uint32_t *cell_of(struct block_entry *entry, uint32_t column) {
    if (column < CLASSES_MAX)
        return &entry->events[column];
    return column < 2 * CLASSES_MAX ? &entry->changes[column - CLASSES_MAX] : &entry->bytes;
}

static uint64_t rice_bits(uint32_t z, unsigned k) {
    return z >> k >= RICE_ESCAPE ? RICE_ESCAPE + 32 : (z >> k) + 1 + k;
}

static uint32_t best_rice(struct block_entry *entries, size_t blocks, uint32_t column) {
    uint64_t cost[16] = {0};
    uint32_t before = 0, best = 0;

    for (size_t b = 0; b < blocks; b++) {
        uint32_t value = *cell_of(&entries[b], column), z = zigzag(value - before);

        before = value;
        for (unsigned k = 0; k < 16; k++)
            cost[k] += rice_bits(z, k);
    }
    for (unsigned k = 1; k < 16; k++)
        best = cost[k] < cost[best] ? k : best;
    return best;
}

static void field_column(struct fields *fields, struct block_entry *entries, size_t blocks,
                         uint32_t column) {
    uint32_t k = fields->out ? best_rice(entries, blocks, column) : 0, before = 0;

    field_bits(fields, &k, 4);
    for (size_t b = 0; b < blocks && !fields->status; b++) {
        uint32_t *value = cell_of(&entries[b], column), z = zigzag(*value - before);

        field_rice(fields, &z, k);
        before = *value = before + unzigzag(z);
    }
}

static void field_directory(struct fields *fields, const struct stream_header *header,
                            struct block_entry *entries, size_t blocks) {
    for (uint32_t k = 0; k < header->map.count && !fields->status; k++) {
        if (header->models[k].used)
            field_column(fields, entries, blocks, k);
        if (k >= header->map.flipped && header->models[k].changes)
            field_column(fields, entries, blocks, CLASSES_MAX + k);
        for (size_t b = 0; k < header->map.flipped && b < blocks; b++)
            entries[b].changes[k] = entries[b].events[k];
    }
    field_column(fields, entries, blocks, 2 * CLASSES_MAX);
}

static void field_all(struct fields *fields, struct stream_header *header,
                      struct block_entry *entries, size_t blocks) {
    field_flag(fields, &header->history);
    field_map(fields, header);
    for (uint32_t k = 0; k < header->map.count && !fields->status; k++)
        field_model(fields, &header->models[k]);
    field_directory(fields, header, entries, blocks);
}

enum ulp_status stream_write(const struct stream_header *header, const struct block_entry *entries,
                             size_t blocks, struct buffer *out) {
    struct fields fields = {.out = out};
    struct stream_header copy = *header;

    /* Writing changes nothing; the fields take pointers because reading does. */
    field_all(&fields, &copy, (struct block_entry *)(uintptr_t)entries, blocks);
    return fields.status;
}

uint32_t block_events(const struct block_entry *entry, uint32_t classes) {
    uint32_t total = 0;

    for (uint32_t k = 0; k < classes; k++)
        total += entry->events[k];
    return total;
}

uint32_t block_changes(const struct block_entry *entry, uint32_t classes) {
    uint32_t total = 0;

    for (uint32_t k = 0; k < classes; k++)
        total += entry->changes[k];
    return total;
}

/* Every count within its block, every class with what its model announces. */
static bool entry_valid(const struct stream_header *header, const struct block_entry *entry,
                        uint32_t elements) {
    uint64_t events = 0, changes = 0;

    for (uint32_t k = 0; k < header->map.count; k++) {
        events += entry->events[k];
        changes += entry->changes[k];
        if ((entry->events[k] && !header->models[k].used) ||
            (entry->changes[k] && !header->models[k].changes))
            return false;
    }
    return events <= elements && changes <= elements;
}

enum ulp_status stream_read(const uint8_t *bytes, size_t byte_count, const uint32_t *elements,
                            size_t blocks, struct stream_header *ret_header,
                            struct block_entry *ret_entries, size_t *ret_used) {
    struct fields fields = {.in = bytes, .end = (uint64_t)byte_count * 8};
    uint64_t payload = 0;

    memset(ret_header, 0, sizeof *ret_header);
    memset(ret_entries, 0, blocks * sizeof *ret_entries);
    field_all(&fields, ret_header, ret_entries, blocks);
    for (size_t b = 0; b < blocks && !fields.status; b++) {
        if (!entry_valid(ret_header, &ret_entries[b], elements[b]))
            field_fail(&fields, "the counts of a block");
        payload += ret_entries[b].bytes;
    }
    while (fields.at % 8 && !fields.status) {
        if (read_bit(&fields))
            field_fail(&fields, "their last byte has bits to spare");
    }
    if (!fields.status && fields.at / 8 + payload != byte_count)
        field_fail(&fields, "the payloads do not add up to what is there");
    *ret_used = (size_t)(fields.at / 8);
    return fields.status;
}
