// SPDX-License-Identifier: Apache-2.0
#include "block.h"

#include "ops.h"

#include <string.h>

static size_t rows_of(const struct block_size *size) {
    return size->attention.batch * size->attention.time;
}

static void clear(real *x, size_t count) {
    memset(x, 0, count * sizeof *x);
}

void block_forward(const struct block_size *size, const struct block *weights,
                   const struct block_kept *kept, real *y) {
    const size_t rows = rows_of(size), width = size->attention.width, hidden = size->hidden;

    rmsnorm_forward(kept->n1, kept->inverse1, kept->x, weights->norm1, rows, width);
    linear_forward(kept->q, kept->n1, weights->q, rows, width, width, 0);
    linear_forward(kept->k, kept->n1, weights->k, rows, width, width, 0);
    linear_forward(kept->v, kept->n1, weights->v, rows, width, width, 0);
    attention_forward(&size->attention, kept->mixed, kept->mix, kept->q, kept->k, kept->v);
    memcpy(kept->middle, kept->x, rows * width * sizeof *y);
    linear_forward(kept->middle, kept->mixed, weights->o, rows, width, width, 1);

    rmsnorm_forward(kept->n2, kept->inverse2, kept->middle, weights->norm2, rows, width);
    linear_forward(kept->gate, kept->n2, weights->gate, rows, width, hidden, 0);
    linear_forward(kept->up, kept->n2, weights->up, rows, width, hidden, 0);
    swiglu_forward(kept->active, kept->gate, kept->up, rows * hidden);
    memcpy(y, kept->middle, rows * width * sizeof *y);
    linear_forward(y, kept->active, weights->down, rows, hidden, width, 1);
}

static void mlp_backward(const struct block_size *size, const struct block *weights,
                         const struct block_kept *kept, const struct block_work *work,
                         const struct block *gradient, real *dy) {
    const size_t rows = rows_of(size), width = size->attention.width, hidden = size->hidden;

    clear(work->act, rows * hidden);
    clear(work->a, rows * width);
    linear_backward(work->act, gradient->down, dy, kept->active, weights->down, rows, hidden,
                    width);
    swiglu_backward(work->gate, work->up, work->act, kept->gate, kept->up, rows * hidden);
    linear_backward(work->a, gradient->gate, work->gate, kept->n2, weights->gate, rows, width,
                    hidden);
    linear_backward(work->a, gradient->up, work->up, kept->n2, weights->up, rows, width, hidden);
    rmsnorm_backward(dy, gradient->norm2, work->a, kept->middle, weights->norm2, kept->inverse2,
                     rows, width);
}

void block_backward(const struct block_size *size, const struct block *weights,
                    const struct block_kept *kept, const struct block_work *work,
                    const struct block *gradient, real *dy) {
    const size_t rows = rows_of(size), width = size->attention.width;

    mlp_backward(size, weights, kept, work, gradient, dy);
    clear(work->a, rows * width);
    linear_backward(work->a, gradient->o, dy, kept->mixed, weights->o, rows, width, width);
    attention_backward(&size->attention, work->b, work->c, work->d, work->a, kept->mix, kept->q,
                       kept->k, kept->v, work->square);
    clear(work->a, rows * width);
    linear_backward(work->a, gradient->q, work->b, kept->n1, weights->q, rows, width, width);
    linear_backward(work->a, gradient->k, work->c, kept->n1, weights->k, rows, width, width);
    linear_backward(work->a, gradient->v, work->d, kept->n1, weights->v, rows, width, width);
    rmsnorm_backward(dy, gradient->norm1, work->a, kept->x, weights->norm1, kept->inverse1, rows,
                     width);
}
