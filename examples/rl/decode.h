// SPDX-License-Identifier: Apache-2.0
/* Saying lines byte by byte, many at once: keys and values of what was said are kept. */
#ifndef RL_DECODE_H
#define RL_DECODE_H

#include "model.h"
#include "random.h"
#include "sequence.h"

struct decoder {
    const struct layout *layout;
    size_t rows;
    float *keys[LAYERS_MAX], *values[LAYERS_MAX]; /* [row][time][width] */
    float *x, *n, *q, *mixed, *gate, *up, *active, *chance, *inverse;
};

void decoder_init(struct decoder *decoder, const struct layout *layout, size_t rows);
void decoder_release(struct decoder *decoder);

/*
 * Completes sequences, of which only the prompt is filled in; at most `rows`. Each draws from its own
 * stream, so what it says does not depend on its neighbours.
 */
void decoder_say(struct decoder *decoder, const struct model *model, struct sequence *sequences,
                 struct random *streams, size_t count);

#endif
