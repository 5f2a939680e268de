// SPDX-License-Identifier: Apache-2.0
/*
 * Entropy floors: how few bits a coder could take for the changes that were counted, if it knew
 * their statistics for nothing. In-sample conditional entropy, in bits of all changes together.
 */
#ifndef STUDY_ENTROPY_H
#define STUDY_ENTROPY_H

#include "study/counts.h"

struct study_floor {
    /* Which elements change and by which step, given the exponent of the old value. */
    uint64_t changes;
    double place_bits, step_bits;

    /* The same given the element's previous move as well, of those changes that had a step before
     * them. */
    uint64_t changes_after;
    double place_bits_after, step_bits_after;

    double place_bits_alone; /* without any context: that is what a coder of gaps aims at */
};

struct study_floor study_floor(const struct study_counts *counts);

/* Adds up floors of different kinds, or of different steps. */
void study_floor_add(struct study_floor *to, const struct study_floor *from);

/* Bits per change; NaN without changes. */
double study_floor_stateless(const struct study_floor *floor);
double study_floor_history(const struct study_floor *floor);

#endif
