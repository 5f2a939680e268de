// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/status.h"
#include "code/bits.h"
#include "code/plain.h"
#include "scan/scan.h"

#include <string.h>

/* The most bytes of a gap, of a coded byte, and of all that surrounds them. */
#define GAP_BYTES_MAX 5u
#define CODED_BYTES_MAX 2u
#define SURROUNDING_BYTES (STREAM_STATES * 2 + BITS_SLACK + 1)

/* What a coded part costs beyond its bytes: the states, the mark of the end, its length. */
#define CODED_PART_BITS 104u

/* So many symbols fit between two flushes. */
#define SYMBOLS_PER_FLUSH 4u

/* One block on its way. */
struct plain_block {
    const void *values; /* its new elements that are coded */
    const uint32_t *events;
    uint32_t event_count, value_count;
};

void plain_encoder_release(struct plain_encoder *plain) {
    mem_free(plain->positions);
    mem_free(plain->events);
    mem_free(plain->values);
    mem_free(plain->bytes);
}

static enum ulp_status make_room(struct plain_encoder *plain, const struct code_block *blocks,
                                 size_t count, uint32_t width) {
    enum ulp_status status = ULP_OK;
    uint32_t largest = 0;

    for (size_t b = 0; b < count; b++)
        largest = blocks[b].elements > largest ? blocks[b].elements : largest;
    if (largest <= plain->room && width <= plain->room_width)
        return ULP_OK;
    largest = largest > plain->room ? largest : plain->room;
    width = width > plain->room_width ? width : plain->room_width;
    status = mem_resize(&plain->positions, largest, sizeof *plain->positions);
    if (!status)
        status = mem_resize(&plain->events, largest, sizeof *plain->events);
    if (!status)
        status = mem_resize(&plain->values, largest, width);
    if (!status)
        status = mem_resize(&plain->bytes, largest, width);
    if (!status) {
        plain->room = largest;
        plain->room_width = width;
    }
    return status;
}

/* ---- what there is to say ---- */

static void count_events(const struct scan_kernels *kernels, const struct code_block *blocks,
                         size_t count, struct stream_header *header, struct block_entry *entries) {
    uint64_t changes = 0, elements = 0;

    for (size_t b = 0; b < count; b++) {
        entries[b].changes[0] =
            blocks[b].old
                ? (uint32_t)kernels->count(blocks[b].old, blocks[b].new, blocks[b].elements)
                : blocks[b].place_count;
        changes += entries[b].changes[0];
        elements += blocks[b].elements;
    }
    header->map.flipped = 2 * changes > elements ? 0 : 1;
    for (size_t b = 0; b < count; b++)
        entries[b].events[0] = header->map.flipped ? entries[b].changes[0]
                                                   : blocks[b].elements - entries[b].changes[0];
}

static struct plain_block take_block(struct plain_encoder *plain,
                                     const struct scan_kernels *kernels,
                                     const struct stream_header *header,
                                     const struct block_entry *entry,
                                     const struct code_block *block) {
    struct plain_block taken = {block->new, plain->positions, entry->events[0], entry->changes[0]};

    if (header->coder == CODE_DENSE)
        return taken;
    if (block->old)
        kernels->collect(block->old, block->new, block->elements, plain->positions);
    else if (block->place_count)
        memcpy(plain->positions, block->places, block->place_count * sizeof *block->places);
    if (!header->map.flipped) {
        places_between(plain->positions, entry->changes[0], block->elements, plain->events);
        taken.events = plain->events;
    }
    if (!block->old) {
        taken.values = block->values;
        return taken;
    }
    kernels->gather(block->new, plain->positions, entry->changes[0], plain->values);
    taken.values = plain->values;
    return taken;
}

static void count_block(struct plain_encoder *plain, struct code_kind kind,
                        const struct plain_block *block) {
    uint8_t *planes[PLANES_MAX];
    uint32_t next = 0;

    for (uint32_t i = 0; i < block->event_count; i++) {
        uint32_t gap = block->events[i] - next;

        plain->largest_gap = gap > plain->largest_gap ? gap : plain->largest_gap;
        next = block->events[i] + 1;
    }
    for (uint32_t p = 0; p < kind.width; p++)
        planes[p] = plain->bytes + (size_t)p * block->value_count;
    planes_split(kind, block->values, block->value_count, planes);
    for (uint32_t p = 0; p < kind.width; p++)
        plane_count(planes[p], block->value_count, plain->counts[p]);
}

/* ---- models ---- */

static void choose_gaps(struct plain_encoder *plain, const struct code_block *blocks, size_t count,
                        struct stream_header *header, const struct block_entry *entries) {
    struct class_model *model = &header->models[0];
    uint64_t events = 0, elements = 0;
    struct tans_shares shares;

    for (size_t b = 0; b < count; b++) {
        events += entries[b].events[0];
        elements += blocks[b].elements;
        model->changes |= entries[b].changes[0] != 0;
    }
    model->used = events != 0;
    if (!model->used)
        return;
    model->rate = tans_rate(events, elements);
    model->top_gap = (uint8_t)gap_symbol(plain->largest_gap);
    tans_geometric(model->rate, model->top_gap, &shares);
    tans_encoder_build(&shares, GAP_SYMBOLS, &plain->gaps);
}

/* Planes are coded if together they save more than the coded parts that would be there for nothing
 * else. */
static void choose_planes(struct plain_encoder *plain, size_t count, struct stream_header *header,
                          const struct block_entry *entries) {
    uint64_t saved = 0, parts = 0;

    for (size_t b = 0; b < count; b++)
        parts += entries[b].changes[0] && !entries[b].events[0];
    for (uint32_t p = 0; p < header->width; p++)
        saved += plane_choose(plain->counts[p], &header->planes[p]);
    for (uint32_t p = 0; p < header->width; p++) {
        struct plane_model *plane = &header->planes[p];

        plane->coded = plane->coded && saved > parts * CODED_PART_BITS;
        if (plane->coded)
            tans_encoder_build(&plane->shares, TANS_SYMBOLS_MAX, &plain->planes[p]);
    }
}

/* ---- payloads: written from the last symbol to the first ---- */

struct turn_writer {
    struct bit_writer bits;
    uint32_t states[STREAM_STATES];
};

static inline void put_symbol(struct bit_writer *bits, uint32_t *state,
                              const struct tans_encoder *table, uint32_t symbol) {
    uint32_t out = (*state + table->symbol[symbol].bits) >> 16;

    bits_put(bits, *state & ((1u << out) - 1), out);
    *state = table->next[(int32_t)(*state >> out) + table->symbol[symbol].offset];
}

static void put_plane(struct turn_writer *writer, const struct tans_encoder *table,
                      const uint8_t *plane, uint32_t count) {
    struct bit_writer bits = writer->bits; /* a copy can stay in registers */
    uint32_t *states = writer->states, i = count;

    while (i % STREAM_STATES) {
        i--;
        put_symbol(&bits, &states[i % STREAM_STATES], table, plane[i]);
        bits_flush(&bits);
    }
    while (i) {
        i -= STREAM_STATES;
        for (uint32_t turn = STREAM_STATES; turn > 0; turn -= SYMBOLS_PER_FLUSH) {
            for (uint32_t j = 1; j <= SYMBOLS_PER_FLUSH; j++)
                put_symbol(&bits, &states[turn - j], table, plane[i + turn - j]);
            bits_flush(&bits);
        }
    }
    writer->bits = bits;
}

static void put_gaps(struct turn_writer *writer, const struct tans_encoder *table,
                     const uint32_t *events, uint32_t count) {
    for (uint32_t i = count; i-- > 0;) {
        uint32_t gap = events[i] - (i ? events[i - 1] + 1 : 0), extra = gap_extra(gap);

        bits_put(&writer->bits, gap & ((1u << extra) - 1), extra);
        put_symbol(&writer->bits, &writer->states[i % STREAM_STATES], table, gap_symbol(gap));
        bits_flush(&writer->bits);
    }
}

/* Returns the byte behind what it wrote. */
static uint8_t *put_coded(const struct plain_encoder *plain, const struct stream_header *header,
                          const struct plain_block *block, uint8_t *const *planes, uint8_t *to) {
    struct turn_writer writer = {.bits = {.at = to}};

    for (uint32_t i = 0; i < STREAM_STATES; i++)
        writer.states[i] = TANS_STATES;
    for (uint32_t p = header->width; p-- > 0;) {
        if (header->planes[p].coded)
            put_plane(&writer, &plain->planes[p], planes[p], block->value_count);
    }
    put_gaps(&writer, &plain->gaps, block->events, block->event_count);
    for (uint32_t i = STREAM_STATES; i-- > 0;) {
        bits_put(&writer.bits, writer.states[i] - TANS_STATES, TANS_LOG);
        bits_flush(&writer.bits);
    }
    return bits_end(&writer.bits);
}

/* Raw planes are split to where they stay. */
static enum ulp_status put_block(struct plain_encoder *plain, struct code_kind kind,
                                 const struct stream_header *header,
                                 const struct plain_block *block, struct block_entry *entry,
                                 struct buffer *payload) {
    const uint32_t coded_planes = header_coded_planes(header), n = block->value_count;
    size_t most = (size_t)n * (header->width + (CODED_BYTES_MAX - 1) * coded_planes) +
                  (size_t)block->event_count * GAP_BYTES_MAX + SURROUNDING_BYTES;
    enum ulp_status status = buffer_reserve(payload, most);
    uint8_t *planes[PLANES_MAX], *raw, *coded = plain->bytes;

    if (status)
        return status;
    raw = payload->data + payload->used;
    for (uint32_t p = 0; p < header->width; p++) {
        uint8_t **next = header->planes[p].coded ? &coded : &raw;

        planes[p] = *next;
        *next += n;
    }
    planes_split(kind, block->values, n, planes);
    entry->raw = n * (header->width - coded_planes);
    if (block_symbols(header, entry))
        entry->bytes = (uint32_t)(put_coded(plain, header, block, planes, raw) - raw);
    payload->used += (size_t)entry->raw + entry->bytes;
    return ULP_OK;
}

static void list_all(const struct code_block *blocks, size_t count, struct stream_header *header,
                     struct block_entry *entries) {
    header->map.flipped = 0;
    for (size_t b = 0; b < count; b++)
        entries[b].changes[0] = blocks[b].elements;
}

enum ulp_status plain_encode(struct plain_encoder *plain, struct code_kind kind,
                             const struct code_block *blocks, size_t count,
                             struct stream_header *header, struct block_entry *entries,
                             struct buffer *payload) {
    const struct scan_kernels *kernels = scan_kernels(kind.width);
    enum ulp_status status = make_room(plain, blocks, count, kind.width);
    struct plain_block block;

    if (status)
        return status;
    header->width = kind.width;
    header->map.count = 1;
    plain->largest_gap = 0;
    memset(plain->counts, 0, sizeof plain->counts);
    if (header->coder == CODE_DENSE)
        list_all(blocks, count, header, entries);
    else
        count_events(kernels, blocks, count, header, entries);
    for (size_t b = 0; b < count; b++) {
        block = take_block(plain, kernels, header, &entries[b], &blocks[b]);
        count_block(plain, kind, &block);
    }
    choose_gaps(plain, blocks, count, header, entries);
    choose_planes(plain, count, header, entries);
    for (size_t b = 0; b < count && !status; b++) {
        block = take_block(plain, kernels, header, &entries[b], &blocks[b]);
        status = put_block(plain, kind, header, &block, &entries[b], payload);
    }
    return status;
}
