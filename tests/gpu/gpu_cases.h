// SPDX-License-Identifier: Apache-2.0
/* Cases that hold on a GPU and on what stands in for one; each prints a line, or ends the program with
 * exit code 1. Sizes grow with `scale`. */
#ifndef TESTS_GPU_CASES_H
#define TESTS_GPU_CASES_H

#include "cuda/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

void encode_cases(const struct cuda_ops *ops, uint64_t scale);

#ifdef __cplusplus
}
#endif

#endif
