// SPDX-License-Identifier: Apache-2.0
/*
 * What the walks share. A twin takes as many whole groups of 64 elements as it can and leaves its
 * state where the portable walk goes on.
 */
#ifndef CODE_CONTEXT_WALK_H
#define CODE_CONTEXT_WALK_H

#include "code/context_scan.h"
#include "code/symbols.h"

#include <string.h>

#define WALK_GROUP 64u

/* The previous moves of a block, met in order. */
struct history {
    const struct code_move *next, *end;
    uint32_t position; /* of the next one; UINT32_MAX behind the last */
};

static inline void history_step(struct history *history) {
    history->position = history->next == history->end ? UINT32_MAX : history->next->position;
}

static inline struct history history_of(const struct code_block *block) {
    struct history history = {block->moves, block->moves, 0};

    if (block->move_count) /* there may be no array at all */
        history.end += block->move_count;
    history_step(&history);
    return history;
}

static inline int history_take(struct history *history) {
    int move = history->next++->move;

    history_step(history);
    return move;
}

static inline uint32_t moved_cell(struct code_kind kind, uint64_t old, int move) {
    return code_cell(&kind, old) + EXPONENT_CELLS * code_move_bucket(move);
}

/* 0, -1, 1, -2, ... become 0, 1, 2, 3, ...; a step is never zero, so one is taken off. */
static inline uint64_t value_of_step(int64_t step, uint64_t mask) {
    uint64_t zigzag = (uint64_t)step << 1 ^ (uint64_t)(step >> 63);

    return (zigzag & mask) - 1;
}

static inline uint64_t step_of_value(uint64_t value) {
    uint64_t zigzag = value + 1;

    return zigzag >> 1 ^ (0 - (zigzag & 1));
}

/* ---- encoding ---- */

struct encode_walk {
    struct code_kind kind;
    const struct class_map *map;
    const struct code_block *block;
    struct event_list *lists;
    uint32_t *positions; /* where the next change's goes */
    struct history history;
    uint32_t at;                /* the first element that was not walked yet */
    uint64_t rank[CLASSES_MAX]; /* elements of each class so far */
    uint32_t next[CLASSES_MAX]; /* one behind the last event of each class */
};

static inline void walk_event(struct encode_walk *walk, uint32_t class, uint32_t rank) {
    struct event_list *list = &walk->lists[class];

    list->gaps[list->gap_count++] = rank - walk->next[class];
    walk->next[class] = rank + 1;
}

static inline void walk_change(struct encode_walk *walk, uint32_t class, uint32_t position,
                               uint64_t value, bool wide) {
    struct event_list *list = &walk->lists[class];

    list->values[list->value_count] = (uint32_t)value;
    if (wide)
        list->upper[list->value_count] = (uint32_t)(value >> 32);
    list->value_count++;
    *walk->positions++ = position;
}

/* ---- decoding ---- */

struct decode_walk {
    struct code_kind kind;
    const struct class_map *map;
    const struct code_block *block;
    const struct event_feed *feeds;
    struct history history;
    uint32_t at;
    uint32_t until[CLASSES_MAX]; /* elements of each class before its next event */
    uint32_t event[CLASSES_MAX], change[CLASSES_MAX]; /* how many were met */
    size_t found, room;                               /* changes so far, and in all */
    uint32_t *positions;
    void *values;
};

/* Counts an element of a class, and tells whether it is an event. */
static inline bool walk_is_event(struct decode_walk *walk, uint32_t class) {
    const uint32_t *ranks;

    if (__builtin_expect(walk->until[class]-- != 0, 1))
        return false;
    ranks = walk->feeds[class].ranks + walk->event[class]++;
    walk->until[class] = ranks[1] - ranks[0] - 1;
    return true;
}

/* Takes the step of the next change; false when the class has none left. */
static inline bool walk_step(struct decode_walk *walk, uint32_t class, uint64_t *ret_step) {
    const struct event_feed *feed = &walk->feeds[class];
    uint32_t change = walk->change[class];
    uint64_t upper;

    if (change == feed->changes)
        return false;
    upper = feed->upper ? feed->upper[change] : 0;
    *ret_step = step_of_value(upper << 32 | feed->values[change]);
    walk->change[class]++;
    return true;
}

/* ---- twins for AVX-512 with VBMI, elements of two bytes ---- */

void encode_walk_avx512(struct encode_walk *walk);

/* The cells of groups of elements that did not move, and which of them change. `cell_of` has 128
 * exponents; `ahead` are the bytes from here to what is looked at next. */
void sample_groups_avx512(struct code_kind kind, const uint8_t *cell_of, const uint8_t *old,
                          const uint8_t *new, uint32_t groups, size_t ahead, uint8_t *cells,
                          uint64_t *changed);
bool decode_walk_avx512(struct decode_walk *walk);

#endif
