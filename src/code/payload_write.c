// SPDX-License-Identifier: Apache-2.0
/*
 * A payload is written from its last symbol to its first. The states take turns, so eight symbols do
 * not wait for each other; they are written in rounds of eight, with all states in registers.
 */
#include "code/bits.h"
#include "code/payload.h"

#define INLINE static inline __attribute__((always_inline))

struct symbol_writer {
    struct bit_writer bits;
    uint32_t states[STREAM_STATES];
};

/* A number as it is coded. */
struct coded {
    uint32_t symbol, extra;
    uint64_t rest; /* `extra` bits */
};

INLINE struct coded code_gap(uint32_t gap) {
    uint32_t extra = gap_extra(gap);

    return (struct coded){4 * extra + (gap >> extra), extra, gap & ((1u << extra) - 1)};
}

INLINE struct coded code_value(uint64_t value) {
    uint32_t symbol = value_symbol(value), extra = value_form(symbol).extra;

    return (struct coded){symbol, extra, value & ((UINT64_C(1) << extra) - 1)};
}

/* The extra bits and those of the state in one put, which must be at most BITS_MAX with what waits. */
INLINE void put(struct bit_writer *bits, const struct tans_encoder *table, struct coded coded,
                uint32_t *state) {
    uint32_t count = (*state + table->symbol[coded.symbol].bits) >> 16;
    uint64_t low = *state & ((1u << count) - 1);

    bits_put(bits, coded.rest | low << coded.extra, coded.extra + count);
    *state = table->next[(int32_t)(*state >> count) + table->symbol[coded.symbol].offset];
}

/* More than 32 extra bits are put in two parts. */
static void put_wide(struct symbol_writer *writer, const struct tans_encoder *table,
                     struct coded coded, uint32_t turn) {
    if (coded.extra > 32) {
        bits_put(&writer->bits, coded.rest & UINT32_MAX, 32);
        bits_flush(&writer->bits);
        coded.rest >>= 32;
        coded.extra -= 32;
    }
    put(&writer->bits, table, coded, &writer->states[turn % STREAM_STATES]);
    bits_flush(&writer->bits);
}

static void put_wide_values(struct symbol_writer *writer, const struct tans_encoder *table,
                            const uint32_t *values, const uint32_t *upper, uint32_t count) {
    for (uint32_t i = count; i-- > 0;)
        put_wide(writer, table, code_value((uint64_t)upper[i] << 32 | values[i]), i);
}

/* `pairs`: two symbols fit between flushes. */
INLINE void put_numbers(struct symbol_writer *writer, const struct tans_encoder *table,
                        const uint32_t *numbers, uint32_t count, bool gaps, bool pairs) {
    struct bit_writer bits = writer->bits;
    uint32_t states[STREAM_STATES], i = count;

    for (uint32_t s = 0; s < STREAM_STATES; s++)
        states[s] = writer->states[s];
    while (i % STREAM_STATES) {
        i--;
        put(&bits, table, gaps ? code_gap(numbers[i]) : code_value(numbers[i]),
            &states[i % STREAM_STATES]);
        bits_flush(&bits);
    }
    while (i) {
        i -= STREAM_STATES;
#pragma GCC unroll 8
        for (uint32_t s = STREAM_STATES; s-- > 0;) {
            uint32_t number = numbers[i + s];

            put(&bits, table, gaps ? code_gap(number) : code_value(number), &states[s]);
            if (!pairs || !(s & 1))
                bits_flush(&bits);
        }
    }
    for (uint32_t s = 0; s < STREAM_STATES; s++)
        writer->states[s] = states[s];
    writer->bits = bits;
}

static void put_values(struct symbol_writer *writer, const struct tans_encoder *table,
                       const uint32_t *values, uint32_t count) {
    put_numbers(writer, table, values, count, false, false);
}

static void put_gaps(struct symbol_writer *writer, const struct tans_encoder *table,
                     const uint32_t *gaps, uint32_t count) {
    put_numbers(writer, table, gaps, count, true, true);
}

/* All states start from the same place; the decoder ends there, which it checks. */
uint8_t *payload_write(const struct payload_encoder *tables, uint32_t classes,
                       const struct payload_lists *lists, uint8_t *to) {
    struct symbol_writer writer = {.bits = {.at = to}};

    for (uint32_t i = 0; i < STREAM_STATES; i++)
        writer.states[i] = TANS_STATES;
    for (uint32_t k = classes; k-- > 0;) {
        if (lists->upper[k])
            put_wide_values(&writer, &tables->values[k], lists->values[k], lists->upper[k],
                            lists->value_counts[k]);
        else
            put_values(&writer, &tables->values[k], lists->values[k], lists->value_counts[k]);
        put_gaps(&writer, &tables->gaps[k], lists->gaps[k], lists->gap_counts[k]);
    }
    for (uint32_t i = STREAM_STATES; i-- > 0;) {
        bits_put(&writer.bits, writer.states[i] - TANS_STATES, TANS_LOG);
        bits_flush(&writer.bits);
    }
    return bits_end(&writer.bits);
}
