// SPDX-License-Identifier: Apache-2.0
/* Numbers that follow from a seed: xorshift64*, started by a round of splitmix64. */
#ifndef TESTS_SIM_CHANCE_H
#define TESTS_SIM_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
    uint64_t state;
};

static inline struct chance chance_of(uint64_t seed) {
    uint64_t x = seed + 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (struct chance){(x ^ (x >> 31)) | 1};
}

static inline uint64_t chance_next(struct chance *chance) {
    chance->state ^= chance->state >> 12;
    chance->state ^= chance->state << 25;
    chance->state ^= chance->state >> 27;
    return chance->state * 0x2545f4914f6cdd1du;
}

/* 0 to below - 1. */
static inline uint64_t chance_below(struct chance *chance, uint64_t below) {
    return (chance_next(chance) >> 11) % below;
}

static inline uint64_t chance_between(struct chance *chance, uint64_t low, uint64_t high) {
    return low + chance_below(chance, high - low + 1);
}

static inline bool chance_percent(struct chance *chance, uint64_t percent) {
    return chance_below(chance, 100) < percent;
}

#endif
