// SPDX-License-Identifier: Apache-2.0
/*
 * What layers are made of, each with its gradient. `rows` counts tokens; weights are [out][in], as
 * checkpoints have them. Gradients are added to what is there, except where it says otherwise.
 */
#ifndef RL_OPS_H
#define RL_OPS_H

#include "real.h"

#include <stddef.h>

/* y = x w^T, or y += x w^T. */
void linear_forward(real *y, const real *x, const real *w, size_t rows, size_t in, size_t out,
                    int add);
void linear_backward(real *dx, real *dw, const real *dy, const real *x, const real *w, size_t rows,
                     size_t in, size_t out);

/* y = x / rms(x) * gain; `inverse` keeps 1 / rms(x) of each row for the way back. */
void rmsnorm_forward(real *y, real *inverse, const real *x, const real *gain, size_t rows,
                     size_t width);
void rmsnorm_backward(real *dx, real *dgain, const real *dy, const real *x, const real *gain,
                      const real *inverse, size_t rows, size_t width);

/* y = silu(gate) * up. The way back sets its results. */
void swiglu_forward(real *y, const real *gate, const real *up, size_t count);
void swiglu_backward(real *dgate, real *dup, const real *dy, const real *gate, const real *up,
                     size_t count);

/* In place. */
void softmax(real *x, size_t count);

void add_to(real *y, const real *x, size_t count);

#endif
