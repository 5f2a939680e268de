// SPDX-License-Identifier: Apache-2.0
/*
 * What the coder knows of an element type: its width, and where its exponent is. The exponent of
 * the old value, which the receiver has too, tells how likely the element is to change and by how
 * much.
 */
#ifndef CODE_KIND_H
#define CODE_KIND_H

#include <stdint.h>

/* Exponents are told apart in a window of this many; what lies outside counts as its edge. */
#define EXPONENT_CELLS 64u

/* The previous move of an element: none, 1, 2, 3-4, 5-8, 9-24, 25 and more ulps. */
#define MOVE_BUCKETS 7u

#define CELLS (MOVE_BUCKETS * EXPONENT_CELLS)

struct code_kind {
    uint8_t width;          /* bytes: 1, 2, 4, 8 */
    uint8_t exponent_shift; /* place of its lowest bit */
    uint8_t exponent_bits;  /* 0: no exponent, all elements are alike */
    uint8_t lowest;         /* exponent of cell 0 */
};

/* Integers, booleans, packed and unknown types have no exponent. */
struct code_kind code_kind_of(const char *dtype, uint32_t bits);

static inline uint32_t code_cell(const struct code_kind *kind, uint64_t old) {
    uint32_t exponent = (uint32_t)(old >> kind->exponent_shift) & ((1u << kind->exponent_bits) - 1);

    if (exponent < kind->lowest)
        return 0;
    exponent -= kind->lowest;
    return exponent < EXPONENT_CELLS ? exponent : EXPONENT_CELLS - 1;
}

static inline uint32_t code_move_bucket(int move) {
    int size = move < 0 ? -move : move;

    return size <= 2 ? (uint32_t)size : size <= 4 ? 3 : size <= 8 ? 4 : size <= 24 ? 5 : 6;
}

#endif
