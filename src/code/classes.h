// SPDX-License-Identifier: Apache-2.0
/*
 * Classes: groups of cells that behave alike. Within a class the places of the changes are coded by
 * one geometric distribution and their sizes by one table, so a class is worth having when it saves
 * more bits than its tables cost.
 */
#ifndef CODE_CLASSES_H
#define CODE_CLASSES_H

#include "base/status.h"
#include "code/kind.h"

#include <stdint.h>

#define CLASSES_MAX 16u

/* Sizes of moves, as symbols; the rare ones beyond share the last. */
#define SIZE_SYMBOLS 40u

/* What a sample showed of each cell. */
struct cell_counts {
    uint64_t sampled; /* elements looked at ... */
    uint64_t all;     /* ... out of how many */
    uint32_t seen[CELLS], changed[CELLS];
    uint32_t size[CELLS][SIZE_SYMBOLS];
};

struct class_map {
    uint8_t of[CELLS];
    uint32_t count;
    uint32_t flipped; /* classes from this one on change more often than not */
};

/* `cells` is EXPONENT_CELLS, or CELLS with history; `class_bits` what one more class costs. */
enum ulp_status classes_choose(const struct cell_counts *counts, uint32_t cells,
                               uint64_t class_bits, struct class_map *ret_map);

#endif
