// SPDX-License-Identifier: Apache-2.0
/*
 * The policy: a decoder-only transformer over bytes. All parameters lie in one array; a layout says
 * which is where and what it is called. Masters, their BF16 view, gradients and the optimiser's
 * moments are arrays of the same layout.
 */
#ifndef RL_MODEL_H
#define RL_MODEL_H

#include "block.h"

#include <stdint.h>

#define VOCABULARY 256
#define LAYERS_MAX 16
#define PARAMETERS_MAX (4 + 9 * LAYERS_MAX)

struct dims {
    size_t context, width, heads, hidden, layers;
};

struct parameter {
    char name[64];
    uint64_t shape[2];
    unsigned rank;
    size_t offset, count;
    double spread; /* of the normal distribution that it starts with; 0: all ones */
};

struct layout {
    struct dims dims;
    struct parameter parameters[PARAMETERS_MAX];
    size_t count, total;
};

/* The same parameters by their use. */
struct model {
    real *tokens, *positions;
    struct block blocks[LAYERS_MAX];
    real *norm, *head;
};

/* The model of the demo: 1.0 M parameters. */
extern const struct dims dims_default;

void layout_make(const struct dims *dims, struct layout *ret_layout);
void model_start(const struct layout *layout, uint64_t seed, real *parameters);
void model_view(const struct layout *layout, real *parameters, struct model *ret_model);

#endif
