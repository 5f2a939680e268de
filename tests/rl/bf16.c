// SPDX-License-Identifier: Apache-2.0
/* Rounding to BF16 against its definition: the nearer of the two neighbours, the even one of a tie. */
#include "tests/test.h"

#include "examples/rl/bf16.h"

#include <math.h>

static float from_bits(uint32_t bits) {
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The neighbour above the largest number stands for infinity, and is as far away as it would be. */
static double worth(uint32_t high) {
    const uint32_t largest = 0x7f7f;

    if ((high & 0x7fff) > largest)
        return (high & 0x8000 ? -1 : 1) * 0x1p128;
    return (double)from_bits(high << 16);
}

static uint16_t by_definition(uint32_t bits) {
    const uint32_t down = bits >> 16, up = down + 1;
    const double value = (double)from_bits(bits);
    const double below = fabs(value - worth(down)), above = fabs(worth(up) - value);

    if (below != above)
        return (uint16_t)(below < above ? down : up);
    return (uint16_t)(down % 2 == 0 ? down : up);
}

static void test_every_neighbourhood(void **state) {
    static const uint32_t tails[] = {0, 1, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};

    (void)state;
    for (uint32_t high = 0; high < 65536; high++) {
        if ((high & 0x7f80) == 0x7f80)
            continue; /* infinities and what is no number */
        for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
            const uint32_t bits = high << 16 | tails[i];

            if (bf16_round(from_bits(bits)) != by_definition(bits))
                fail_msg("%08x became %04x, not %04x", bits, bf16_round(from_bits(bits)),
                         by_definition(bits));
        }
    }
}

static void test_what_is_no_number_stays_none(void **state) {
    (void)state;
    assert_int_equal(bf16_round((float)INFINITY), 0x7f80);
    assert_int_equal(bf16_round(-(float)INFINITY), 0xff80);
    for (uint32_t tail = 1; tail < 0x800000; tail = tail * 2 + 1) {
        assert_true(isnan(bf16_expand(bf16_round(from_bits(0x7f800000 | tail)))));
        assert_true(isnan(bf16_expand(bf16_round(from_bits(0xff800000 | tail)))));
    }
}

static void test_there_and_back(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++)
        if (!isnan(bf16_expand((uint16_t)bits)))
            assert_int_equal(bf16_round(bf16_expand((uint16_t)bits)), bits);
}

TEST_MAIN(test_every_neighbourhood, test_what_is_no_number_stays_none, test_there_and_back)
