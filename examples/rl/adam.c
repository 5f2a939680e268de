// SPDX-License-Identifier: Apache-2.0
#include "adam.h"

#include "memory.h"

#include <math.h>
#include <string.h>

#define MEAN_DECAY 0.9
#define SQUARE_DECAY 0.99

#define LENGTH_MAX 1.0

void adam_init(struct adam *adam, size_t count, double floor) {
    *adam = (struct adam){.count = count,
                          .floor = floor,
                          .mean = zeroed(count, sizeof(float)),
                          .square = zeroed(count, sizeof(float)),
                          .mean_left = 1,
                          .square_left = 1};
}

void adam_release(struct adam *adam) {
    free(adam->mean);
    free(adam->square);
    memset(adam, 0, sizeof *adam);
}

static double length(const float *x, size_t count) {
    double squares = 0;

    for (size_t i = 0; i < count; i++)
        squares += (double)x[i] * x[i];
    return sqrt(squares);
}

double adam_step(struct adam *adam, float *parameters, const float *gradient, double rate) {
    const double norm = length(gradient, adam->count);
    const float cut = norm > LENGTH_MAX ? (float)(LENGTH_MAX / norm) : 1;
    const float keep = (float)MEAN_DECAY, keep_square = (float)SQUARE_DECAY;
    const float floor = (float)adam->floor;
    float step, scale;

    adam->mean_left *= MEAN_DECAY;
    adam->square_left *= SQUARE_DECAY;
    step = (float)(rate / (1 - adam->mean_left));
    scale = (float)(1 / sqrt(1 - adam->square_left));
    for (size_t i = 0; i < adam->count; i++) {
        const float g = gradient[i] * cut;

        adam->mean[i] = keep * adam->mean[i] + (1 - keep) * g;
        adam->square[i] = keep_square * adam->square[i] + (1 - keep_square) * g * g;
        parameters[i] -= step * adam->mean[i] / (sqrtf(adam->square[i]) * scale + floor);
    }
    return norm;
}
