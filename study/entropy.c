// SPDX-License-Identifier: Apache-2.0
#include "study/entropy.h"

#include <math.h>

/* n log2 n: sums of these are entropies. */
static double weighed(uint64_t n) {
    return n ? (double)n * log2((double)n) : 0;
}

/* Of `elements`, which `changed`. */
static double place_bits(uint64_t elements, uint64_t changed) {
    return weighed(elements) - weighed(changed) - weighed(elements - changed);
}

static double step_bits(const study_steps steps, uint64_t all) {
    double bits = weighed(all);

    for (unsigned s = 0; s < STUDY_SYMBOLS; s++) {
        if (steps[s])
            bits += (double)steps[s] * study_symbol_bits(s) - weighed(steps[s]);
    }
    return bits;
}

static void add_history(struct study_floor *floor, const struct study_counts *counts,
                        unsigned cell) {
    uint64_t still = counts->told[cell];

    for (unsigned b = 1; b < MOVE_BUCKETS; b++)
        still -= counts->moved[b][cell];
    for (unsigned b = 0; b < MOVE_BUCKETS; b++) {
        const uint64_t *steps = counts->steps_after[b][cell];
        const uint64_t changes = study_total(steps, STUDY_SYMBOLS);

        floor->changes_after += changes;
        floor->place_bits_after += place_bits(b ? counts->moved[b][cell] : still, changes);
        floor->step_bits_after += step_bits(steps, changes);
    }
}

struct study_floor study_floor(const struct study_counts *counts) {
    struct study_floor floor = {0};

    for (unsigned e = 0; e < EXPONENT_CELLS; e++) {
        const uint64_t changes = study_total(counts->steps[e], STUDY_SYMBOLS);

        floor.changes += changes;
        floor.place_bits += place_bits(counts->elements[e], changes);
        floor.step_bits += step_bits(counts->steps[e], changes);
        add_history(&floor, counts, e);
    }
    floor.place_bits_alone =
        place_bits(study_total(counts->elements, EXPONENT_CELLS), floor.changes);
    return floor;
}

void study_floor_add(struct study_floor *to, const struct study_floor *from) {
    to->changes += from->changes;
    to->place_bits += from->place_bits;
    to->step_bits += from->step_bits;
    to->changes_after += from->changes_after;
    to->place_bits_after += from->place_bits_after;
    to->step_bits_after += from->step_bits_after;
    to->place_bits_alone += from->place_bits_alone;
}

double study_floor_stateless(const struct study_floor *floor) {
    return (floor->place_bits + floor->step_bits) / (double)floor->changes;
}

double study_floor_history(const struct study_floor *floor) {
    return (floor->place_bits_after + floor->step_bits_after) / (double)floor->changes_after;
}
