// SPDX-License-Identifier: Apache-2.0
/* What casting in place and merging journals are, in plain C: the twins of cuda/cast.cu and
 * cuda/journal.cu, on a block in the host's memory. */
#ifndef GPU_CAST_PORTABLE_H
#define GPU_CAST_PORTABLE_H

#include "code/kind.h"

#include <stddef.h>

/* What a master's bits become in an element of this kind. */
uint32_t cast_one(struct code_kind kind, uint32_t master);

/* Casts `elements` masters into `weights` and lists what was there where something changes; both lists
 * have room for all elements. Returns how many there are. */
uint32_t cast_portable(struct code_kind kind, const uint32_t *masters, uint32_t elements,
                       void *weights, uint32_t *positions, void *values);

/* Entries of a block: ascending positions, values of the block's width. */
struct journal_entries {
    const uint32_t *positions;
    const void *values;
    uint32_t count;
};

/* The entries for both, of which there may be as many as in both; see cuda_journal_merge(). */
uint32_t journal_merge_portable(unsigned width, const void *weights, struct journal_entries older,
                                struct journal_entries newer, uint32_t *positions, void *values);

#endif
