// SPDX-License-Identifier: Apache-2.0
/*
 * What changed from one state to the next, as counters: elements and changes by the exponent of the
 * old value, and changes by their step. Everything that is said about a step (density, profile,
 * histogram, recurrence, entropy floors) is computed from these.
 *
 *     struct study_counts *counts = study_counts_new(code_kind_of("BF16", 16));
 *     study_count(counts, before, old, new, elements);     once for each run of elements
 *     struct study_floor floor = study_floor(counts);      entropy.h
 *     free(counts);
 *
 * Elements are bit patterns in words of kind.width bytes; `before`, which may be NULL, is the state
 * before `old` and gives the previous moves. Some 3 GB of a state in a second and thread. Counters
 * of several threads, or of several steps, are added.
 */
#ifndef STUDY_COUNTS_H
#define STUDY_COUNTS_H

#include "code/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A step is the difference of two bit patterns at the element's width, so it has a sign. Sizes up
 * to STUDY_EXACT have a symbol each, larger ones one for each octave (65-128, 129-256, ...); which of
 * an octave it is counts as so many bits. Positive steps come first.
 */
#define STUDY_EXACT 64u
#define STUDY_SIZES (STUDY_EXACT + 57u) /* the last octave ends at 2^63 */
#define STUDY_SYMBOLS (2u * STUDY_SIZES)

/* What one context saw: its changes, by symbol. */
typedef uint64_t study_steps[STUDY_SYMBOLS];

struct study_counts {
    struct code_kind kind;
    uint64_t elements[EXPONENT_CELLS];
    study_steps steps[EXPONENT_CELLS];

    /* The same elements and changes by the size of the element's previous move as well, of those
     * whose state before was given. Steps have the sign of the previous move taken off, so the
     * positive ones go on in the same direction; without a previous move they are as they are. */
    uint64_t told[EXPONENT_CELLS]; /* elements whose previous move is known, be it none */
    uint64_t moved[MOVE_BUCKETS][EXPONENT_CELLS]; /* [0] is not used */
    study_steps steps_after[MOVE_BUCKETS][EXPONENT_CELLS];
};

/* Zeroed; NULL when memory is short. To be freed with free(). */
struct study_counts *study_counts_new(struct code_kind kind);

void study_count(struct study_counts *counts, const void *before, const void *old, const void *new,
                 size_t elements);

/* The two halves of it, for who wants the changes one by one too: the elements and their previous
 * moves; then the changes, at places that study_changes() found. */
void study_count_elements(struct study_counts *counts, const void *before, const void *old,
                          size_t elements);
void study_count_changes(struct study_counts *counts, const void *before, const void *old,
                         const void *new, const uint32_t *places, size_t count);

/* Places in which the elements differ, ascending. There is room for `elements` of them. */
size_t study_changes(const void *old, const void *new, unsigned width, size_t elements,
                     uint32_t *ret_places);

/* Adds `from` to `to`, both of one kind. */
void study_counts_add(struct study_counts *to, const struct study_counts *from);

/* One element, and the step between two, with its sign. */
uint64_t study_word(const void *data, size_t element, unsigned width);
int64_t study_step(uint64_t old, uint64_t new, unsigned width);

/* ---- what they say ---- */

/* The symbol of a step that is not 0; the smallest size that a symbol stands for; how many raw bits
 * it leaves open. */
unsigned study_symbol(int64_t step);
uint64_t study_symbol_size(unsigned symbol);
unsigned study_symbol_bits(unsigned symbol);

/* For people: sizes 1, 2, 3-4, 5-8, 9-16, ... as buckets 0, 1, 2, 3, 4, ... */
#define STUDY_BUCKETS 64u
unsigned study_symbol_bucket(unsigned symbol);

uint64_t study_total(const uint64_t *counters, size_t count);
uint64_t study_changed(const struct study_counts *counts);

/* Changes of elements that had moved in the step before, and those of them that went on in the same
 * direction; `of` is how many changes had a step before them. */
struct study_recurrence {
    uint64_t of, again, same;
};
struct study_recurrence study_recurrence(const struct study_counts *counts);

#endif
