// SPDX-License-Identifier: Apache-2.0
/*
 * The two walks over the weights. Within each class of a block the elements are numbered; an
 * event's gap is the number of elements of its class between it and the event before. An event is a
 * change, or in a flipped class an element that does not change.
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
    uint32_t *values; /* zigzag of the step, less one; steps against the last move are negated */
    uint32_t *upper;  /* 32 bits more of each value, for elements of eight bytes only */
    size_t gap_count, value_count;
    size_t gap_room, value_room, upper_room;
};

/* Numbers that a list must have room for beyond the elements of a block: a walk may write that many
 * more than it counts. */
#define LIST_SLACK 16u

/* Adds a block to the lists, which have room for all its elements, and its elements to what was
 * seen of each class. Writes the changes' positions, for which there is as much room. */
void scan_encode(struct code_kind kind, const struct class_map *map, const struct code_block *block,
                 struct event_list *lists, uint64_t *seen, uint32_t *positions);

/* Entries that must be there behind the ranks and values of the last class: a walk may read that
 * far before it notices that there are too few. */
#define FEED_SLACK 4096u

/* What the decoder's walk is led by, per class: the ranks of the events, ascending and with
 * UINT32_MAX behind them, and the values. */
struct event_feed {
    const uint32_t *ranks;
    const uint32_t *values;
    const uint32_t *upper; /* 32 bits more of each value, for elements of eight bytes only */
    uint32_t events, changes;
};

/* False if an event lies beyond the elements of its class, or a flipped class has more changes left
 * than it should. Writes as many positions and values as the feeds have changes. */
bool scan_decode(struct code_kind kind, const struct class_map *map, const struct code_block *block,
                 const struct event_feed *feeds, uint32_t *positions, void *values);

#endif
