// SPDX-License-Identifier: Apache-2.0
/*
 * For AMD since Zen 4 and Intel since Ice Lake. 4096 elements at a time: a byte permutation maps their
 * exponents to classes, one comparison per class and 64 elements gives the places of its elements,
 * and prefix sums of population counts give their ranks. So an event's rank is a table entry and one
 * population count, and a rank's place is a search in a vector and one bit deposit; neither depends
 * on the element before.
 */
#include "code/context_walk.h"

#include <immintrin.h>

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt,bmi,bmi2")))

#define GROUPS 64u
#define CHUNK (GROUPS * WALK_GROUP)

struct chunk {
    uint8_t class[CHUNK] __attribute__((aligned(64)));
    uint64_t mask[CLASSES_MAX][GROUPS] __attribute__((aligned(64))); /* a bit per element */
    uint16_t before[CLASSES_MAX][GROUPS]
        __attribute__((aligned(64))); /* elements in front of a group */
    uint32_t count[CLASSES_MAX];
    uint64_t flagged[GROUPS];   /* elements to look at */
    uint16_t places[CHUNK + 2]; /* ... as a list */
    int8_t moves[CHUNK];
    bool moved;
};

struct classifier {
    __m512i class_of_cell;
    __m128i shift;
    __m512i exponent_mask; /* of 16-bit lanes */
    __m512i lowest;        /* of bytes */
};

TARGET static inline struct classifier classifier_of(struct code_kind kind,
                                                     const struct class_map *map) {
    return (struct classifier){_mm512_loadu_si512(map->of), _mm_cvtsi32_si128(kind.exponent_shift),
                               _mm512_set1_epi16((short)((1u << kind.exponent_bits) - 1)),
                               _mm512_set1_epi8((char)kind.lowest)};
}

/* Exponents as bytes in element order: packing works in 128-bit lanes, so their halves are put back
 * into place. */
TARGET static inline __m512i exponents(const struct classifier *c, const uint8_t *elements) {
    const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    __m512i low = _mm512_srl_epi16(_mm512_loadu_si512(elements), c->shift);
    __m512i high = _mm512_srl_epi16(_mm512_loadu_si512(elements + 64), c->shift);

    low = _mm512_and_si512(low, c->exponent_mask);
    high = _mm512_and_si512(high, c->exponent_mask);
    return _mm512_permutexvar_epi64(order, _mm512_packus_epi16(low, high));
}

TARGET static inline void classify(const struct classifier *c, const uint8_t *elements,
                                   struct chunk *chunk) {
    for (uint32_t g = 0; g < GROUPS; g++) {
        __m512i cell = _mm512_subs_epu8(exponents(c, elements + 128 * g), c->lowest);

        cell = _mm512_min_epu8(cell, _mm512_set1_epi8(EXPONENT_CELLS - 1));
        _mm512_store_si512(chunk->class + WALK_GROUP * g,
                           _mm512_permutexvar_epi8(cell, c->class_of_cell));
    }
}

/* Elements may stand at any address. */
static inline uint16_t element_at(const uint8_t *elements, uint32_t place) {
    uint16_t element;

    memcpy(&element, elements + 2 * (size_t)place, sizeof element);
    return element;
}

/* Elements that moved before have other classes; the moves are kept for the values. */
static inline void reclassify(struct history *history, struct code_kind kind,
                              const struct class_map *map, const uint8_t *old, uint32_t first,
                              struct chunk *chunk) {
    chunk->moved = history->position < first + CHUNK;
    if (chunk->moved)
        memset(chunk->moves, 0, sizeof chunk->moves);
    while (history->position < first + CHUNK) {
        uint32_t place = history->position - first;

        chunk->moves[place] = (int8_t)history_take(history);
        chunk->class[place] =
            map->of[moved_cell(kind, element_at(old, place), chunk->moves[place])];
    }
}

/* Fetches the chunk behind the one at `elements` while there is something to compute: the hardware does
 * not look that far ahead. */
static inline void prefetch_next(const uint8_t *elements, uint32_t group) {
    const uint8_t *next = elements + 2 * CHUNK + 128 * group;

    __builtin_prefetch(next);
    __builtin_prefetch(next + 64);
}

TARGET static inline void make_masks(uint32_t classes, const uint8_t *old, const uint8_t *new,
                                     struct chunk *chunk) {
    for (uint32_t g = 0; g < GROUPS; g++) {
        __m512i class = _mm512_load_si512(chunk->class + WALK_GROUP * g);
        __m512i wanted = _mm512_setzero_si512();

        prefetch_next(old, g);
        if (new)
            prefetch_next(new, g);
        for (uint32_t k = 0; k < classes; k++) {
            chunk->mask[k][g] = _mm512_cmpeq_epi8_mask(class, wanted);
            wanted = _mm512_add_epi8(wanted, _mm512_set1_epi8(1));
        }
    }
}

/* Running totals of eight lanes. */
TARGET static inline __m512i prefix_sums(__m512i x) {
    const __m512i zero = _mm512_setzero_si512();

    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 7));
    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 6));
    return _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 4));
}

TARGET static inline void count_masks(uint32_t classes, struct chunk *chunk) {
    const __m512i last = _mm512_set1_epi64(7);

    for (uint32_t k = 0; k < classes; k++) {
        __m512i carried = _mm512_setzero_si512();

        for (uint32_t g = 0; g < GROUPS; g += 8) {
            __m512i count = _mm512_popcnt_epi64(_mm512_load_si512(&chunk->mask[k][g]));
            __m512i upto = _mm512_add_epi64(prefix_sums(count), carried);
            __m128i before = _mm512_cvtepi64_epi16(_mm512_sub_epi64(upto, count));

            _mm_store_si128((__m128i *)(void *)&chunk->before[k][g], before);
            carried = _mm512_permutexvar_epi64(last, upto);
        }
        chunk->count[k] = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(carried));
    }
}

/* The places of all flagged elements. Two are written without asking: at 1 % most groups have no more,
 * and a branch could not be foreseen. */
TARGET static inline uint32_t list_flagged(struct chunk *chunk) {
    uint32_t count = 0;

    for (uint32_t g = 0; g < GROUPS; g++) {
        uint64_t flags = chunk->flagged[g];
        uint16_t *to = chunk->places + count;
        uint32_t first = WALK_GROUP * g;

        count += (uint32_t)__builtin_popcountll(flags);
        *to++ = (uint16_t)(first + (uint32_t)_tzcnt_u64(flags));
        flags = _blsr_u64(flags);
        *to++ = (uint16_t)(first + (uint32_t)_tzcnt_u64(flags));
        for (flags = _blsr_u64(flags); __builtin_expect(flags != 0, 0); flags = _blsr_u64(flags))
            *to++ = (uint16_t)(first + (uint32_t)_tzcnt_u64(flags));
    }
    return count;
}

/* Elements that change, and those of flipped classes that do not. */
TARGET static inline void flag_events(const uint8_t *old, const uint8_t *new, uint32_t flipped,
                                      struct chunk *chunk) {
    const __m512i from = _mm512_set1_epi8((char)flipped);

    for (uint32_t g = 0; g < GROUPS; g++) {
        const uint8_t *a = old + 128 * g, *b = new + 128 * g;
        uint64_t low = _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
        uint64_t high =
            _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(a + 64), _mm512_loadu_si512(b + 64));
        __m512i class = _mm512_load_si512(chunk->class + WALK_GROUP * g);

        chunk->flagged[g] = low | high << 32 | _mm512_cmpge_epu8_mask(class, from);
    }
}

TARGET static inline void encode_events(struct encode_walk *walk, struct chunk *chunk,
                                        const uint8_t *old, const uint8_t *new) {
    const uint32_t flipped = walk->map->flipped, count = list_flagged(chunk);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = chunk->places[i], group = place / WALK_GROUP;
        uint32_t class = chunk->class[place];
        uint64_t in_front = _bzhi_u64(chunk->mask[class][group], place % WALK_GROUP);
        int16_t step = (int16_t)(uint16_t)(element_at(new, place) - element_at(old, place));

        if ((step != 0) != (class >= flipped))
            walk_event(walk, class,
                       (uint32_t)walk->rank[class] + chunk->before[class][group] +
                           (uint32_t)__builtin_popcountll(in_front));
        if (step && chunk->moved && chunk->moves[place] < 0)
            step = (int16_t)(uint16_t)(0 - step);
        if (step)
            walk_value(walk, class, value_of_step(step, UINT16_MAX));
    }
}

static inline void advance(uint64_t *rank, uint32_t classes, const struct chunk *chunk) {
    for (uint32_t k = 0; k < classes; k++)
        rank[k] += chunk->count[k];
}

TARGET void encode_walk_avx512(struct encode_walk *walk) {
    const struct classifier classifier = classifier_of(walk->kind, walk->map);
    const uint32_t classes = walk->map->count;
    struct chunk chunk;

    for (; walk->at + CHUNK <= walk->block->elements; walk->at += CHUNK) {
        const uint8_t *old = (const uint8_t *)walk->block->old + 2 * (size_t)walk->at;
        const uint8_t *new = (const uint8_t *)walk->block->new + 2 * (size_t)walk->at;

        classify(&classifier, old, &chunk);
        reclassify(&walk->history, walk->kind, walk->map, old, walk->at, &chunk);
        make_masks(classes, old, new, &chunk);
        count_masks(classes, &chunk);
        flag_events(old, new, walk->map->flipped, &chunk);
        encode_events(walk, &chunk, old, new);
        advance(walk->rank, classes, &chunk);
    }
}

/* The group that holds element number `rank` of a class: the last one with no more in front of it. */
TARGET static inline uint32_t group_of(const uint16_t before[GROUPS], uint32_t rank) {
    const __m512i wanted = _mm512_set1_epi16((short)rank);
    uint32_t low = _mm512_cmple_epu16_mask(_mm512_load_si512(before), wanted);
    uint32_t high = _mm512_cmple_epu16_mask(_mm512_load_si512(before + 32), wanted);

    return (uint32_t)__builtin_popcount(low) + (uint32_t)__builtin_popcount(high) - 1;
}

/* Flags the class's changes: its events, or in a flipped class all but those. */
TARGET static inline void flag_class(struct decode_walk *walk, struct chunk *chunk, uint32_t k) {
    const uint64_t rank = walk->rank[k], end = rank + chunk->count[k];

    if (k >= walk->map->flipped) {
        for (uint32_t g = 0; g < GROUPS; g++)
            chunk->flagged[g] |= chunk->mask[k][g];
    }
    while (walk->next[k] < end) {
        uint32_t number = (uint32_t)(walk->next[k] - rank);
        uint32_t group = group_of(chunk->before[k], number);

        chunk->flagged[group] ^=
            _pdep_u64(UINT64_C(1) << (number - chunk->before[k][group]), chunk->mask[k][group]);
        walk_next_event(walk, k);
    }
}

TARGET static inline bool emit(struct decode_walk *walk, struct chunk *chunk, const uint8_t *old) {
    const uint32_t count = list_flagged(chunk);
    uint8_t *values = (uint8_t *)walk->values + 2 * walk->found;
    uint32_t *positions = walk->positions + walk->found;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = chunk->places[i];
        uint64_t step;
        uint16_t new;

        if (!walk_step(walk, chunk->class[place], &step))
            return false;
        if (chunk->moved && chunk->moves[place] < 0)
            step = 0 - step;
        new = (uint16_t)(element_at(old, place) + step);
        positions[i] = walk->at + place;
        memcpy(values + 2 * (size_t)i, &new, sizeof new);
    }
    walk->found += count;
    return true;
}

TARGET bool decode_walk_avx512(struct decode_walk *walk) {
    const struct classifier classifier = classifier_of(walk->kind, walk->map);
    const uint32_t classes = walk->map->count;
    struct chunk chunk;

    for (; walk->at + CHUNK <= walk->block->elements; walk->at += CHUNK) {
        const uint8_t *old = (const uint8_t *)walk->block->old + 2 * (size_t)walk->at;

        classify(&classifier, old, &chunk);
        reclassify(&walk->history, walk->kind, walk->map, old, walk->at, &chunk);
        make_masks(classes, old, NULL, &chunk);
        count_masks(classes, &chunk);
        memset(chunk.flagged, 0, sizeof chunk.flagged);
        for (uint32_t k = 0; k < classes; k++)
            flag_class(walk, &chunk, k);
        if (!emit(walk, &chunk, old))
            return false;
        advance(walk->rank, classes, &chunk);
    }
    return true;
}
