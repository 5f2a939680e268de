// SPDX-License-Identifier: Apache-2.0
/* Random numbers that anybody can make again: a stream is named by numbers, not by who draws it. */
#ifndef RL_RANDOM_H
#define RL_RANDOM_H

#include <math.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* SplitMix64. */
static inline uint64_t random_next(struct random *random) {
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The stream of, say, a seed, a version and a group. */
static inline struct random random_stream(uint64_t a, uint64_t b, uint64_t c) {
    struct random random = {a};

    random.state = random_next(&random) ^ b;
    random.state = random_next(&random) ^ c;
    random.state = random_next(&random);
    return random;
}

/* From 0 to, and not including, 1. */
static inline double random_uniform(struct random *random) {
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

/* From 0 to, and not including, `end`. */
static inline uint64_t random_below(struct random *random, uint64_t end) {
    return (uint64_t)(random_uniform(random) * (double)end);
}

static inline double random_normal(struct random *random) {
    const double radius = sqrt(-2.0 * log(1.0 - random_uniform(random)));

    return radius * cos(6.283185307179586 * random_uniform(random));
}

#endif
