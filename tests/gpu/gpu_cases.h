// SPDX-License-Identifier: Apache-2.0
/* Cases that hold on a GPU and on what stands in for one; each prints a line, or ends the program with
 * exit code 1. Sizes grow with `scale`. */
#ifndef TESTS_GPU_CASES_H
#define TESTS_GPU_CASES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scale of 0: as small as 1, without the cases that take long; for sanitizers. */
void encode_cases(uint64_t scale);

/* Two states of which one is in use. */
void second_cases(uint64_t scale);

/* The same from a snapshot in the host's memory. */
void host_cases(uint64_t scale);

/* Partial patches and tiles; 0 as above. */
void part_cases(uint64_t scale);

/* The same where pieces of 2^24 elements end within a region. */
void part_piece_cases(void);

/* Patches at the cast; 0 as above. */
void cast_cases(uint64_t scale);

/* The recorded runs of tests/trace. */
void trace_cases(const char *directory);

/* Publishers and followers on the device. */
void run_cases(uint64_t scale);

/* One tensor of BF16 in device memory: a patch from `old` to `next`, made there and taken there by
 * `old`. Returns its bytes. */
uint64_t step_in_place(uint16_t *old, uint16_t *next, uint64_t elements);

#ifdef __cplusplus
}
#endif

#endif
