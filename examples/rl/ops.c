// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <tgmath.h>

/* Keeps the norm of a row of zeros finite. */
#define NORM_FLOOR ((real)1e-5)

void linear_forward(real *y, const real *x, const real *w, size_t rows, size_t in, size_t out,
                    int add) {
    blas_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)out, (blasint)in, 1,
              x, (blasint)in, w, (blasint)in, (real)(add != 0), y, (blasint)out);
}

void linear_backward(real *dx, real *dw, const real *dy, const real *x, const real *w, size_t rows,
                     size_t in, size_t out) {
    blas_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)rows, (blasint)in, (blasint)out,
              1, dy, (blasint)out, w, (blasint)in, 1, dx, (blasint)in);
    blas_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)out, (blasint)in, (blasint)rows, 1,
              dy, (blasint)out, x, (blasint)in, 1, dw, (blasint)in);
}

void rmsnorm_forward(real *y, real *inverse, const real *x, const real *gain, size_t rows,
                     size_t width) {
    for (size_t row = 0; row < rows; row++, x += width, y += width) {
        real squares = 0;

        for (size_t i = 0; i < width; i++)
            squares += x[i] * x[i];
        inverse[row] = 1 / sqrt(squares / (real)width + NORM_FLOOR);
        for (size_t i = 0; i < width; i++)
            y[i] = x[i] * inverse[row] * gain[i];
    }
}

/* With s = 1/rms: dx = s g dy - x s^3 / width * sum(g dy x). */
void rmsnorm_backward(real *dx, real *dgain, const real *dy, const real *x, const real *gain,
                      const real *inverse, size_t rows, size_t width) {
    for (size_t row = 0; row < rows; row++, x += width, dy += width, dx += width) {
        const real s = inverse[row];
        real along = 0;

        for (size_t i = 0; i < width; i++)
            along += gain[i] * dy[i] * x[i];
        along *= s * s * s / (real)width;
        for (size_t i = 0; i < width; i++) {
            dx[i] += s * gain[i] * dy[i] - along * x[i];
            dgain[i] += dy[i] * x[i] * s;
        }
    }
}

static real sigmoid(real x) {
    return 1 / (1 + exp(-x));
}

void swiglu_forward(real *y, const real *gate, const real *up, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

void swiglu_backward(real *dgate, real *dup, const real *dy, const real *gate, const real *up,
                     size_t count) {
    for (size_t i = 0; i < count; i++) {
        const real s = sigmoid(gate[i]);

        dup[i] = dy[i] * gate[i] * s;
        dgate[i] = dy[i] * up[i] * s * (1 + gate[i] * (1 - s));
    }
}

void softmax(real *x, size_t count) {
    real highest = x[0], sum = 0;

    for (size_t i = 1; i < count; i++)
        highest = x[i] > highest ? x[i] : highest;
    for (size_t i = 0; i < count; i++) {
        x[i] = exp(x[i] - highest);
        sum += x[i];
    }
    for (size_t i = 0; i < count; i++)
        x[i] /= sum;
}

void add_to(real *y, const real *x, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}
