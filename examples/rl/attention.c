// SPDX-License-Identifier: Apache-2.0
#include "attention.h"

#include "ops.h"

#include <tgmath.h>

/* One head of one sequence: matrices within larger ones, so each has its own stride. */
struct view {
    size_t time, head, stride;
};

static struct view head_view(const struct attention *a) {
    return (struct view){a->time, a->width / a->heads, a->width};
}

static size_t place(const struct attention *a, size_t sequence, size_t head) {
    return sequence * a->time * a->width + head * (a->width / a->heads);
}

/* [time][time] = scale * x y^T */
static void by_columns(struct view v, real *square, const real *x, const real *y, real scale) {
    blas_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)v.time, (blasint)v.time,
              (blasint)v.head, scale, x, (blasint)v.stride, y, (blasint)v.stride, 0, square,
              (blasint)v.time);
}

/* [time][head] = scale * square x, or square^T x */
static void by_rows(struct view v, real *y, CBLAS_TRANSPOSE turn, const real *square, const real *x,
                    real scale) {
    blas_gemm(CblasRowMajor, turn, CblasNoTrans, (blasint)v.time, (blasint)v.head, (blasint)v.time,
              scale, square, (blasint)v.time, x, (blasint)v.stride, 0, y, (blasint)v.stride);
}

/* Nobody sees what comes later. */
static void softmax_past(real *square, size_t time) {
    for (size_t t = 0; t < time; t++) {
        softmax(square + t * time, t + 1);
        for (size_t later = t + 1; later < time; later++)
            square[t * time + later] = 0;
    }
}

/* d_score = mix * (d_mix - sum(mix * d_mix)), in place. */
static void softmax_past_backward(real *d, const real *mix, size_t time) {
    for (size_t t = 0; t < time; t++, d += time, mix += time) {
        real along = 0;

        for (size_t i = 0; i <= t; i++)
            along += mix[i] * d[i];
        for (size_t i = 0; i < time; i++)
            d[i] = mix[i] * (d[i] - along);
    }
}

void attention_forward(const struct attention *a, real *y, real *mix, const real *q, const real *k,
                       const real *v) {
    const struct view view = head_view(a);
    const real scale = 1 / sqrt((real)view.head);

    for (size_t i = 0; i < a->batch * a->heads; i++, mix += a->time * a->time) {
        const size_t at = place(a, i / a->heads, i % a->heads);

        by_columns(view, mix, q + at, k + at, scale);
        softmax_past(mix, a->time);
        by_rows(view, y + at, CblasNoTrans, mix, v + at, 1);
    }
}

void attention_backward(const struct attention *a, real *dq, real *dk, real *dv, const real *dy,
                        const real *mix, const real *q, const real *k, const real *v, real *work) {
    const struct view view = head_view(a);
    const real scale = 1 / sqrt((real)view.head);

    for (size_t i = 0; i < a->batch * a->heads; i++, mix += a->time * a->time) {
        const size_t at = place(a, i / a->heads, i % a->heads);

        by_rows(view, dv + at, CblasTrans, mix, dy + at, 1);
        by_columns(view, work, dy + at, v + at, 1);
        softmax_past_backward(work, mix, a->time);
        by_rows(view, dq + at, CblasNoTrans, work, k + at, scale);
        by_rows(view, dk + at, CblasTrans, work, q + at, scale);
    }
}
