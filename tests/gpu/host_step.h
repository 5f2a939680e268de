// SPDX-License-Identifier: Apache-2.0
/* The same steps with the old weights in the host's memory, pinned or not, which the device sees through
 * windows. What does not hold ends the program with exit code 1. */
#ifndef TESTS_GPU_HOST_STEP_H
#define TESTS_GPU_HOST_STEP_H

#include "gpu_step.h"

struct host_source {
    bool pinned;
    size_t window_bytes; /* 0: as usual; 1: a window for each chunk */
    size_t shift;        /* bytes off the alignment */
    bool broken;         /* a diff breaks off in front of each */
};

/* From states[0] over all others, which are on the device too: patches with history have the bytes of
 * the CPU's, the snapshot is not written, and takes each patch. Returns the device memory that was
 * held in the end. */
size_t host_steps(const char *name, struct ulp_tensor *const *states, const struct uploaded *on,
                  size_t state_count, struct host_source source);

#endif
