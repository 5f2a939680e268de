// SPDX-License-Identifier: Apache-2.0
/*
 * A pass through the model: forward, to the probability of each next byte, and back, to the gradient of
 *
 *     loss = - sum over tokens of pull[token] * log p(target[token])
 *
 * Learning text has the same pull everywhere; learning by reward pulls by how much better than
 * expected a sample was. Tokens with no pull are padding.
 */
#ifndef RL_PASS_H
#define RL_PASS_H

#include "model.h"

struct pass {
    const struct layout *layout;
    size_t batch_max, time_max;
    size_t batch, time;      /* so many sequences of so many tokens; as many as there is room for */
    uint8_t *input, *target; /* [batch][time] */
    real *chance;            /* [batch][time][VOCABULARY] */
    real *log_chance;        /* [batch][time], of the target */
    real *pull;              /* [batch][time] */

    struct block_kept kept[LAYERS_MAX];
    real *x, *inverse, *n; /* behind the last block */
    real *dx, *dn;
    struct block_work work;
    real *memory;
};

/* `time_max` is at most the layout's context. */
void pass_init(struct pass *pass, const struct layout *layout, size_t batch_max, size_t time_max);
void pass_release(struct pass *pass);

/* Fills in chance and log_chance. */
void pass_forward(struct pass *pass, const struct model *model);

/* After pass_forward(), whose `chance` it uses up: adds to `gradient`. */
void pass_backward(struct pass *pass, const struct model *model, const struct model *gradient);

#endif
