// SPDX-License-Identifier: Apache-2.0
/* Cases that hold on a GPU and on what stands in for one; each prints a line, or ends the program with
 * exit code 1. Sizes grow with `scale`. */
#ifndef TESTS_GPU_CASES_H
#define TESTS_GPU_CASES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void encode_cases(uint64_t scale);

#ifdef __cplusplus
}
#endif

#endif
