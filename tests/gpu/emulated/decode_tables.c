// SPDX-License-Identifier: Apache-2.0
/* The tables that the device builds are those of the CPU, state by state. */
#include "tests/test.h"

#include "code/tans.h"
#include "cuda/decode.h"

#define TABLES 160u

struct models {
    struct decode_model models[TABLES];
    uint16_t shares[TABLES * VALUE_SYMBOLS];
    uint32_t tables[TABLES * DECODE_STATES];
};

static void build(struct models *models) {
    const struct cuda_decode decode = {.models = models->models,
                                       .shares = models->shares,
                                       .tables = models->tables,
                                       .table_count = TABLES};

    assert_ok(cuda_decode_tables(&decode, NULL));
}

/* next, extra bits, lead, and bits with extra bits, from the lowest bit on: 10, 6, 9 and 7 of them */
static void assert_table(const struct models *models, size_t index,
                         const struct tans_shares *shares, uint32_t symbols, bool gaps) {
    const uint32_t *table = &models->tables[index * DECODE_STATES];
    struct tans_decoder expected;

    tans_decoder_build(shares, symbols, &expected);
    for (uint32_t state = 0; state < TANS_STATES; state++) {
        const uint32_t symbol = expected.state[state].symbol;
        const struct symbol_form form = gaps ? gap_form(symbol) : value_form(symbol);
        const uint32_t length = expected.state[state].bits + form.extra;
        const uint32_t entry = expected.state[state].next | form.extra << 10 |
                               (uint32_t)form.lead << 16 | length << 25;

        if (table[state] != entry)
            fail_msg("table %zu, state %u: %08x, not %08x", index, state, table[state], entry);
    }
}

static void test_gaps(void **unused) {
    static const uint8_t tops[] = {0, 1, 7, 8, 20, 40, 74, 75};
    static struct models models;

    (void)unused;
    for (uint32_t i = 0; i < TABLES; i++) {
        const uint16_t rate = i < 8    ? 0
                              : i < 16 ? UINT16_MAX
                              : i % 2  ? (uint16_t)test_random()
                                       : (uint16_t)(test_random() % 24000);

        models.models[i] = (struct decode_model){.rate = rate, .top = tops[i % 8], .gaps = 1};
    }
    build(&models);
    for (uint32_t i = 0; i < TABLES; i++) {
        struct tans_shares shares;

        tans_geometric(models.models[i].rate, models.models[i].top, &shares);
        assert_table(&models, i, &shares, GAP_SYMBOLS, true);
    }
}

static void test_values(void **unused) {
    static struct models models;
    struct tans_shares shares[TABLES];

    (void)unused;
    for (uint32_t i = 0; i < TABLES; i++) {
        const uint32_t top =
            i < 2 ? i * (VALUE_SYMBOLS - 1) : (uint32_t)(test_random() % VALUE_SYMBOLS);
        uint64_t counts[VALUE_SYMBOLS] = {0};

        for (uint32_t s = 0; s <= top; s++)
            counts[s] = test_random() % 3 && s < top ? 0 : 1 + test_random() % (1u << s % 20);
        tans_normalise(counts, VALUE_SYMBOLS, &shares[i]);
        models.models[i] = (struct decode_model){.shares = i * VALUE_SYMBOLS, .top = (uint8_t)top};
        memcpy(models.shares + i * VALUE_SYMBOLS, shares[i].share, (top + 1) * sizeof(uint16_t));
    }
    build(&models);
    for (uint32_t i = 0; i < TABLES; i++)
        assert_table(&models, i, &shares[i], VALUE_SYMBOLS, false);
}

TEST_MAIN(test_gaps, test_values)
