// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers as symbols with extra bits: small ones directly, larger ones by octave. A number is
 * (lead << extra) + rest, where the symbol tells lead and extra, and rest is written as it is.
 */
#ifndef CODE_SYMBOLS_H
#define CODE_SYMBOLS_H

#include <stdint.h>

struct symbol_form {
    uint64_t lead; /* times 2^extra: the smallest number of this symbol */
    uint32_t extra;
};

/* ---- gaps: eight direct values, then four symbols per octave; up to 2^20 - 1 ---- */

#define GAP_SYMBOLS 76u

static inline uint32_t gap_extra(uint32_t gap) {
    return 29 - (uint32_t)__builtin_clz(gap | 4);
}

static inline uint32_t gap_symbol(uint32_t gap) {
    return 4 * gap_extra(gap) + (gap >> gap_extra(gap));
}

static inline struct symbol_form gap_form(uint32_t symbol) {
    if (symbol < 8)
        return (struct symbol_form){symbol, 0};
    return (struct symbol_form){4 + (symbol & 3), (symbol >> 2) - 1};
}

/* ---- values: sixteen direct values, then two symbols per octave; up to 2^64 - 1 ---- */

#define VALUE_DIRECT 16u
#define VALUE_SYMBOLS 136u

static inline uint32_t value_symbol(uint64_t value) {
    uint32_t log;

    if (value < VALUE_DIRECT)
        return (uint32_t)value;
    log = 63 - (uint32_t)__builtin_clzll(value);
    return VALUE_DIRECT + 2 * (log - 4) + (uint32_t)(value >> (log - 1) & 1);
}

static inline struct symbol_form value_form(uint32_t symbol) {
    if (symbol < VALUE_DIRECT)
        return (struct symbol_form){symbol, 0};
    return (struct symbol_form){2 + (symbol & 1), (symbol - VALUE_DIRECT) / 2 + 3};
}

#endif
