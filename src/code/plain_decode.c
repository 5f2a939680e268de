// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/status.h"
#include "code/bits.h"
#include "code/plain.h"
#include "scan/scan.h"

/* So many symbols are taken from one load, which has GROUP_BITS bits to give. */
#define GROUP_SYMBOLS 4u
#define GROUP_BITS 56

static enum ulp_status damaged(const char *what) {
    return fail(ULP_E_CODE, "a block is damaged: %s", what);
}

void plain_decoder_build(const struct stream_header *header, struct plain_decoder *tables) {
    struct tans_shares shares;

    if (header->models[0].used) {
        tans_geometric(header->models[0].rate, header->models[0].top_gap, &shares);
        tans_decoder_build(&shares, GAP_SYMBOLS, &tables->gaps);
    }
    for (uint32_t p = 0; p < header->width; p++) {
        if (header->planes[p].coded)
            tans_decoder_build(&header->planes[p].shares, TANS_SYMBOLS_MAX, &tables->planes[p]);
    }
}

/* ---- the coded part ---- */

struct turn_reader {
    struct bit_reader bits;
    uint32_t states[STREAM_STATES]; /* less TANS_STATES */
};

static inline uint32_t get_symbol(struct turn_reader *reader, const struct tans_decoder *table,
                                  uint32_t turn) {
    uint32_t state = reader->states[turn];

    reader->states[turn] =
        table->state[state].next + (uint32_t)bits_get(&reader->bits, table->state[state].bits);
    return table->state[state].symbol;
}

/* GROUP_SYMBOLS of them, from turn `turn` on; at least GROUP_BITS bits must be left. */
static inline void get_group(struct turn_reader *reader, const struct tans_decoder *table,
                             uint32_t turn, uint8_t *to) {
    const int64_t from = reader->bits.left - GROUP_BITS;
    const uint64_t word = load_le64(reader->bits.begin + (from >> 3)) >> (from & 7);
    uint32_t left = GROUP_BITS;

    for (uint32_t i = 0; i < GROUP_SYMBOLS; i++) {
        uint32_t state = reader->states[turn + i], bits = table->state[state].bits;

        left -= bits;
        to[i] = table->state[state].symbol;
        reader->states[turn + i] =
            table->state[state].next + ((uint32_t)(word >> left) & ((1u << bits) - 1));
    }
    reader->bits.left = from + left;
}

static void get_plane(struct turn_reader *from, const struct tans_decoder *table, uint32_t count,
                      uint8_t *plane) {
    struct turn_reader reader = *from; /* a copy can stay in registers */
    uint32_t i = 0;

    for (; count - i >= STREAM_STATES && reader.bits.left >= 2 * GROUP_BITS; i += STREAM_STATES) {
        for (uint32_t turn = 0; turn < STREAM_STATES; turn += GROUP_SYMBOLS)
            get_group(&reader, table, turn, plane + i + turn);
    }
    for (; i < count; i++)
        plane[i] = (uint8_t)get_symbol(&reader, table, i % STREAM_STATES);
    *from = reader;
}

static bool get_events(struct turn_reader *reader, const struct tans_decoder *table, uint32_t count,
                       uint32_t elements, uint32_t *events) {
    uint64_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct symbol_form form = gap_form(get_symbol(reader, table, i % STREAM_STATES));

        next += (form.lead << form.extra) + bits_get(&reader->bits, form.extra);
        if (next >= elements)
            return false;
        events[i] = (uint32_t)next++;
    }
    return true;
}

/* What a block's payload becomes. Raw planes are left where they are. */
struct plain_parts {
    uint32_t *events;
    uint8_t *coded; /* room for the coded planes */
    const uint8_t *planes[PLANES_MAX];
};

static enum ulp_status read_coded(const struct plain_decoder *tables,
                                  const struct stream_header *header,
                                  const struct block_entry *entry, const uint8_t *bytes,
                                  uint32_t elements, struct plain_parts *parts) {
    struct turn_reader reader = {0};
    uint8_t *coded = parts->coded;

    if (!bits_open(&reader.bits, bytes, entry->bytes))
        return damaged("its payload has no end");
    for (uint32_t i = 0; i < STREAM_STATES; i++)
        reader.states[i] = (uint32_t)bits_get(&reader.bits, TANS_LOG);
    if (!get_events(&reader, &tables->gaps, entry->events[0], elements, parts->events))
        return damaged("a gap leads out of it");
    for (uint32_t p = 0; p < header->width; p++) {
        if (!header->planes[p].coded)
            continue;
        get_plane(&reader, &tables->planes[p], entry->changes[0], coded);
        parts->planes[p] = coded;
        coded += entry->changes[0];
    }
    for (uint32_t i = 0; i < STREAM_STATES; i++) {
        if (reader.states[i])
            return damaged("its payload does not end where it began");
    }
    return reader.bits.left ? damaged("its payload is too long or too short") : ULP_OK;
}

static enum ulp_status read_payload(const struct plain_decoder *tables,
                                    const struct stream_header *header,
                                    const struct block_entry *entry, const uint8_t *payload,
                                    uint32_t elements, struct plain_parts *parts) {
    for (uint32_t p = 0; p < header->width; p++) {
        parts->planes[p] = payload;
        if (!header->planes[p].coded)
            payload += entry->changes[0];
    }
    return entry->bytes ? read_coded(tables, header, entry, payload, elements, parts) : ULP_OK;
}

/* ---- against the old elements ---- */

/* Working memory of one block, in one piece. */
struct plain_scratch {
    uint32_t *events;  /* unless they are the changes */
    uint8_t *elements; /* as many as there are changes */
    uint8_t *coded;
};

static enum ulp_status scratch_make(const struct stream_header *header,
                                    const struct block_entry *entry,
                                    struct plain_scratch *scratch) {
    size_t events = (size_t)entry->events[0] * sizeof *scratch->events;
    size_t elements = (size_t)entry->changes[0] * header->width;
    size_t coded = (size_t)entry->changes[0] * header_coded_planes(header);
    enum ulp_status status = mem_resize(&scratch->events, events + elements + coded, 1);

    if (!status) {
        scratch->elements = (uint8_t *)scratch->events + events;
        scratch->coded = scratch->elements + elements;
    }
    return status;
}

/* All elements were listed; those that differ are the changes. */
static uint32_t find_changes(const struct scan_kernels *kernels, const struct code_block *old,
                             const uint8_t *elements, uint32_t *positions, void *values) {
    size_t found = kernels->collect(old->old, elements, old->elements, positions);

    kernels->gather(elements, positions, found, values);
    return (uint32_t)found;
}

enum ulp_status plain_decode(const struct plain_decoder *tables, const struct stream_header *header,
                             struct code_kind kind, const struct block_entry *entry,
                             const uint8_t *payload, const struct code_block *old,
                             uint32_t *ret_positions, void *ret_values, uint32_t *ret_count) {
    const struct scan_kernels *kernels = scan_kernels(kind.width);
    const bool dense = header->coder == CODE_DENSE, flipped = !header->map.flipped;
    const uint32_t count = entry->changes[0];
    struct plain_scratch scratch = {0};
    struct plain_parts parts = {0};
    enum ulp_status status = scratch_make(header, entry, &scratch);

    parts.coded = scratch.coded;
    parts.events = dense || flipped ? scratch.events : ret_positions;
    if (!status)
        status = read_payload(tables, header, entry, payload, old->elements, &parts);
    if (!status && dense) {
        planes_merge(kind, parts.planes, count, scratch.elements);
        *ret_count = find_changes(kernels, old, scratch.elements, ret_positions, ret_values);
    } else if (!status) {
        if (flipped)
            places_between(parts.events, entry->events[0], old->elements, ret_positions);
        planes_merge(kind, parts.planes, count, ret_values);
        kernels->gather(old->old, ret_positions, count, scratch.elements);
        if (kernels->count(scratch.elements, ret_values, count) != count)
            status = damaged("a change that changes nothing; is this the right base?");
        else
            *ret_count = count;
    }
    mem_free(scratch.events);
    return status;
}

enum ulp_status plain_check(const struct plain_decoder *tables, const struct stream_header *header,
                            const struct block_entry *entry, const uint8_t *payload,
                            uint32_t elements) {
    struct plain_scratch scratch = {0};
    struct plain_parts parts = {0};
    enum ulp_status status = scratch_make(header, entry, &scratch);

    parts.coded = scratch.coded;
    parts.events = scratch.events;
    if (!status)
        status = read_payload(tables, header, entry, payload, elements, &parts);
    mem_free(scratch.events);
    return status;
}
