// SPDX-License-Identifier: Apache-2.0
/*
 * The two walks over the weights. Within each class of a block the elements are numbered; an event's
 * gap is the number of elements of its class between it and the event before. An event is a change,
 * or in a flipped class an element that does not change.
 */
#ifndef CODE_CONTEXT_SCAN_H
#define CODE_CONTEXT_SCAN_H

#include "code/classes.h"
#include "code/code.h"

/* Counts the cells of some of a block's elements: all, or every `stride`-th run of 2048. */
void scan_sample(struct code_kind kind, const struct code_block *block, uint32_t stride,
                 struct cell_counts *counts);

/* Where the encoder's walk puts what it finds: one list per class. */
struct event_list {
    uint32_t *gaps;
    uint64_t *values; /* zigzag of the step, less one; steps against the last move are negated */
    size_t gap_count, value_count;
    size_t gap_room, value_room;
};

/* Adds a block to the lists, which have room for all its elements, and counts what it added. */
void scan_encode(struct code_kind kind, const struct class_map *map, const struct code_block *block,
                 struct event_list *lists, uint64_t *seen);

/* What the decoder's walk is led by, per class: the ranks of the events, ascending, and the values. */
struct event_feed {
    const uint32_t *ranks;
    const uint64_t *values;
    uint32_t events, changes;
};

/* False if an event lies beyond the elements of its class, or a flipped class has more changes left
 * than it should. Writes as many positions and values as the feeds have changes. */
bool scan_decode(struct code_kind kind, const struct class_map *map, const struct code_block *block,
                 const struct event_feed *feeds, uint32_t *positions, void *values);

#endif
