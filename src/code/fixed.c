// SPDX-License-Identifier: Apache-2.0
#include "code/fixed.h"

#define ONE (UINT64_C(1) << 32)

/* The product of two numbers in units of 2^-32, both at most 2^32. */
static uint64_t multiply(uint64_t a, uint64_t b) {
    if (a == ONE)
        return b;
    return b == ONE ? a : a * b >> 32;
}

/* Linear between the values of a table: off by less than 2^-18. */
uint32_t fixed_log2(uint64_t x) {
    static const uint32_t table[257] = {
#include "code/log2_table.inc"
    };
    uint32_t whole = 63 - (uint32_t)__builtin_clzll(x);
    uint64_t fraction = x << (63 - whole) << 1 >> 40; /* 24 bits behind the leading one */
    uint64_t low = table[fraction >> 16], high = table[(fraction >> 16) + 1];
    uint64_t between = low + ((high - low) * (fraction & 0xffff) >> 16);

    return whole << COST_SHIFT | (uint32_t)(between >> (24 - COST_SHIFT));
}

uint64_t fixed_cost(uint64_t count, uint64_t total) {
    return count && count < total ? count * (fixed_log2(total) - fixed_log2(count)) : 0;
}

uint64_t fixed_exp2_negative(uint32_t x) {
    /* 2^(-2^i / 2048) for i = 0 .. 10, times 2^32, rounded down */
    static const uint32_t steps[] = {4293513906, 4292061009, 4289156690, 4283353945,
                                     4271771996, 4248701964, 4202935003, 4112874773,
                                     3938502375, 3611622602, 3037000499};
    uint64_t power = ONE >> (x >> 11);

    if (x >> 11 > 32)
        return 0;
    for (int i = 0; i < 11; i++) {
        if (x >> i & 1)
            power = multiply(power, steps[i]);
    }
    return power;
}

uint64_t fixed_power(uint64_t q, uint64_t n) {
    uint64_t power = ONE;

    for (; n; n >>= 1) {
        if (n & 1)
            power = multiply(power, q);
        q = multiply(q, q);
    }
    return power;
}
