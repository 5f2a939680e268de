// SPDX-License-Identifier: Apache-2.0
/*
 * Who learns: FP32 masters with their optimiser. Sequences are dealt to a fixed number of lanes whose
 * gradients are added in order, so the bits do not depend on how many threads there are.
 */
#ifndef RL_LEARNER_H
#define RL_LEARNER_H

#include "adam.h"
#include "pass.h"
#include "sequence.h"

#include <ulpsync/pool.h>

#define LANES 2

struct lane {
    struct pass pass;
    float *gradient;
    struct model slopes;
    double log_chance, ratio, clipped; /* sums over tokens */
};

struct learner {
    struct layout layout;
    float *masters;
    float *weights; /* those that the pass uses: the masters, or what the BF16 view says */
    struct model model;
    struct adam adam;
    struct lane lanes[LANES];
    struct ulp_pool *pool;
};

struct lesson {
    const struct sequence *sequences;
    size_t count;
    double rate;
    double clip; /* of the ratio of chances, now to then; 0: what is learned was not said by us */
};

struct lesson_report {
    double loss;           /* mean of -log p over the tokens that count */
    double ratio, clipped; /* mean; share of tokens */
    double gradient;       /* length, before it was cut */
};

enum ulp_status learner_init(struct learner *learner, const struct dims *dims, uint64_t seed,
                             unsigned threads);
void learner_release(struct learner *learner);

/* Forgets the optimiser's moments: another kind of lesson begins. `floor` is Adam's. */
void learner_refresh(struct learner *learner, double floor);

/* One step of the optimiser. The caller brings `weights` up to date. */
enum ulp_status learner_step(struct learner *learner, const struct lesson *lesson,
                             struct lesson_report *ret_report);

#endif
