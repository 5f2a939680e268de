// SPDX-License-Identifier: Apache-2.0
/* Adam, with gradients cut to a length of 1. */
#ifndef RL_ADAM_H
#define RL_ADAM_H

#include <stddef.h>

struct adam {
    size_t count;
    double floor; /* of what steps are divided by */
    float *mean, *square;
    double mean_left, square_left; /* what bias correction needs: decay ^ steps */
};

/*
 * Far below the gradients (1e-8), the floor does nothing, and all parameters move alike. Far above
 * them, they move as much as they matter: a small model then learns with few of its bits.
 */
void adam_init(struct adam *adam, size_t count, double floor);
void adam_release(struct adam *adam);

/* Returns the gradient's length before it was cut. */
double adam_step(struct adam *adam, float *parameters, const float *gradient, double rate);

#endif
