// SPDX-License-Identifier: Apache-2.0
/* A payload is written from its last symbol to its first. */
#include "code/bits.h"
#include "code/payload.h"

struct symbol_writer {
    struct bit_writer bits;
    uint32_t states[STREAM_STATES];
};

static void put_extra(struct bit_writer *bits, uint64_t rest, uint32_t extra) {
    if (extra > 32) {
        bits_put(bits, rest & UINT32_MAX, 32);
        bits_flush(bits);
        rest >>= 32;
        extra -= 32;
    }
    bits_put(bits, rest, extra);
}

static void put_symbol(struct symbol_writer *writer, const struct tans_encoder *table,
                       uint32_t symbol, uint32_t turn) {
    uint32_t *state = &writer->states[turn % STREAM_STATES];
    uint32_t bits = (*state + table->symbol[symbol].bits) >> 16;

    bits_put(&writer->bits, *state & ((1u << bits) - 1), bits);
    bits_flush(&writer->bits);
    *state = table->next[(int32_t)(*state >> bits) + table->symbol[symbol].offset];
}

static void put_values(struct symbol_writer *writer, const struct tans_encoder *table,
                       const uint64_t *values, uint32_t count) {
    for (uint32_t i = count; i-- > 0;) {
        uint32_t symbol = value_symbol(values[i]), extra = value_form(symbol).extra;

        put_extra(&writer->bits, values[i] & ((UINT64_C(1) << extra) - 1), extra);
        put_symbol(writer, table, symbol, i);
    }
}

static void put_gaps(struct symbol_writer *writer, const struct tans_encoder *table,
                     const uint32_t *gaps, uint32_t count) {
    for (uint32_t i = count; i-- > 0;) {
        uint32_t extra = gap_extra(gaps[i]);

        put_extra(&writer->bits, gaps[i] & ((1u << extra) - 1), extra);
        put_symbol(writer, table, gap_symbol(gaps[i]), i);
    }
}

/* All states start from the same place; the decoder ends there, which it checks. */
uint8_t *payload_write(const struct payload_encoder *tables, uint32_t classes,
                       const struct payload_lists *lists, uint8_t *to) {
    struct symbol_writer writer = {.bits = {.at = to}};

    for (uint32_t i = 0; i < STREAM_STATES; i++)
        writer.states[i] = TANS_STATES;
    for (uint32_t k = classes; k-- > 0;) {
        put_values(&writer, &tables->values[k], lists->values[k], lists->value_counts[k]);
        put_gaps(&writer, &tables->gaps[k], lists->gaps[k], lists->gap_counts[k]);
    }
    for (uint32_t i = STREAM_STATES; i-- > 0;) {
        bits_put(&writer.bits, writer.states[i] - TANS_STATES, TANS_LOG);
        bits_flush(&writer.bits);
    }
    return bits_end(&writer.bits);
}
