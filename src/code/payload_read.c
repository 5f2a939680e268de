// SPDX-License-Identifier: Apache-2.0
/*
 * The states take turns, so eight symbols do not wait for each other: as long as there are bits for
 * eight, they are read in rounds of eight without asking, with all states in registers.
 */
#include "base/cpu.h"
#include "base/status.h"
#include "code/payload.h"

#define INLINE static inline __attribute__((always_inline))

static enum ulp_status damaged(const char *what) {
    return fail(ULP_E_CODE, "a block is damaged: %s", what);
}

struct symbol_reader {
    struct bit_reader bits;
    uint32_t states[STREAM_STATES]; /* less TANS_STATES */
};

/* ---- with all care ---- */

static uint64_t get_extra(struct bit_reader *bits, uint32_t extra) {
    uint64_t high = 0;

    if (extra > 32) {
        high = bits_get(bits, extra - 32) << 32;
        extra = 32;
    }
    return high | bits_get(bits, extra);
}

static uint64_t get_number(struct symbol_reader *reader, const struct tans_decoder *table,
                           uint32_t turn, bool gap) {
    uint32_t *state = &reader->states[turn % STREAM_STATES];
    uint32_t symbol = table->state[*state].symbol;
    struct symbol_form form = gap ? gap_form(symbol) : value_form(symbol);

    *state =
        table->state[*state].next + (uint32_t)bits_get(&reader->bits, table->state[*state].bits);
    return (form.lead << form.extra) + get_extra(&reader->bits, form.extra);
}

/* ---- eight at a time ---- */

/* The smallest number of a symbol, and its extra bits. */
struct short_form {
    uint32_t least, extra;
};

struct short_forms {
    struct short_form gap[GAP_SYMBOLS], value[VALUE_SYMBOLS];
};

static void make_forms(struct short_forms *forms) {
    for (uint32_t s = 0; s < GAP_SYMBOLS; s++) {
        struct symbol_form form = gap_form(s);

        forms->gap[s] = (struct short_form){(uint32_t)(form.lead << form.extra), form.extra};
    }
    for (uint32_t s = 0; s < VALUE_SYMBOLS; s++) {
        struct symbol_form form = value_form(s);

        forms->value[s] = (struct short_form){(uint32_t)(form.lead << form.extra), form.extra};
    }
}

/* Whether there are eight times `most` bits, and a whole word can be loaded wherever they are. */
INLINE bool round_fits(const struct bit_reader *bits, uint32_t most) {
    return bits->left >= (int64_t)(STREAM_STATES * most) &&
           ((size_t)bits->left >> 3) + 8 <= bits->bytes;
}

/* The bits for the state come first, so they are the upper ones. */
INLINE uint32_t get(struct bit_reader *bits, const struct tans_decoder *table,
                    const struct short_form *forms, uint32_t *state) {
    uint32_t next = table->state[*state].next, count = table->state[*state].bits;
    struct short_form form = forms[table->state[*state].symbol];
    uint64_t word;

    bits->left -= count + form.extra;
    word = load_le64(bits->begin + (bits->left >> 3)) >> (bits->left & 7);
    *state = next + ((uint32_t)(word >> form.extra) & ((1u << count) - 1));
    return form.least + ((uint32_t)word & (uint32_t)((UINT64_C(1) << form.extra) - 1));
}

/* A number, or the rank to which a gap leads from `rank`; returns the rank behind it. */
INLINE uint32_t get_one(struct bit_reader *bits, const struct tans_decoder *table,
                        const struct short_form *forms, uint32_t *state, uint32_t rank, bool ranks,
                        uint32_t *to) {
    uint32_t number = get(bits, table, forms, state);

    *to = rank + number;
    return ranks ? rank + number + 1 : 0;
}

/* Whole rounds, as many as can be; returns how many numbers. Written out, because compilers do not
 * keep an array in registers when they are to unroll the loop over it. */
INLINE uint32_t get_rounds(struct symbol_reader *reader, const struct tans_decoder *table,
                           const struct short_form *forms, uint32_t most, uint32_t count,
                           bool ranks, uint32_t *numbers) {
    struct bit_reader bits = reader->bits;
    uint32_t states[STREAM_STATES], i = 0, rank = 0;

    memcpy(states, reader->states, sizeof states);
    for (; i + STREAM_STATES <= count && rank < CODE_BLOCK_MAX && round_fits(&bits, most);
         i += STREAM_STATES) {
        rank = get_one(&bits, table, forms, &states[0], rank, ranks, &numbers[i]);
        rank = get_one(&bits, table, forms, &states[1], rank, ranks, &numbers[i + 1]);
        rank = get_one(&bits, table, forms, &states[2], rank, ranks, &numbers[i + 2]);
        rank = get_one(&bits, table, forms, &states[3], rank, ranks, &numbers[i + 3]);
        rank = get_one(&bits, table, forms, &states[4], rank, ranks, &numbers[i + 4]);
        rank = get_one(&bits, table, forms, &states[5], rank, ranks, &numbers[i + 5]);
        rank = get_one(&bits, table, forms, &states[6], rank, ranks, &numbers[i + 6]);
        rank = get_one(&bits, table, forms, &states[7], rank, ranks, &numbers[i + 7]);
    }
    memcpy(reader->states, states, sizeof states);
    reader->bits = bits;
    return i;
}

/* ---- a block ---- */

INLINE void get_values(struct symbol_reader *reader, const struct tans_decoder *table,
                       const struct short_form *forms, uint32_t most, uint32_t count,
                       uint32_t *values, uint32_t *upper) {
    uint32_t i = 0;

    if (!upper)
        i = get_rounds(reader, table, forms, most, count, false, values);
    for (; i < count; i++) {
        uint64_t value = get_number(reader, table, i, false);

        values[i] = (uint32_t)value;
        if (upper)
            upper[i] = (uint32_t)(value >> 32);
    }
}

/* Ranks rise by a gap and one; whether they stay inside the class only the weights can tell, but
 * they must not wrap around. */
INLINE bool get_ranks(struct symbol_reader *reader, const struct tans_decoder *table,
                      const struct short_form *forms, uint32_t most, uint32_t count,
                      uint32_t *ranks) {
    uint32_t i = get_rounds(reader, table, forms, most, count, true, ranks);
    uint64_t rank = i ? ranks[i - 1] + UINT64_C(1) : 0;

    for (; i < count; i++) {
        rank += get_number(reader, table, i, true) + 1;
        ranks[i] = (uint32_t)rank - 1;
        if (rank > CODE_BLOCK_MAX)
            return false;
    }
    return rank <= CODE_BLOCK_MAX;
}

INLINE enum ulp_status get_classes(struct symbol_reader *reader,
                                   const struct payload_decoder *tables, uint32_t classes,
                                   const struct block_entry *entry, struct payload_target to,
                                   struct event_feed *feeds) {
    struct short_forms forms;

    make_forms(&forms);
    for (uint32_t k = 0; k < classes; k++) {
        const uint32_t events = entry->events[k], changes = entry->changes[k];

        feeds[k] = (struct event_feed){to.ranks, to.values, to.upper, events, changes};
        if (!get_ranks(reader, &tables->gaps[k], forms.gap, tables->gap_bits[k], events, to.ranks))
            return damaged("a gap leads out of it");
        get_values(reader, &tables->values[k], forms.value, tables->value_bits[k], changes,
                   to.values, to.upper);
        to.ranks += events;
        *to.ranks++ = UINT32_MAX;
        to.values += changes;
        if (to.upper)
            to.upper += changes;
    }
    return ULP_OK;
}

static enum ulp_status get_all(struct symbol_reader *reader, const struct payload_decoder *tables,
                               uint32_t classes, const struct block_entry *entry,
                               struct payload_target to, struct event_feed *feeds) {
    return get_classes(reader, tables, classes, entry, to, feeds);
}

#if defined(__x86_64__)
/* The same with shifts that leave the flags and the count's register alone. */
__attribute__((target("bmi,bmi2"))) static enum ulp_status
get_all_bmi2(struct symbol_reader *reader, const struct payload_decoder *tables, uint32_t classes,
             const struct block_entry *entry, struct payload_target to, struct event_feed *feeds) {
    return get_classes(reader, tables, classes, entry, to, feeds);
}
#endif

static enum ulp_status check_end(const struct symbol_reader *reader) {
    for (uint32_t i = 0; i < STREAM_STATES; i++) {
        if (reader->states[i])
            return damaged("its payload does not end where it began");
    }
    return reader->bits.left ? damaged("its payload is too long or too short") : ULP_OK;
}

enum ulp_status payload_read(const struct payload_decoder *tables, uint32_t classes,
                             const struct block_entry *entry, const uint8_t *payload,
                             struct payload_target target, struct event_feed *feeds) {
    struct symbol_reader reader = {0};
    enum ulp_status status;

    if (!entry->bytes) {
        *target.ranks = UINT32_MAX;
        for (uint32_t k = 0; k < classes; k++)
            feeds[k] = (struct event_feed){target.ranks, target.values, target.upper, 0, 0};
        return ULP_OK;
    }
    if (!bits_open(&reader.bits, payload, entry->bytes))
        return damaged("its payload has no end");
    for (uint32_t i = 0; i < STREAM_STATES; i++)
        reader.states[i] = (uint32_t)bits_get(&reader.bits, TANS_LOG);
#if defined(__x86_64__)
    if ((cpu_features() & (CPU_BMI | CPU_BMI2)) == (CPU_BMI | CPU_BMI2))
        status = get_all_bmi2(&reader, tables, classes, entry, target, feeds);
    else
#endif
        status = get_all(&reader, tables, classes, entry, target, feeds);
    return status ? status : check_end(&reader);
}
