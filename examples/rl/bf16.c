// SPDX-License-Identifier: Apache-2.0
#include "bf16.h"

#include <string.h>

uint16_t bf16_round(float value) {
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000))
        return (uint16_t)(bits >> 16 | 0x40); /* rounding up could turn it into a number */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float bf16_expand(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return value;
}

void bf16_round_all(uint16_t *bits, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        bits[i] = bf16_round(values[i]);
}

void bf16_expand_all(float *values, const uint16_t *bits, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = bf16_expand(bits[i]);
}

size_t bf16_changed(const uint16_t *a, const uint16_t *b, size_t count) {
    size_t changed = 0;

    for (size_t i = 0; i < count; i++)
        changed += a[i] != b[i];
    return changed;
}
