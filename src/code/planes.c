// SPDX-License-Identifier: Apache-2.0
#include "code/planes.h"

#include "code/fixed.h"

#include <string.h>

/*
 * A plane is coded when that saves at least 1 / 2^WORTH_SHIFT of it. The mantissas of BF16 weights
 * would make the whole 0.2 % smaller, and both ways take half as long again.
 */
#define WORTH_SHIFT 6

/* Counted by turns, so that equal bytes in a row do not wait for each other. */
#define COUNT_TURNS 4u

/*
 * One pair of functions for each width. They work on short copies, because loops of a fixed length
 * over arrays that cannot overlap are what every compiler makes vectors of.
 */
#define CHUNK 256u

#define DEFINE_WIDTH(WIDTH, TYPE)                                                                  \
    static void split_##WIDTH(const uint8_t *from, size_t n, bool rotated,                         \
                              uint8_t *const *planes) {                                            \
        TYPE values[CHUNK] = {0};                                                                  \
        uint8_t bytes[CHUNK];                                                                      \
                                                                                                   \
        for (size_t at = 0; at < n; at += CHUNK) {                                                 \
            size_t some = n - at < CHUNK ? n - at : CHUNK;                                         \
                                                                                                   \
            memcpy(values, from + at * WIDTH, some * WIDTH);                                       \
            for (uint32_t i = 0; i < CHUNK && rotated; i++)                                        \
                values[i] = (TYPE)(values[i] << 1 | values[i] >> (8 * WIDTH - 1));                 \
            for (uint32_t p = 0; p < WIDTH; p++) {                                                 \
                for (uint32_t i = 0; i < CHUNK; i++)                                               \
                    bytes[i] = (uint8_t)(values[i] >> 8 * p);                                      \
                memcpy(planes[p] + at, bytes, some);                                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void merge_##WIDTH(const uint8_t *const *planes, size_t n, bool rotated, uint8_t *to) { \
        TYPE values[CHUNK];                                                                        \
        uint8_t bytes[CHUNK] = {0};                                                                \
                                                                                                   \
        for (size_t at = 0; at < n; at += CHUNK) {                                                 \
            size_t some = n - at < CHUNK ? n - at : CHUNK;                                         \
                                                                                                   \
            memset(values, 0, sizeof values);                                                      \
            for (uint32_t p = 0; p < WIDTH; p++) {                                                 \
                memcpy(bytes, planes[p] + at, some);                                               \
                for (uint32_t i = 0; i < CHUNK; i++)                                               \
                    values[i] = (TYPE)(values[i] | (TYPE)bytes[i] << 8 * p);                       \
            }                                                                                      \
            for (uint32_t i = 0; i < CHUNK && rotated; i++)                                        \
                values[i] = (TYPE)(values[i] >> 1 | values[i] << (8 * WIDTH - 1));                 \
            memcpy(to + at * WIDTH, values, some * WIDTH);                                         \
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
