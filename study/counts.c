// SPDX-License-Identifier: Apache-2.0
#include "study/counts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Elements that are looked at while they are in the caches: by exponent, and for changes. */
#define BLOCK 65536u
#define STRETCH 4096u

/* Consecutive elements go to different counters, since they often have the same exponent and a
 * counter takes some cycles until it can be counted up again. */
#define COPIES 8u
#define EXPONENTS_MAX 2048u

typedef uint32_t tallies[EXPONENTS_MAX][COPIES];

struct study_counts *study_counts_new(struct code_kind kind) {
    struct study_counts *counts = calloc(1, sizeof *counts);

    if (counts)
        counts->kind = kind;
    return counts;
}

static inline uint64_t word_at(const uint8_t *data, size_t element, unsigned width) {
    uint8_t byte;
    uint16_t half;
    uint32_t single;
    uint64_t twice;

    switch (width) {
    case 1:
        memcpy(&byte, data + element, sizeof byte);
        return byte;
    case 2:
        memcpy(&half, data + 2 * element, sizeof half);
        return half;
    case 4:
        memcpy(&single, data + 4 * element, sizeof single);
        return single;
    default:
        memcpy(&twice, data + 8 * element, sizeof twice);
        return twice;
    }
}

uint64_t study_word(const void *data, size_t element, unsigned width) {
    return word_at(data, element, width);
}

int64_t study_step(uint64_t old, uint64_t new, unsigned width) {
    const unsigned spare = 64 - 8 * width;

    return (int64_t)((new - old) << spare) >> spare;
}

/* ---- which elements changed ---- */

/* 64 bytes are compared at once: at one change in a hundred most of them hold none. */
#define STRIDE 64u

static inline bool stride_differs(const uint8_t *a, const uint8_t *b) {
    uint64_t x[STRIDE / 8], y[STRIDE / 8], differs = 0;

    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (unsigned i = 0; i < STRIDE / 8; i++)
        differs |= x[i] ^ y[i];
    return differs != 0;
}

static inline bool word_differs(const uint8_t *a, const uint8_t *b) {
    return word_at(a, 0, 8) != word_at(b, 0, 8);
}

static inline size_t changes_of_width(const uint8_t *old, const uint8_t *new, unsigned width,
                                      size_t elements, uint32_t *places) {
    const size_t each = STRIDE / width, lanes = 8 / width;
    size_t count = 0, i = 0;

    for (; i + each <= elements; i += each) {
        if (!stride_differs(old + i * width, new + i *width))
            continue;
        for (size_t word = i; word < i + each; word += lanes) {
            if (!word_differs(old + word * width, new + word *width))
                continue;
            for (size_t k = word; k < word + lanes; k++) {
                places[count] = (uint32_t)k;
                count += word_at(old, k, width) != word_at(new, k, width);
            }
        }
    }
    for (; i < elements; i++) {
        places[count] = (uint32_t)i;
        count += word_at(old, i, width) != word_at(new, i, width);
    }
    return count;
}

size_t study_changes(const void *old, const void *new, unsigned width, size_t elements,
                     uint32_t *ret_places) {
    switch (width) { /* a loop for each */
    case 1:
        return changes_of_width(old, new, 1, elements, ret_places);
    case 2:
        return changes_of_width(old, new, 2, elements, ret_places);
    case 4:
        return changes_of_width(old, new, 4, elements, ret_places);
    default:
        return changes_of_width(old, new, 8, elements, ret_places);
    }
}

/* ---- elements by exponent ---- */

static inline void tally_of_width(tallies seen, const uint8_t *data, unsigned width, unsigned shift,
                                  uint32_t mask, size_t elements) {
    size_t i = 0;

    for (; i + COPIES <= elements; i += COPIES) {
        for (unsigned t = 0; t < COPIES; t++)
            seen[(uint32_t)(word_at(data, i + t, width) >> shift) & mask][t]++;
    }
    for (; i < elements; i++)
        seen[(uint32_t)(word_at(data, i, width) >> shift) & mask][0]++;
}

static void tally(tallies seen, const struct code_kind *kind, const uint8_t *data,
                  size_t elements) {
    const uint32_t mask = (1u << kind->exponent_bits) - 1;

    switch (kind->width) {
    case 1:
        tally_of_width(seen, data, 1, kind->exponent_shift, mask, elements);
        break;
    case 2:
        tally_of_width(seen, data, 2, kind->exponent_shift, mask, elements);
        break;
    case 4:
        tally_of_width(seen, data, 4, kind->exponent_shift, mask, elements);
        break;
    default:
        tally_of_width(seen, data, 8, kind->exponent_shift, mask, elements);
    }
}

static void tally_elements(struct study_counts *counts, const uint8_t *old, size_t elements,
                           bool told) {
    const struct code_kind *kind = &counts->kind;
    const uint32_t exponents = 1u << kind->exponent_bits;
    tallies seen;

    memset(seen, 0, exponents * sizeof seen[0]);
    if (kind->exponent_bits)
        tally(seen, kind, old, elements);
    else
        seen[0][0] = (uint32_t)elements;
    for (uint32_t e = 0; e < exponents; e++) {
        const uint32_t cell = code_cell(kind, (uint64_t)e << kind->exponent_shift);
        uint64_t sum = 0;

        for (unsigned t = 0; t < COPIES; t++)
            sum += seen[e][t];
        counts->elements[cell] += sum;
        if (told)
            counts->told[cell] += sum;
    }
}

/* ---- changes by step ---- */

unsigned study_symbol(int64_t step) {
    const uint64_t size = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    const unsigned octave = 63 - (unsigned)__builtin_clzll((size - 1) | 1);
    const unsigned symbol = size <= STUDY_EXACT ? (unsigned)size - 1 : STUDY_EXACT + octave - 6;

    return step < 0 ? STUDY_SIZES + symbol : symbol;
}

uint64_t study_symbol_size(unsigned symbol) {
    const unsigned size = symbol % STUDY_SIZES;

    return size < STUDY_EXACT ? size + 1 : (UINT64_C(1) << (size - STUDY_EXACT + 6)) + 1;
}

unsigned study_symbol_bits(unsigned symbol) {
    const unsigned size = symbol % STUDY_SIZES;

    return size < STUDY_EXACT ? 0 : size - STUDY_EXACT + 6;
}

unsigned study_symbol_bucket(unsigned symbol) {
    const uint64_t size = study_symbol_size(symbol);

    return size == 1 ? 0 : 64 - (unsigned)__builtin_clzll(size - 1);
}

static unsigned bucket_of(int64_t move) {
    return code_move_bucket(move > 25 ? 25 : move < -25 ? -25 : (int)move);
}

/* Elements that moved before, by exponent: the others follow by subtraction. */
static void count_moved(struct study_counts *counts, const uint8_t *before, const uint8_t *old,
                        const uint32_t *places, size_t count) {
    const unsigned width = counts->kind.width;

    for (size_t i = 0; i < count; i++) {
        const uint64_t now = word_at(old, places[i], width);
        const int64_t move = study_step(word_at(before, places[i], width), now, width);

        counts->moved[bucket_of(move)][code_cell(&counts->kind, now)]++;
    }
}

void study_count_changes(struct study_counts *counts, const void *before, const void *old,
                         const void *new, const uint32_t *places, size_t count) {
    const unsigned width = counts->kind.width;

    for (size_t i = 0; i < count; i++) {
        const uint64_t now = word_at(old, places[i], width);
        const int64_t step = study_step(now, word_at(new, places[i], width), width);
        const uint32_t cell = code_cell(&counts->kind, now);
        const unsigned symbol = study_symbol(step);
        int64_t move;

        counts->steps[cell][symbol]++;
        if (!before)
            continue;
        move = study_step(word_at(before, places[i], width), now, width);
        counts->steps_after[bucket_of(move)][cell]
                           [move < 0 ? (symbol + STUDY_SIZES) % STUDY_SYMBOLS : symbol]++;
    }
}

void study_count_elements(struct study_counts *counts, const void *before, const void *old,
                          size_t elements) {
    const unsigned width = counts->kind.width;
    uint32_t places[STRETCH];

    for (size_t first = 0; first < elements; first += BLOCK) {
        const size_t block = elements - first < BLOCK ? elements - first : BLOCK;

        tally_elements(counts, (const uint8_t *)old + first * width, block, before != NULL);
    }
    for (size_t first = 0; before && first < elements; first += STRETCH) {
        const size_t stretch = elements - first < STRETCH ? elements - first : STRETCH;
        const uint8_t *last = (const uint8_t *)before + first * width;
        const uint8_t *now = (const uint8_t *)old + first * width;

        count_moved(counts, last, now, places, study_changes(last, now, width, stretch, places));
    }
}

void study_count(struct study_counts *counts, const void *before, const void *old, const void *new,
                 size_t elements) {
    const unsigned width = counts->kind.width;
    uint32_t places[STRETCH];

    study_count_elements(counts, before, old, elements);
    for (size_t first = 0; first < elements; first += STRETCH) {
        const size_t stretch = elements - first < STRETCH ? elements - first : STRETCH;
        const size_t at = first * width;
        const uint8_t *now = (const uint8_t *)old + at, *next = (const uint8_t *)new + at;

        study_count_changes(counts, before ? (const uint8_t *)before + at : NULL, now, next, places,
                            study_changes(now, next, width, stretch, places));
    }
}

/* ---- sums ---- */

static void add(uint64_t *to, const uint64_t *from, size_t count) {
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

void study_counts_add(struct study_counts *to, const struct study_counts *from) {
    add(to->elements, from->elements, EXPONENT_CELLS);
    add(to->told, from->told, EXPONENT_CELLS);
    for (unsigned e = 0; e < EXPONENT_CELLS; e++)
        add(to->steps[e], from->steps[e], STUDY_SYMBOLS);
    for (unsigned b = 0; b < MOVE_BUCKETS; b++) {
        add(to->moved[b], from->moved[b], EXPONENT_CELLS);
        for (unsigned e = 0; e < EXPONENT_CELLS; e++)
            add(to->steps_after[b][e], from->steps_after[b][e], STUDY_SYMBOLS);
    }
}

uint64_t study_total(const uint64_t *counters, size_t count) {
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += counters[i];
    return sum;
}

uint64_t study_changed(const struct study_counts *counts) {
    uint64_t sum = 0;

    for (unsigned e = 0; e < EXPONENT_CELLS; e++)
        sum += study_total(counts->steps[e], STUDY_SYMBOLS);
    return sum;
}

struct study_recurrence study_recurrence(const struct study_counts *counts) {
    struct study_recurrence found = {0};

    for (unsigned b = 0; b < MOVE_BUCKETS; b++) {
        for (unsigned e = 0; e < EXPONENT_CELLS; e++) {
            const uint64_t *steps = counts->steps_after[b][e];
            const uint64_t same = study_total(steps, STUDY_SIZES);
            const uint64_t all = same + study_total(steps + STUDY_SIZES, STUDY_SIZES);

            found.of += all;
            found.again += b ? all : 0;
            found.same += b ? same : 0;
        }
    }
    return found;
}
