// SPDX-License-Identifier: Apache-2.0
#include "code/stream.h"

#include "base/memory.h"
#include "base/status.h"
#include "code/fields.h"

#include <string.h>

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
    uint32_t buckets = header->coder == CODE_HISTORY ? MOVE_BUCKETS : 1, less = map->count - 1;

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

static void field_gaps(struct fields *fields, struct class_model *model) {
    uint32_t rate = model->rate;

    field_flag(fields, &model->used);
    if (!model->used)
        return;
    field_bits(fields, &rate, 16);
    model->rate = (uint16_t)rate;
    field_u8(fields, &model->top_gap, 7);
    if (model->top_gap >= GAP_SYMBOLS)
        field_fail(fields, "the largest gap");
}

static void field_model(struct fields *fields, struct class_model *model) {
    field_gaps(fields, model);
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

static void field_plane(struct fields *fields, struct plane_model *plane) {
    field_flag(fields, &plane->coded);
    if (!plane->coded)
        return;
    field_u8(fields, &plane->first, 8);
    field_u8(fields, &plane->top, 8);
    for (uint32_t s = plane->first; s <= plane->top && !fields->status; s++)
        field_share(fields, &plane->shares.share[s]);
    if (!tans_shares_valid(&plane->shares, TANS_SYMBOLS_MAX) ||
        !plane->shares.share[plane->first] || !plane->shares.share[plane->top])
        field_fail(fields, "the shares of a byte");
}

static void field_planes(struct fields *fields, struct stream_header *header) {
    for (uint32_t p = 0; p < header->width && !fields->status; p++)
        field_plane(fields, &header->planes[p]);
}

/* Of the coder that names places, but not relative to old elements. */
static void field_plain(struct fields *fields, struct stream_header *header) {
    struct class_model *model = &header->models[0];
    bool flipped = !header->map.flipped;

    field_flag(fields, &flipped);
    header->map.flipped = flipped ? 0 : 1;
    field_gaps(fields, model);
    model->changes = model->used || flipped;
    if (model->changes)
        field_planes(fields, header);
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

/* What is not written here follows from the sizes of the blocks. */
static void field_plain_directory(struct fields *fields, const struct stream_header *header,
                                  struct block_entry *entries, size_t blocks) {
    if (header->models[0].used)
        field_column(fields, entries, blocks, 0);
    if (header->models[0].used || header_coded_planes(header))
        field_column(fields, entries, blocks, 2 * CLASSES_MAX);
}

static void field_all(struct fields *fields, struct stream_header *header,
                      struct block_entry *entries, size_t blocks) {
    uint32_t coder = header->coder;

    field_bits(fields, &coder, 2);
    header->coder = (enum code_coder)coder;
    if (header->coder >= CODE_PLAIN) {
        header->map.count = 1;
        if (header->coder == CODE_PLAIN)
            field_plain(fields, header);
        else
            field_planes(fields, header);
        field_plain_directory(fields, header, entries, blocks);
        return;
    }
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

uint32_t header_coded_planes(const struct stream_header *header) {
    uint32_t coded = 0;

    for (uint32_t p = 0; p < header->width; p++)
        coded += header->planes[p].coded;
    return coded;
}

uint32_t block_symbols(const struct stream_header *header, const struct block_entry *entry) {
    if (header->coder >= CODE_PLAIN)
        return entry->events[0] + entry->changes[0] * header_coded_planes(header);
    return block_events(entry, header->map.count) + block_changes(entry, header->map.count);
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

/* What follows from the sizes of the blocks and the models. */
static void derive_entry(struct fields *fields, const struct stream_header *header,
                         struct block_entry *entry, uint32_t elements) {
    uint32_t events = entry->events[0];

    if (events > elements) {
        field_fail(fields, "the counts of a block");
        return;
    }
    if (header->coder == CODE_DENSE || !header->map.flipped)
        entry->changes[0] = elements - events;
    else
        entry->changes[0] = events;
    entry->raw = entry->changes[0] * (header->width - header_coded_planes(header));
}

/* Nothing is announced in vain, and what is flipped has to be. */
static void check_totals(struct fields *fields, const struct stream_header *header,
                         const struct block_entry *entries, const uint32_t *elements,
                         size_t blocks) {
    uint64_t events = 0, changes = 0, all = 0;

    for (size_t b = 0; b < blocks; b++) {
        events += entries[b].events[0];
        changes += entries[b].changes[0];
        all += elements[b];
    }
    if ((header_coded_planes(header) && !changes) || header->models[0].used != (events != 0))
        field_fail(fields, "a model without use");
    if (header->coder == CODE_PLAIN && !header->map.flipped != (2 * changes > all))
        field_fail(fields, "they name the larger half");
}

static void check_entries(struct fields *fields, const struct stream_header *header,
                          struct block_entry *entries, const uint32_t *elements, size_t blocks) {
    for (size_t b = 0; b < blocks && !fields->status; b++) {
        if (header->coder >= CODE_PLAIN)
            derive_entry(fields, header, &entries[b], elements[b]);
        else if (!entry_valid(header, &entries[b], elements[b]))
            field_fail(fields, "the counts of a block");
    }
    if (header->coder >= CODE_PLAIN && !fields->status)
        check_totals(fields, header, entries, elements, blocks);
}

enum ulp_status stream_read(const uint8_t *bytes, size_t byte_count, uint32_t width,
                            const uint32_t *elements, size_t blocks,
                            struct stream_header *ret_header, struct block_entry *ret_entries,
                            size_t *ret_used) {
    struct fields fields = {.in = bytes, .end = (uint64_t)byte_count * 8};
    uint64_t payload = 0;

    memset(ret_header, 0, sizeof *ret_header);
    memset(ret_entries, 0, blocks * sizeof *ret_entries);
    ret_header->width = width;
    field_all(&fields, ret_header, ret_entries, blocks);
    check_entries(&fields, ret_header, ret_entries, elements, blocks);
    for (size_t b = 0; b < blocks; b++)
        payload += (uint64_t)ret_entries[b].raw + ret_entries[b].bytes;
    field_padding(&fields);
    if (!fields.status && fields.at / 8 + payload != byte_count)
        field_fail(&fields, "the payloads do not add up to what is there");
    *ret_used = (size_t)(fields.at / 8);
    return fields.status;
}
