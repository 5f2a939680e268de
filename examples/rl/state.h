// SPDX-License-Identifier: Apache-2.0
/* The BF16 view as tensors that ulpsync knows: the same memory, with names. */
#ifndef RL_STATE_H
#define RL_STATE_H

#include "model.h"

#include <ulpsync/ulpsync.h>

struct state {
    const struct layout *layout;
    uint16_t *bits;
    struct ulp_tensor tensors[PARAMETERS_MAX];
};

enum ulp_status state_init(struct state *state, const struct layout *layout);
void state_release(struct state *state);
enum ulp_status state_root(const struct state *state, struct ulp_root *ret_root);

/* Masters in a safetensors file, for runs that start from the same ones. */
enum ulp_status masters_save(const struct layout *layout, float *masters, const char *path);
enum ulp_status masters_load(const struct layout *layout, float *masters, const char *path);

#endif
