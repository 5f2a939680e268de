// SPDX-License-Identifier: Apache-2.0
/* States for cases of partial patches: in host memory and on the device, and regions of them at random. */
#ifndef TESTS_GPU_PART_STATES_H
#define TESTS_GPU_PART_STATES_H

#include "gpu_step.h"

#define PARTS_MAX 4
#define BOXES_MAX 256

uint64_t part_random(void);

struct part_shape {
    const char *dtype;
    uint64_t rows, columns; /* rows 0: one extent */
};

/* Tensors in host memory of their own. */
struct part_state {
    struct ulp_tensor *tensors;
    size_t count;
};

struct part_state state_random(const struct part_shape *shapes, size_t count);
struct part_state state_like(const struct part_state *from);
void state_release(struct part_state *state);

/* One element in `every` steps; 1: all of them become something else. */
void state_move(struct part_state *state, uint32_t every);

/* What stands outside of the regions becomes garbage. */
void state_spoil(struct part_state *state, const struct ulp_region *regions, size_t count);

/* The regions become those of `from`. */
void state_take(struct part_state *state, const struct part_state *from,
                const struct ulp_region *regions, size_t count);

/* The device has the same bits. */
void must_be_on(const struct uploaded *device, const struct part_state *state, const char *name);

/* A state cut up: each tensor whole, or in bands of rows or columns, or both; each box in one of the parts.
 * With `holes` some are in none. */
struct part_regions {
    struct ulp_region boxes[PARTS_MAX][BOXES_MAX];
    size_t count[PARTS_MAX];
    size_t parts;
    bool complete;
};
void cut_at_random(const struct part_state *state, size_t parts, bool holes,
                   struct part_regions *ret_regions);

/* How many of them are bands of columns, whose rows lie apart. */
size_t count_bands(const struct part_state *state, const struct part_regions *regions);

/* Two parts as one list, in order. */
size_t merge_parts(const struct part_regions *regions, size_t a, size_t b, struct ulp_region *to);

#endif
