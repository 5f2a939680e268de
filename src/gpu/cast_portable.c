// SPDX-License-Identifier: Apache-2.0
#include "gpu/cast_portable.h"

#include "cuda/round.h"

#include <string.h>

uint32_t cast_one(struct code_kind kind, uint32_t master) {
    if (kind.width == 4)
        return master;
    return kind.exponent_bits == 8 ? round_to_bf16(master) : round_to_f16(master);
}

static uint32_t element_at(const void *elements, unsigned width, uint32_t i) {
    uint16_t narrow;
    uint32_t wide;

    if (width == 4) {
        memcpy(&wide, (const uint8_t *)elements + (size_t)4 * i, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)elements + (size_t)2 * i, sizeof narrow);
    return narrow;
}

static void set_element(void *elements, unsigned width, uint32_t i, uint32_t value) {
    const uint16_t narrow = (uint16_t)value;

    if (width == 4)
        memcpy((uint8_t *)elements + (size_t)4 * i, &value, sizeof value);
    else
        memcpy((uint8_t *)elements + (size_t)2 * i, &narrow, sizeof narrow);
}

uint32_t cast_portable(struct code_kind kind, const uint32_t *masters, uint32_t elements,
                       void *weights, uint32_t *positions, void *values) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < elements; i++) {
        const uint32_t old = element_at(weights, kind.width, i), new = cast_one(kind, masters[i]);

        if (old == new)
            continue;
        positions[count] = i;
        set_element(values, kind.width, count++, old);
        set_element(weights, kind.width, i, new);
    }
    return count;
}

uint32_t journal_merge_portable(unsigned width, const void *weights, struct journal_entries older,
                                struct journal_entries newer, uint32_t *positions, void *values) {
    uint32_t i = 0, j = 0, count = 0;

    while (i < older.count || j < newer.count) {
        const int take_older =
            j == newer.count || (i < older.count && older.positions[i] <= newer.positions[j]);
        const struct journal_entries *from = take_older ? &older : &newer;
        const uint32_t at = take_older ? i++ : j, position = from->positions[at];
        const uint32_t value = element_at(from->values, width, at);

        if (j < newer.count && newer.positions[j] == position)
            j++; /* taken, or older than it */
        if (value == element_at(weights, width, position))
            continue;
        positions[count] = position;
        set_element(values, width, count++, value);
    }
    return count;
}
