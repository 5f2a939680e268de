// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "code/payload.h"

static enum ulp_status damaged(const char *what) {
    return fail(ULP_E_CODE, "a block is damaged: %s", what);
}

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

enum ulp_status payload_read(const struct payload_decoder *tables, uint32_t classes,
                             const struct block_entry *entry, const uint8_t *payload,
                             uint32_t *ranks, uint64_t *values, struct event_feed *feeds) {
    struct symbol_reader reader = {0};

    if (!entry->bytes)
        return ULP_OK;
    if (!bits_open(&reader.bits, payload, entry->bytes))
        return damaged("its payload has no end");
    for (uint32_t i = 0; i < STREAM_STATES; i++)
        reader.states[i] = (uint32_t)bits_get(&reader.bits, TANS_LOG);
    for (uint32_t k = 0; k < classes; k++) {
        feeds[k] = (struct event_feed){ranks, values, entry->events[k], entry->changes[k]};
        if (!get_ranks(&reader, &tables->gaps[k], entry->events[k], ranks))
            return damaged("a gap leads out of it");
        get_values(&reader, &tables->values[k], entry->changes[k], values);
        ranks += entry->events[k];
        values += entry->changes[k];
    }
    for (uint32_t i = 0; i < STREAM_STATES; i++) {
        if (reader.states[i])
            return damaged("its payload does not end where it began");
    }
    return reader.bits.left ? damaged("its payload is too long or too short") : ULP_OK;
}
