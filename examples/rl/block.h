// SPDX-License-Identifier: Apache-2.0
/* One block: x + attention(norm(x)), then that + mlp(norm(that)). */
#ifndef RL_BLOCK_H
#define RL_BLOCK_H

#include "attention.h"

struct block {
    real *norm1, *q, *k, *v, *o;
    real *norm2, *gate, *up, *down;
};

struct block_size {
    struct attention attention;
    size_t hidden;
};

/* What the way forward leaves for the way back. */
struct block_kept {
    real *x; /* what came in */
    real *inverse1, *n1, *q, *k, *v, *mix, *mixed;
    real *middle; /* what goes into the second half */
    real *inverse2, *n2, *gate, *up, *active;
};

/* Room for gradients, which all blocks of a pass share. */
struct block_work {
    real *a, *b, *c, *d;   /* [rows][width] */
    real *gate, *up, *act; /* [rows][hidden] */
    real *square;          /* [time][time] */
};

void block_forward(const struct block_size *size, const struct block *weights,
                   const struct block_kept *kept, real *y);

/* `dy` becomes the gradient of what came in. */
void block_backward(const struct block_size *size, const struct block *weights,
                    const struct block_kept *kept, const struct block_work *work,
                    const struct block *gradient, real *dy);

#endif
