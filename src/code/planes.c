// SPDX-License-Identifier: Apache-2.0
#include "code/planes.h"

#include "code/fixed.h"

#include <string.h>

/*
 * A plane is coded when that saves at least 1 / 2^WORTH_SHIFT of it. The upper mantissa bits of weights
 * would save 0.3 % of their plane, which is not worth twice the time.
 */
#define WORTH_SHIFT 6

/* Counted by turns, so that equal bytes in a row do not wait for each other. */
#define COUNT_TURNS 4u

/*
 * One pair of functions for each width. Nothing in their loops keeps a compiler from making vectors of
 * them; the pointers are copied because a byte that is stored might be part of anything.
 */
#define DEFINE_WIDTH(WIDTH, TYPE)                                                                  \
    static TYPE load_##WIDTH(const void *from, size_t index) {                                     \
        TYPE value;                                                                                \
                                                                                                   \
        memcpy(&value, (const uint8_t *)from + index * WIDTH, WIDTH);                              \
        return value;                                                                              \
    }                                                                                              \
                                                                                                   \
    static void split_##WIDTH(const void *from, size_t n, bool rotated, uint8_t *const *planes) {  \
        uint8_t *lowest = planes[0];                                                               \
                                                                                                   \
        for (uint32_t p = rotated; p < WIDTH; p++) {                                               \
            uint32_t down = 8 * p - rotated;                                                       \
            uint8_t *plane = planes[p];                                                            \
                                                                                                   \
            for (size_t i = 0; i < n; i++)                                                         \
                plane[i] = (uint8_t)(load_##WIDTH(from, i) >> down);                               \
        }                                                                                          \
        for (size_t i = 0; i < n && rotated; i++) {                                                \
            TYPE value = load_##WIDTH(from, i);                                                    \
                                                                                                   \
            lowest[i] = (uint8_t)(value << 1 | value >> (8 * WIDTH - 1));                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void merge_##WIDTH(const uint8_t *const *planes, size_t n, bool rotated, void *to) {    \
        const uint32_t down = rotated, up = rotated ? 8 * WIDTH - 1 : 0;                           \
        const uint8_t *plane[WIDTH];                                                               \
                                                                                                   \
        memcpy(plane, planes, sizeof plane);                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint64_t wide = 0;                                                                     \
            TYPE value;                                                                            \
                                                                                                   \
            for (uint32_t p = 0; p < WIDTH; p++)                                                   \
                wide |= (uint64_t)plane[p][i] << 8 * p;                                            \
            value = (TYPE)(wide >> down | wide << up);                                             \
            memcpy((uint8_t *)to + i * WIDTH, &value, WIDTH);                                      \
        }                                                                                          \
    }

DEFINE_WIDTH(1, uint8_t)
DEFINE_WIDTH(2, uint16_t)
DEFINE_WIDTH(4, uint32_t)
DEFINE_WIDTH(8, uint64_t)

void planes_split(struct code_kind kind, const void *elements, size_t n, uint8_t *const *planes) {
    const bool rotated = kind.exponent_bits != 0;

    switch (kind.width) {
    case 1:
        split_1(elements, n, rotated, planes);
        break;
    case 2:
        split_2(elements, n, rotated, planes);
        break;
    case 4:
        split_4(elements, n, rotated, planes);
        break;
    default:
        split_8(elements, n, rotated, planes);
    }
}

void planes_merge(struct code_kind kind, const uint8_t *const *planes, size_t n, void *elements) {
    const bool rotated = kind.exponent_bits != 0;

    switch (kind.width) {
    case 1:
        merge_1(planes, n, rotated, elements);
        break;
    case 2:
        merge_2(planes, n, rotated, elements);
        break;
    case 4:
        merge_4(planes, n, rotated, elements);
        break;
    default:
        merge_8(planes, n, rotated, elements);
    }
}

void plane_count(const uint8_t *plane, size_t n, uint64_t *counts) {
    uint32_t partial[COUNT_TURNS][256] = {{0}};
    size_t i = 0;

    for (; i + COUNT_TURNS <= n; i += COUNT_TURNS) {
        for (uint32_t turn = 0; turn < COUNT_TURNS; turn++)
            partial[turn][plane[i + turn]]++;
    }
    for (; i < n; i++)
        partial[0][plane[i]]++;
    for (uint32_t s = 0; s < 256; s++) {
        for (uint32_t turn = 0; turn < COUNT_TURNS; turn++)
            counts[s] += partial[turn][s];
    }
}

/* Bits of the bytes and of the table, with COST_SHIFT fractional bits. */
static uint64_t coded_cost(const uint64_t *counts, const struct plane_model *model) {
    uint64_t cost = 0, table = 2 * 8;

    for (uint32_t s = model->first; s <= model->top; s++) {
        uint32_t share = model->shares.share[s];

        table += 4;
        if (share) {
            cost += counts[s] * ((TANS_LOG << COST_SHIFT) - fixed_log2(share));
            table += 31 - (uint32_t)__builtin_clz(share);
        }
    }
    return cost + (table << COST_SHIFT);
}

uint64_t plane_choose(const uint64_t *counts, struct plane_model *model) {
    uint64_t total = 0, raw, cost;

    memset(model, 0, sizeof *model);
    for (uint32_t s = 256; s-- > 0;) {
        model->first = counts[s] ? (uint8_t)s : model->first;
        model->top = counts[s] && !total ? (uint8_t)s : model->top;
        total += counts[s];
    }
    if (!total)
        return 0;
    tans_normalise(counts, 256, &model->shares);
    raw = 8 * total << COST_SHIFT;
    cost = coded_cost(counts, model);
    model->coded = cost + (raw >> WORTH_SHIFT) < raw;
    return model->coded ? (raw - cost) >> COST_SHIFT : 0;
}
