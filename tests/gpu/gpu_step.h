// SPDX-License-Identifier: Apache-2.0
/*
 * One step of a model, made into a patch on the device and on the CPU, which must give the same bytes,
 * and taken by both. Without a test framework, so that it builds where nothing can be installed: what
 * does not hold ends the program with exit code 1.
 */
#ifndef TESTS_GPU_STEP_H
#define TESTS_GPU_STEP_H

#include "gpu/device_weights.h"

#include <stdbool.h>

void must(enum ulp_status status, const char *doing);
void must_hold(bool holds, const char *what, const char *name, size_t where);
void *must_alloc(size_t bytes); /* zeroed */

/* The next of a series of numbers. */
uint64_t random_after(uint64_t *state);

/* Tensors in device memory. */
struct uploaded {
    struct ulp_tensor *tensors;
    void **memory;
    size_t count;
};

/* `shift` bytes off the alignment. */
struct uploaded upload(const struct ulp_tensor *tensors, size_t count, size_t shift);
void release(struct uploaded *uploaded);

/* The patch to `next` with whatever history there is, by both, and both take it and remember. */
struct ulp_diff_report step(const char *name, struct device_weights *weights,
                            struct ulp_weights *twin, const struct uploaded *next,
                            const struct ulp_tensor *next_twin);

#endif
