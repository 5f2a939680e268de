// SPDX-License-Identifier: Apache-2.0
/*
 * Causal attention. q, k, v and the result are [batch][time][width]; head h has columns
 * h * width / heads and on. `mix` keeps who looked where: [batch][heads][time][time].
 */
#ifndef RL_ATTENTION_H
#define RL_ATTENTION_H

#include "real.h"

#include <stddef.h>

struct attention {
    size_t batch, time, heads, width;
};

void attention_forward(const struct attention *a, real *y, real *mix, const real *q, const real *k,
                       const real *v);

/* Sets dq, dk and dv. `work` has room for time * time numbers. */
void attention_backward(const struct attention *a, real *dq, real *dk, real *dv, const real *dy,
                        const real *mix, const real *q, const real *k, const real *v, real *work);

#endif
