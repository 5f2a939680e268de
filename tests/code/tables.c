// SPDX-License-Identifier: Apache-2.0
/* The arithmetic under the codec: logarithms, shares of states, tables, symbols. */
#include "code/bits.h"
#include "code/fixed.h"
#include "code/tans.h"
#include "tests/test.h"

#include <math.h>

#define ONE (UINT64_C(1) << 32)

/* ---- logarithms and powers ---- */

static void check_log2(uint64_t x) {
    long double exact = log2l((long double)x) * (1 << COST_SHIFT);
    long double off = (long double)fixed_log2(x) - exact;

    if (off > 2 || off < -2)
        fail_msg("log2(%llu): %u, exactly %Lf", (unsigned long long)x, fixed_log2(x), exact);
}

static void test_log2(void **state) {
    (void)state;
    assert_int_equal(fixed_log2(1), 0);
    assert_int_equal(fixed_log2(2), 1 << COST_SHIFT);
    assert_int_equal(fixed_log2(3), 6492); /* 6492.00 */
    for (unsigned k = 0; k < 64; k++)
        assert_int_equal(fixed_log2(UINT64_C(1) << k), k << COST_SHIFT);
    for (uint64_t x = 1; x < 100000; x++)
        check_log2(x);
    for (unsigned i = 0; i < 100000; i++)
        check_log2(test_random() >> i % 64 | 1);
    check_log2(UINT64_MAX);
}

static void test_log2_rises(void **state) {
    (void)state;
    for (uint64_t x = 1; x < 1u << 20; x++)
        assert_true(fixed_log2(x) <= fixed_log2(x + 1));
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t x = test_random() >> i % 63;

        assert_true(!x || fixed_log2(x) <= fixed_log2(x + !!~x));
    }
}

static void test_cost(void **state) {
    (void)state;
    assert_int_equal(fixed_cost(0, 10), 0);
    assert_int_equal(fixed_cost(10, 10), 0);
    assert_int_equal(fixed_cost(5, 10), 5 << COST_SHIFT);
    assert_int_equal(fixed_cost(1, 1024), 10 << COST_SHIFT);
}

/* Falls down to 2^-19, less than one event in a block; below, rounding lets it rise by a little. */
static void test_exp2(void **state) {
    (void)state;
    assert_int_equal(fixed_exp2_negative(0), ONE);
    for (uint32_t x = 0; x <= 65535; x++) {
        long double exact = exp2l(-(long double)x / 2048) * (long double)ONE;
        long double off = (long double)fixed_exp2_negative(x) - exact;

        assert_true(off < 1 && off > -24);
        assert_true(!x ||
                    fixed_exp2_negative(x) <= fixed_exp2_negative(x - 1) + (x < 19 << 11 ? 0 : 7));
    }
    for (uint32_t k = 0; k < 32; k++)
        assert_int_equal(fixed_exp2_negative(k << 11), ONE >> k);
}

static void test_power(void **state) {
    (void)state;
    assert_int_equal(fixed_power(0, 0), ONE);
    assert_int_equal(fixed_power(0, 5), 0);
    assert_int_equal(fixed_power(ONE, UINT64_C(1) << 40), ONE);
    assert_int_equal(fixed_power(ONE / 2, 3), ONE / 8);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t q = test_random() >> 32, n = test_random() >> (44 + i % 20);
        long double exact = powl((long double)q / (long double)ONE, (long double)n);
        long double off = (long double)fixed_power(q, n) / (long double)ONE - exact;

        assert_true(fixed_power(q, n) <= ONE);
        assert_true(off < 1e-9L && off > -0.01L);
        assert_true(fixed_power(q, n) <= fixed_power(q + 1, n));
    }
}

/* ---- shares ---- */

static void check_shares(const uint64_t *counts, uint32_t symbols) {
    struct tans_shares shares;

    tans_normalise(counts, symbols, &shares);
    assert_true(tans_shares_valid(&shares, TANS_SYMBOLS_MAX));
    for (uint32_t s = 0; s < symbols; s++) {
        assert_true(shares.share[s] <= TANS_STATES);
        assert_int_equal(shares.share[s] != 0, counts[s] != 0);
    }
}

static void test_normalise(void **state) {
    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        uint64_t counts[TANS_SYMBOLS_MAX] = {0};
        uint32_t symbols = (uint32_t)(1 + test_random() % TANS_SYMBOLS_MAX);

        for (uint32_t s = 0; s < symbols; s++) {
            unsigned skew = round % 4 == 0 ? 40 : 40 + (unsigned)(test_random() % 24);

            counts[s] = test_random() % 8 < round % 9 ? test_random() >> skew : 0;
        }
        counts[test_random() % symbols] += 1 + (round % 3 ? 0 : UINT64_C(1) << 24);
        check_shares(counts, symbols);
    }
}

static void test_normalise_edges(void **state) {
    uint64_t counts[TANS_SYMBOLS_MAX] = {0};

    (void)state;
    for (uint32_t s = 0; s < TANS_SYMBOLS_MAX; s++) {
        memset(counts, 0, sizeof counts);
        counts[s] = 1;
        check_shares(counts, TANS_SYMBOLS_MAX); /* one symbol has them all */
        for (uint32_t t = 0; t < TANS_SYMBOLS_MAX; t++)
            counts[t] = 1;
        check_shares(counts, s + 1);
        counts[s] = 1u << 24; /* all others are rare */
        check_shares(counts, TANS_SYMBOLS_MAX);
    }
}

static void test_geometric(void **state) {
    (void)state;
    for (uint32_t rate = 0; rate <= 65535; rate += 1 + rate / 64) {
        for (uint32_t top = 0; top < GAP_SYMBOLS; top++) {
            struct tans_shares shares;

            tans_geometric(rate, top, &shares);
            assert_true(tans_shares_valid(&shares, TANS_SYMBOLS_MAX));
            for (uint32_t s = 0; s < TANS_SYMBOLS_MAX; s++)
                assert_int_equal(shares.share[s] != 0, s <= top);
        }
    }
}

static void test_shares_from_outside(void **state) {
    struct tans_shares shares = {{TANS_STATES - 1, 1}};

    (void)state;
    assert_true(tans_shares_valid(&shares, 2));
    assert_false(tans_shares_valid(&shares, 1));
    shares.share[2] = 1;
    assert_false(tans_shares_valid(&shares, 3));
}

/* ---- tables ---- */

#define SYMBOLS_IN_A_ROW 500u

/* Writes the symbols from the last to the first; returns the state behind them. */
static uint32_t write_symbols(const struct tans_encoder *encoder, const uint8_t *symbols,
                              struct bit_writer *writer) {
    uint32_t at = TANS_STATES;

    for (uint32_t i = SYMBOLS_IN_A_ROW; i-- > 0;) {
        uint32_t bits = (at + encoder->symbol[symbols[i]].bits) >> 16;

        assert_true(bits <= TANS_LOG);
        bits_put(writer, at & ((1u << bits) - 1), bits);
        bits_flush(writer);
        at = encoder->next[(int32_t)(at >> bits) + encoder->symbol[symbols[i]].offset];
        assert_true(at >= TANS_STATES && at < 2 * TANS_STATES);
    }
    return at;
}

static void check_inverse(const struct tans_shares *shares, const uint8_t *symbols) {
    static struct tans_encoder encoder;
    static struct tans_decoder decoder;
    uint8_t bytes[2 * SYMBOLS_IN_A_ROW + BITS_SLACK];
    struct bit_writer writer = {.at = bytes};
    struct bit_reader reader = {0};
    uint32_t at;

    tans_encoder_build(shares, TANS_SYMBOLS_MAX, &encoder);
    tans_decoder_build(shares, TANS_SYMBOLS_MAX, &decoder);
    at = write_symbols(&encoder, symbols, &writer) - TANS_STATES;
    assert_true(bits_open(&reader, bytes, (size_t)(bits_end(&writer) - bytes)));
    for (uint32_t i = 0; i < SYMBOLS_IN_A_ROW; i++) {
        assert_int_equal(decoder.state[at].symbol, symbols[i]);
        at = decoder.state[at].next + (uint32_t)bits_get(&reader, decoder.state[at].bits);
    }
    assert_int_equal(at, 0);
    assert_int_equal(reader.left, 0);
}

static void test_tables_are_inverse(void **state) {
    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t counts[TANS_SYMBOLS_MAX] = {0};
        uint8_t symbols[SYMBOLS_IN_A_ROW];
        struct tans_shares shares;
        uint64_t different = 1 + test_random() % TANS_SYMBOLS_MAX;

        for (uint32_t i = 0; i < SYMBOLS_IN_A_ROW; i++) {
            symbols[i] = (uint8_t)(test_random() % different);
            if (round & 1) /* skewed */
                symbols[i] = (uint8_t)(test_random() % (symbols[i] + 1u));
            counts[symbols[i]] += round & 2 ? 1 : 1 + test_random() % 1000;
        }
        tans_normalise(counts, TANS_SYMBOLS_MAX, &shares);
        check_inverse(&shares, symbols);
    }
}

/* ---- bits ---- */

static void test_bits(void **state) {
    uint64_t values[300];
    uint32_t widths[300];
    uint8_t bytes[300 * 7 + BITS_SLACK + 1];
    struct bit_writer writer = {.at = bytes};
    struct bit_reader reader = {0};

    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        widths[i] = (uint32_t)(test_random() % (BITS_MAX - 6)); /* seven may be pending */
        values[i] = test_random() & ((UINT64_C(1) << widths[i]) - 1);
        bits_put(&writer, values[i], widths[i]);
        bits_flush(&writer);
    }
    assert_true(bits_open(&reader, bytes, (size_t)(bits_end(&writer) - bytes)));
    for (unsigned i = 300; i-- > 0;)
        assert_true(bits_get(&reader, widths[i]) == values[i]);
    assert_int_equal(reader.left, 0);
    assert_int_equal(bits_get(&reader, 9), 0);
    assert_int_equal(reader.left, -9);
    bytes[0] = 0;
    assert_false(bits_open(&reader, bytes, 1));
    assert_false(bits_open(&reader, bytes, 0));
}

/* ---- symbols ---- */

static void test_gap_symbols(void **state) {
    uint32_t before = 0;

    (void)state;
    for (uint32_t gap = 0; gap < 1u << 20; gap++) {
        uint32_t symbol = gap_symbol(gap), extra = gap_extra(gap);
        struct symbol_form form = gap_form(symbol);

        assert_true(symbol == before || symbol == before + 1);
        assert_true(symbol < GAP_SYMBOLS);
        assert_int_equal(form.extra, extra);
        assert_int_equal((form.lead << extra) + (gap & ((1u << extra) - 1)), gap);
        before = symbol;
    }
    assert_int_equal(before, GAP_SYMBOLS - 1);
}

static void check_value_symbol(uint64_t value) {
    uint32_t symbol = value_symbol(value);
    struct symbol_form form = value_form(symbol);

    assert_true(symbol < VALUE_SYMBOLS);
    assert_true((form.lead << form.extra) + (value & ((UINT64_C(1) << form.extra) - 1)) == value);
    assert_true(!value || value_symbol(value - 1) == symbol ||
                value_symbol(value - 1) + 1 == symbol);
}

static void test_value_symbols(void **state) {
    (void)state;
    for (uint64_t value = 0; value < 1u << 18; value++)
        check_value_symbol(value);
    for (unsigned k = 0; k < 64; k++) {
        uint64_t power = UINT64_C(1) << k;

        check_value_symbol(power - 1);
        check_value_symbol(power);
        check_value_symbol(power + 1);
        check_value_symbol(power + power / 2);
        check_value_symbol(power + power / 2 - 1);
    }
    check_value_symbol(UINT64_MAX);
    assert_int_equal(value_symbol(UINT64_MAX), VALUE_SYMBOLS - 1);
    for (unsigned i = 0; i < 100000; i++)
        check_value_symbol(test_random() >> i % 64);
}

TEST_MAIN(test_log2, test_log2_rises, test_cost, test_exp2, test_power, test_normalise,
          test_normalise_edges, test_geometric, test_shares_from_outside, test_tables_are_inverse,
          test_bits, test_gap_symbols, test_value_symbols)
