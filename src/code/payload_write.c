// SPDX-License-Identifier: Apache-2.0
/*
 * A payload is written from its last symbol to its first. The states take turns, so eight symbols
 * do not wait for each other; they are written in rounds of eight, with all states in registers.
 */
#include "base/cpu.h"
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

static struct coded code_wide_value(uint64_t value) {
    uint32_t symbol = value_symbol(value), extra = value_form(symbol).extra;

    return (struct coded){symbol, extra, value & ((UINT64_C(1) << extra) - 1)};
}

/* The same for 32 bits, without a branch: it could not be foreseen. */
INLINE struct coded code_value(uint32_t value) {
    bool direct = value < VALUE_DIRECT;
    uint32_t extra = 30 - (uint32_t)__builtin_clz(value | VALUE_DIRECT);
    uint32_t symbol = VALUE_DIRECT - 8 + 2 * extra + (value >> extra);

    extra = direct ? 0 : extra;
    return (struct coded){direct ? value : symbol, extra, value & ((1u << extra) - 1)};
}

INLINE struct coded code_number(uint32_t number, bool gap) {
    return gap ? code_gap(number) : code_value(number);
}

/* The extra bits and those of the state in one put, which must be at most BITS_MAX with what waits.
 * */
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
        put_wide(writer, table, code_wide_value((uint64_t)upper[i] << 32 | values[i]), i);
}

/* The last number of a list, which leaves one fewer. */
static uint32_t put_last(struct symbol_writer *writer, const struct tans_encoder *table,
                         const uint32_t *numbers, uint32_t count, bool gaps) {
    put(&writer->bits, table, code_number(numbers[count - 1], gaps),
        &writer->states[(count - 1) % STREAM_STATES]);
    bits_flush(&writer->bits);
    return count - 1;
}

/* With `gaps` two symbols fit between flushes, else one. Written out, because compilers do not keep
 * an array in registers when they are to unroll the loop over it. */
INLINE void put_numbers(struct symbol_writer *writer, const struct tans_encoder *table,
                        const uint32_t *numbers, uint32_t count, bool gaps) {
    struct bit_writer bits;
    uint32_t states[STREAM_STATES];

    while (count % STREAM_STATES)
        count = put_last(writer, table, numbers, count, gaps);
    bits = writer->bits;
    memcpy(states, writer->states, sizeof states);
    for (; count; count -= STREAM_STATES) {
        const uint32_t *from = numbers + count - STREAM_STATES;

        put(&bits, table, code_number(from[7], gaps), &states[7]);
        if (!gaps)
            bits_flush(&bits);
        put(&bits, table, code_number(from[6], gaps), &states[6]);
        bits_flush(&bits);
        put(&bits, table, code_number(from[5], gaps), &states[5]);
        if (!gaps)
            bits_flush(&bits);
        put(&bits, table, code_number(from[4], gaps), &states[4]);
        bits_flush(&bits);
        put(&bits, table, code_number(from[3], gaps), &states[3]);
        if (!gaps)
            bits_flush(&bits);
        put(&bits, table, code_number(from[2], gaps), &states[2]);
        bits_flush(&bits);
        put(&bits, table, code_number(from[1], gaps), &states[1]);
        if (!gaps)
            bits_flush(&bits);
        put(&bits, table, code_number(from[0], gaps), &states[0]);
        bits_flush(&bits);
    }
    memcpy(writer->states, states, sizeof states);
    writer->bits = bits;
}

INLINE void put_classes(struct symbol_writer *writer, const struct payload_encoder *tables,
                        uint32_t classes, const struct payload_lists *lists) {
    for (uint32_t k = classes; k-- > 0;) {
        if (lists->upper[k])
            put_wide_values(writer, &tables->values[k], lists->values[k], lists->upper[k],
                            lists->value_counts[k]);
        else
            put_numbers(writer, &tables->values[k], lists->values[k], lists->value_counts[k],
                        false);
        put_numbers(writer, &tables->gaps[k], lists->gaps[k], lists->gap_counts[k], true);
    }
}

static void put_all(struct symbol_writer *writer, const struct payload_encoder *tables,
                    uint32_t classes, const struct payload_lists *lists) {
    put_classes(writer, tables, classes, lists);
}

#if defined(__x86_64__)
/* The same with shifts that leave the flags and the count's register alone. */
__attribute__((target("bmi,bmi2"))) static void put_all_bmi2(struct symbol_writer *writer,
                                                             const struct payload_encoder *tables,
                                                             uint32_t classes,
                                                             const struct payload_lists *lists) {
    put_classes(writer, tables, classes, lists);
}
#endif

/* All states start from the same place; the decoder ends there, which it checks. */
uint8_t *payload_write(const struct payload_encoder *tables, uint32_t classes,
                       const struct payload_lists *lists, uint8_t *to) {
    struct symbol_writer writer = {.bits = {.at = to}};

    for (uint32_t i = 0; i < STREAM_STATES; i++)
        writer.states[i] = TANS_STATES;
#if defined(__x86_64__)
    if ((cpu_features() & (CPU_BMI | CPU_BMI2)) == (CPU_BMI | CPU_BMI2))
        put_all_bmi2(&writer, tables, classes, lists);
    else
#endif
        put_all(&writer, tables, classes, lists);
    for (uint32_t i = STREAM_STATES; i-- > 0;) {
        bits_put(&writer.bits, writer.states[i] - TANS_STATES, TANS_LOG);
        bits_flush(&writer.bits);
    }
    return bits_end(&writer.bits);
}
