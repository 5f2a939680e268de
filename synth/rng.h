// SPDX-License-Identifier: Apache-2.0
/*
 * Random words for the generator, a row at a time.
 *
 * Marsaglia's xorshift128 (2003) in 16 interleaved lanes. Interleaved, the four state words of a
 * lane are its four latest outputs, so the state is "the last 64 words" and the generator is a
 * recurrence over a plain array with lags 16 and 64. Compilers vectorise that, and it needs only
 * shifts and xors, which every SIMD set has. Each lane has a period of 2^128 - 1. Not for secrets.
 */

#ifndef ULPSYNC_SYNTH_RNG_H
#define ULPSYNC_SYNTH_RNG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RNG_LANES 16
#define RNG_STATE_WORDS (4 * RNG_LANES)

/* Words per call of rng_row: many times the state, so that carrying the state over costs little. */
#define RNG_ROW_WORDS 1024

struct rng {
    uint32_t word[RNG_STATE_WORDS + RNG_ROW_WORDS]; /* the words before the row, then the row */
};

/* Stafford's "mix 13" of a 64-bit word, the output function of SplitMix64. */
static inline uint64_t rng_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A stream of its own for each (seed, tensor, block). */
static inline void rng_start(struct rng *rng, uint64_t seed, uint64_t tensor, uint64_t block) {
    const uint64_t golden =
        UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio, as in SplitMix64 */
    uint64_t key = rng_mix(rng_mix(rng_mix(seed + golden) + tensor + golden) + block + golden);
    uint32_t *state = rng->word + RNG_ROW_WORDS; /* where rng_row looks for it */

    memset(rng, 0, sizeof(*rng));
    for (size_t i = 0; i < RNG_STATE_WORDS; i++) {
        key += golden;
        state[i] = (uint32_t)(rng_mix(key) >> 32);
    }
    for (size_t lane = 0; lane < RNG_LANES; lane++) {
        state[lane] |= 1u; /* all four words zero is the one state xorshift never leaves */
    }
}

/* The next RNG_ROW_WORDS random words, valid until the next call. */
static inline const uint32_t *rng_row(struct rng *rng) {
    uint32_t *word = rng->word;

    memmove(word, word + RNG_ROW_WORDS, RNG_STATE_WORDS * sizeof(*word));
    for (size_t i = RNG_STATE_WORDS; i < RNG_STATE_WORDS + RNG_ROW_WORDS; i++) {
        uint32_t oldest = word[i - 4 * RNG_LANES];
        uint32_t newest = word[i - RNG_LANES];

        oldest ^= oldest << 11;
        word[i] = newest ^ (newest >> 19) ^ oldest ^ (oldest >> 8);
    }
    return word + RNG_STATE_WORDS;
}

#endif
