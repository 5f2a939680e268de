// SPDX-License-Identifier: Apache-2.0
/*
 * The numbers that the model computes with: float. Tests compile the same sources with RL_DOUBLE,
 * where finite differences are exact enough to find any mistake in a gradient.
 */
#ifndef RL_REAL_H
#define RL_REAL_H

#include <cblas.h>

#ifdef RL_DOUBLE
typedef double real;
#define blas_gemm cblas_dgemm
#else
typedef float real;
#define blas_gemm cblas_sgemm
#endif

#endif
