// SPDX-License-Identifier: Apache-2.0
/* States in what the kernels take for device memory. */
#ifndef TESTS_GPU_EMULATED_DEVICE_H
#define TESTS_GPU_EMULATED_DEVICE_H

#include "tests/patch/state.h"

#include "code/segment.h"
#include "gpu/device_apply.h"
#include "patch/apply.h"

/* After so many launches each is refused, as a GPU may. UINT_MAX: never. */
extern unsigned emulate_launches_left;

/* Each tensor in memory of just its size, so that a sanitizer sees what is touched beside it. */
struct on_device {
    struct ulp_tensor *tensors;
    void **memory;
    size_t count;
};

/* Tensors begin `skew` elements behind an aligned address. */
struct on_device device_copy(const struct state *state, size_t skew);
void device_release(struct on_device *device);
void assert_on_device(const struct on_device *device, const struct state *state);

struct device_weights *device_weights_of(const struct on_device *device);

/* Sums, root and moves are those of weights in the host's memory. */
void assert_same_weights(const struct device_weights *device, const struct ulp_weights *host);

#endif
