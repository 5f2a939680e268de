// SPDX-License-Identifier: Apache-2.0
#include "code/tans.h"

#include "code/fixed.h"

#include <string.h>

/* A difference this small against the largest share goes there whole, without a search. */
#define SMALL_AGAINST_LARGEST 24

/* The symbol that gains most by one state more, or loses least by one fewer: compares count / share
 * by cross-multiplication. */
static uint32_t best_to_change(const uint64_t *counts, const struct tans_shares *shares,
                               uint32_t symbols, bool more) {
    uint64_t best_weight = 0;
    uint32_t best = symbols;

    for (uint32_t s = 0; s < symbols; s++) {
        uint64_t weight = more ? 2u * shares->share[s] + 1 : 2u * shares->share[s] - 1;

        if (!counts[s] || (!more && shares->share[s] < 2))
            continue;
        if (best == symbols || (more ? counts[s] * best_weight > counts[best] * weight
                                     : counts[s] * best_weight < counts[best] * weight)) {
            best = s;
            best_weight = weight;
        }
    }
    return best;
}

void tans_normalise(const uint64_t *counts, uint32_t symbols, struct tans_shares *shares) {
    uint64_t total = 0;
    uint32_t largest = 0;
    int left = TANS_STATES;

    memset(shares, 0, sizeof *shares);
    for (uint32_t s = 0; s < symbols; s++)
        total += counts[s];
    for (uint32_t s = 0; s < symbols; s++) {
        uint64_t share = (counts[s] * TANS_STATES + total / 2) / total;

        shares->share[s] = (uint16_t)(counts[s] && !share ? 1 : share);
        left -= shares->share[s];
        if (shares->share[s] > shares->share[largest])
            largest = s;
    }
    if ((left < 0 ? -left : left) * SMALL_AGAINST_LARGEST <= shares->share[largest]) {
        shares->share[largest] = (uint16_t)(shares->share[largest] + left);
        left = 0;
    }
    for (; left > 0; left--)
        shares->share[best_to_change(counts, shares, symbols, true)]++;
    for (; left < 0; left++)
        shares->share[best_to_change(counts, shares, symbols, false)]--;
}

uint16_t tans_rate(uint64_t events, uint64_t all) {
    uint32_t rate = (fixed_log2(all) - fixed_log2(events)) >> (COST_SHIFT - 11);

    return (uint16_t)(rate < UINT16_MAX ? rate : UINT16_MAX);
}

void tans_geometric(uint32_t rate, uint32_t top, struct tans_shares *shares) {
    const uint64_t one = UINT64_C(1) << 32;
    uint64_t event = fixed_exp2_negative(rate), none = one - event, before = one;
    uint64_t counts[GAP_SYMBOLS] = {0};

    for (uint32_t s = 0; s <= top; s++) {
        struct symbol_form form = gap_form(s);
        uint64_t after = fixed_power(none, (form.lead + 1) << form.extra);

        counts[s] = (before - (after < before ? after : before)) >> 6;
        counts[s] += !counts[s];
        before = after;
    }
    tans_normalise(counts, top + 1, shares);
}

/* Spreads each symbol's states over the whole table, so that each is reached from everywhere. */
static void spread(const struct tans_shares *shares, uint32_t symbols, uint8_t table[TANS_STATES]) {
    const uint32_t step = (TANS_STATES >> 1) + (TANS_STATES >> 3) + 3;
    uint32_t at = 0;

    for (uint32_t s = 0; s < symbols; s++) {
        for (uint32_t i = 0; i < shares->share[s]; i++) {
            table[at] = (uint8_t)s;
            at = (at + step) % TANS_STATES;
        }
    }
}

static uint32_t log2_floor(uint32_t x) {
    return 31 - (uint32_t)__builtin_clz(x);
}

void tans_encoder_build(const struct tans_shares *shares, uint32_t symbols,
                        struct tans_encoder *encoder) {
    uint8_t table[TANS_STATES] = {0};
    uint32_t first[TANS_SYMBOLS_MAX] = {0}, total = 0;

    spread(shares, symbols, table);
    for (uint32_t s = 0; s < symbols; s++) {
        uint32_t share = shares->share[s];
        uint32_t bits = share > 1 ? TANS_LOG - log2_floor(share - 1) : TANS_LOG;

        first[s] = total;
        encoder->symbol[s].bits = (bits << 16) - (share > 1 ? share << bits : TANS_STATES);
        encoder->symbol[s].offset = (int32_t)total - (int32_t)(share ? share : 1);
        total += share;
    }
    for (uint32_t state = 0; state < TANS_STATES; state++)
        encoder->next[first[table[state]]++] = (uint16_t)(TANS_STATES + state);
}

void tans_decoder_build(const struct tans_shares *shares, uint32_t symbols,
                        struct tans_decoder *decoder) {
    uint8_t table[TANS_STATES] = {0};
    uint32_t count[TANS_SYMBOLS_MAX] = {0};

    spread(shares, symbols, table);
    for (uint32_t s = 0; s < symbols; s++)
        count[s] = shares->share[s];
    for (uint32_t state = 0; state < TANS_STATES; state++) {
        uint32_t x = count[table[state]]++, bits = TANS_LOG - log2_floor(x);

        decoder->state[state].symbol = table[state];
        decoder->state[state].bits = (uint8_t)bits;
        decoder->state[state].next = (uint16_t)((x << bits) - TANS_STATES);
    }
}

bool tans_shares_valid(const struct tans_shares *shares, uint32_t symbols) {
    uint32_t total = 0;

    for (uint32_t s = 0; s < symbols; s++)
        total += shares->share[s];
    return total == TANS_STATES;
}
