// SPDX-License-Identifier: Apache-2.0
/* The BF16 view of FP32 masters: what workers hold, and what is published. */
#ifndef RL_BF16_H
#define RL_BF16_H

#include <stddef.h>
#include <stdint.h>

/* To the nearest, ties to even; what is not a number stays none. */
uint16_t bf16_round(float value);
float bf16_expand(uint16_t bits);

void bf16_round_all(uint16_t *bits, const float *values, size_t count);
void bf16_expand_all(float *values, const uint16_t *bits, size_t count);

/* How many elements differ. */
size_t bf16_changed(const uint16_t *a, const uint16_t *b, size_t count);

#endif
