// SPDX-License-Identifier: Apache-2.0
/*
 * For AMD since Zen 4 and Intel since Ice Lake. 4096 elements at a time, in steps that stay in the
 * nearest cache and do not wait for each other:
 *
 * 1. A byte permutation maps the exponents of 64 elements to classes, which are kept as bytes and
 * as
 *    four planes of bits; the same pass compares old and new.
 * 2. From the planes, 512 elements to an instruction, come the places of each class as bits, and
 * from
 *    running population counts how many of them there are up to each group of 64.
 * 3. An event's rank then is a table entry less one population count, and a rank's place is a
 * search
 *    in two vectors and one bit deposit.
 *
 * The words of 64 groups stand as an 8 x 8 matrix with a group's number in columns first, so that
 * adding vectors adds up neighbouring groups.
 */
#include "code/context_walk.h"

#include <immintrin.h>

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt,bmi,bmi2")))
#define INLINE TARGET static inline __attribute__((always_inline))

#define COLUMNS 4u
#define GROUPS (8 * COLUMNS)
#define CHUNK (GROUPS * WALK_GROUP)
#define PLANES 4u
#define LANES 16u /* numbers of 32 bits in a vector */

/* A class byte: the class, and whether the element's last move was downwards. */
#define CLASS_BITS 15u
#define DOWNWARDS 0x80u

struct chunk {
    uint8_t class[CHUNK] __attribute__((aligned(64)));
    uint64_t plane[PLANES][GROUPS] __attribute__((aligned(64)));     /* bits of the classes */
    uint64_t mask[CLASSES_MAX][GROUPS] __attribute__((aligned(64))); /* a bit per element */
    uint16_t upto[CLASSES_MAX][GROUPS] __attribute__((aligned(64))); /* elements to a group's end */
    uint64_t flagged[GROUPS] __attribute__((aligned(64)));           /* elements to look at */
    uint16_t places[CHUNK + 2];                                      /* ... as a list */
};

/* CLASSES_MAX if there is no such class. */
static inline uint32_t flipped_of(const struct class_map *map) {
    return map->flipped < map->count ? map->flipped : CLASSES_MAX;
}

/* Where a group's word of a plane or mask stands. */
static inline uint32_t word_of(uint32_t group) {
    return group % COLUMNS * 8 + group / COLUMNS;
}

/* The last group's number is the class's count in the chunk. */
static inline uint32_t count_of(const struct chunk *chunk, uint32_t class) {
    return chunk->upto[class][GROUPS - 1];
}

/* What comes is fetched bit by bit while a chunk is computed: the hardware does not look that far,
 * and all at once it would wait. Two streams go into the second cache first and a chunk ahead into
 * the nearest; for one stream the second cache is enough. A part is a line of 64 bytes; a chunk has
 * 64 of them, of which each step fetches some. */
#define AHEAD_ALONE (4 * CHUNK)
#define AHEAD_FAR (8 * CHUNK)
#define AHEAD_NEAR (2 * CHUNK)
#define PARTS_WITH_CLASSES 16u
#define PARTS_WITH_NUMBERS 16u

INLINE void prefetch_part(const uint8_t *old, const uint8_t *new, uint32_t part) {
    uintptr_t a = (uintptr_t)old + 64 * (size_t)part, b = (uintptr_t) new + 64 * (size_t)part;

    if (!new) {
        _mm_prefetch((const char *)(a + AHEAD_ALONE), _MM_HINT_T1);
        return;
    }
    _mm_prefetch((const char *)(a + AHEAD_NEAR), _MM_HINT_T0);
    _mm_prefetch((const char *)(b + AHEAD_NEAR), _MM_HINT_T0);
    _mm_prefetch((const char *)(a + AHEAD_FAR), _MM_HINT_T1);
    _mm_prefetch((const char *)(b + AHEAD_FAR), _MM_HINT_T1);
}

/* ---- 1: classes ---- */

struct classifier {
    __m512i class_low, class_high; /* of exponents 0 to 63, and of 64 to 127 and above */
    __m512i exponent_mask;         /* of bytes */
    __m128i shift;
};

/* The same for single elements that moved before. */
struct reclassifier {
    uint8_t cell[256];    /* of an exponent */
    uint16_t bucket[256]; /* of a move: its first cell */
};

TARGET static struct classifier classifier_from(struct code_kind kind, const uint8_t class[128]) {
    return (struct classifier){_mm512_loadu_si512(class), _mm512_loadu_si512(class + 64),
                               _mm512_set1_epi8((char)((1u << kind.exponent_bits) - 1)),
                               _mm_cvtsi32_si128(kind.exponent_shift)};
}

/* Cells end at exponent 127 at the latest, in types of two bytes. */
TARGET static struct classifier classifier_of(struct code_kind kind, const struct class_map *map) {
    uint8_t class[128];

    for (uint32_t exponent = 0; exponent < 128; exponent++)
        class[exponent] = map->of[code_cell(&kind, (uint64_t)exponent << kind.exponent_shift)];
    return classifier_from(kind, class);
}

static void reclassifier_make(struct code_kind kind, struct reclassifier *r) {
    for (uint32_t i = 0; i < 256; i++) {
        r->cell[i] = (uint8_t)code_cell(&kind, (uint64_t)i << kind.exponent_shift);
        r->bucket[i] = (uint16_t)(EXPONENT_CELLS * code_move_bucket((int8_t)i));
    }
}

INLINE __m512i classes_of(const struct classifier *c, __m512i low, __m512i high) {
    const __m512i even = _mm512_set_epi64(
        0x7e7c7a7876747270, 0x6e6c6a6866646260, 0x5e5c5a5856545250, 0x4e4c4a4846444240,
        0x3e3c3a3836343230, 0x2e2c2a2826242220, 0x1e1c1a1816141210, 0x0e0c0a0806040200);
    __m512i exponents = _mm512_permutex2var_epi8(_mm512_srl_epi16(low, c->shift), even,
                                                 _mm512_srl_epi16(high, c->shift));

    exponents = _mm512_and_si512(exponents, c->exponent_mask);
    exponents = _mm512_min_epu8(exponents, _mm512_set1_epi8(127));
    return _mm512_permutex2var_epi8(c->class_low, exponents, c->class_high);
}

/* A bit for each of 64 elements that is not the same in `new`. */
INLINE uint64_t different(__m512i low, __m512i high, const uint8_t *new) {
    __mmask32 a = _mm512_cmpneq_epi16_mask(low, _mm512_loadu_si512(new));
    __mmask32 b = _mm512_cmpneq_epi16_mask(high, _mm512_loadu_si512(new + 64));

    return _mm512_kunpackd(b, a);
}

INLINE void put_planes(struct chunk *chunk, uint32_t group, __m512i class) {
    const uint32_t word = word_of(group);

    chunk->plane[0][word] = _mm512_test_epi8_mask(class, _mm512_set1_epi8(1));
    chunk->plane[1][word] = _mm512_test_epi8_mask(class, _mm512_set1_epi8(2));
    chunk->plane[2][word] = _mm512_test_epi8_mask(class, _mm512_set1_epi8(4));
    chunk->plane[3][word] = _mm512_test_epi8_mask(class, _mm512_set1_epi8(8));
}

/* Flags what differs, if there is something to compare with. The planes may have to wait until the
 * classes of elements that moved before are known. */
INLINE void classify(const struct classifier *classifier, const uint8_t *old, const uint8_t *new,
                     bool planes, struct chunk *chunk) {
    const struct classifier c = *classifier;

    for (uint32_t g = 0; g < GROUPS; g++) {
        __m512i low = _mm512_loadu_si512(old + 128 * g);
        __m512i high = _mm512_loadu_si512(old + 128 * g + 64);
        __m512i class = classes_of(&c, low, high);

        if (g % 2)
            prefetch_part(old, new, g / 2);
        _mm512_store_si512(chunk->class + WALK_GROUP * g, class);
        if (planes)
            put_planes(chunk, g, class);
        if (new)
            chunk->flagged[word_of(g)] = different(low, high, new + 128 * g);
    }
}

/* Elements may stand at any address. */
static inline uint16_t element_at(const uint8_t *elements, uint32_t place) {
    uint16_t element;

    memcpy(&element, elements + 2 * (size_t)place, sizeof element);
    return element;
}

/* Elements that moved before have other classes. */
INLINE void reclassify(struct history *history, const struct reclassifier *r, struct code_kind kind,
                       const struct class_map *map, const uint8_t *old, uint32_t first,
                       struct chunk *chunk) {
    const uint32_t exponent_mask = (1u << kind.exponent_bits) - 1;
    const struct code_move *move = history->next;

    for (; move != history->end && move->position < first + CHUNK; move++) {
        uint32_t place = move->position - first;
        uint32_t exponent = (uint32_t)element_at(old, place) >> kind.exponent_shift & exponent_mask;
        uint32_t cell = r->cell[exponent] + r->bucket[(uint8_t)move->move];

        chunk->class[place] = (uint8_t)(map->of[cell] | ((uint8_t)move->move & DOWNWARDS));
    }
    history->next = move;
    history_step(history);
    for (uint32_t g = 0; g < GROUPS; g++)
        put_planes(chunk, g, _mm512_load_si512(chunk->class + WALK_GROUP * g));
}

INLINE void classify_all(const struct classifier *classifier, const struct reclassifier *r,
                         struct history *history, const struct class_map *map,
                         struct code_kind kind, const uint8_t *old, const uint8_t *new,
                         uint32_t first, struct chunk *chunk) {
    if (history->position < first + CHUNK) {
        classify(classifier, old, new, false, chunk);
        reclassify(history, r, kind, map, old, first, chunk);
    } else {
        classify(classifier, old, new, true, chunk);
    }
}

TARGET void sample_groups_avx512(struct code_kind kind, const uint8_t *cell_of, const uint8_t *old,
                                 const uint8_t *new, uint32_t groups, size_t ahead, uint8_t *cells,
                                 uint64_t *changed) {
    const struct classifier c = classifier_from(kind, cell_of);

    for (uint32_t g = 0; g < groups; g++, old += 128, new += 128) {
        __m512i low = _mm512_loadu_si512(old), high = _mm512_loadu_si512(old + 64);

        for (size_t line = 0; line < 128; line += 64) {
            _mm_prefetch((const char *)((uintptr_t)old + ahead + line), _MM_HINT_T1);
            _mm_prefetch((const char *)((uintptr_t) new + ahead + line), _MM_HINT_T1);
        }
        _mm512_storeu_si512(cells + WALK_GROUP * g, classes_of(&c, low, high));
        changed[g] = different(low, high, new);
    }
}

/* ---- 2: places and numbers of each class ---- */

/* Of 512 elements: column `c` of the groups. */
INLINE void make_masks(uint32_t classes, uint32_t c, struct chunk *chunk) {
    const __m512i bit0 = _mm512_load_si512(&chunk->plane[0][8 * c]);
    const __m512i bit1 = _mm512_load_si512(&chunk->plane[1][8 * c]);
    const __m512i bit2 = _mm512_load_si512(&chunk->plane[2][8 * c]);
    const __m512i bit3 = _mm512_load_si512(&chunk->plane[3][8 * c]);
    const __m512i neither = _mm512_ternarylogic_epi64(bit0, bit1, bit1, 0x03);
    const __m512i only0 = _mm512_andnot_si512(bit1, bit0), only1 = _mm512_andnot_si512(bit0, bit1);
    const __m512i both = _mm512_and_si512(bit0, bit1);

    for (uint32_t k = 0; k < classes; k += 4) {
        __m512i upper = _mm512_xor_si512(bit2, _mm512_set1_epi64((k & 4) ? 0 : -1));
        __m512i top = _mm512_xor_si512(bit3, _mm512_set1_epi64((k & 8) ? 0 : -1));
        __m512i these = _mm512_and_si512(upper, top);

        _mm512_store_si512(&chunk->mask[k][8 * c], _mm512_and_si512(these, neither));
        _mm512_store_si512(&chunk->mask[k + 1][8 * c], _mm512_and_si512(these, only0));
        _mm512_store_si512(&chunk->mask[k + 2][8 * c], _mm512_and_si512(these, only1));
        _mm512_store_si512(&chunk->mask[k + 3][8 * c], _mm512_and_si512(these, both));
    }
}

/* Running totals of eight lanes. */
INLINE __m512i prefix_sums(__m512i x) {
    const __m512i zero = _mm512_setzero_si512();

    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 7));
    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 6));
    return _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, 4));
}

/* Four vectors of small numbers in one. */
INLINE __m512i pack(const __m512i x[4]) {
    __m512i lower = _mm512_or_si512(x[0], _mm512_slli_epi64(x[1], 16));

    return _mm512_ternarylogic_epi64(lower, _mm512_slli_epi64(x[2], 32),
                                     _mm512_slli_epi64(x[3], 48), 0xfe);
}

INLINE void number_class(struct chunk *chunk, uint32_t k) {
    const __m512i lowest_word = _mm512_set4_epi32(0x09080908, 0x09080908, 0x01000100, 0x01000100);
    __m512i upto[COLUMNS], in_front, total = _mm512_setzero_si512();

    for (uint32_t c = 0; c < COLUMNS; c++) {
        __m512i count = _mm512_popcnt_epi64(_mm512_load_si512(&chunk->mask[k][8 * c]));

        upto[c] = total = _mm512_add_epi64(total, count);
    }
    in_front = _mm512_sub_epi64(prefix_sums(total), total);
    in_front = _mm512_shuffle_epi8(in_front, lowest_word);
    _mm512_store_si512(chunk->upto[k], _mm512_add_epi16(pack(upto), in_front));
}

/* Flags all elements of flipped classes, besides what is flagged already when encoding: those whose
 * class, of which there are four bits, is `flipped` or above. */
INLINE void flag_flipped(uint32_t flipped, uint32_t c, bool encoding, struct chunk *chunk) {
    const __m512i zero = _mm512_setzero_si512();
    __m512i flags = encoding ? _mm512_load_si512(&chunk->flagged[8 * c]) : zero;
    __m512i above = flipped < CLASSES_MAX ? _mm512_set1_epi64(-1) : zero;

    for (uint32_t bit = 0; bit < PLANES && flipped < CLASSES_MAX; bit++) {
        __m512i plane = _mm512_load_si512(&chunk->plane[bit][8 * c]);

        above = flipped >> bit & 1 ? _mm512_and_si512(plane, above) : _mm512_or_si512(plane, above);
    }
    _mm512_store_si512(&chunk->flagged[8 * c], _mm512_or_si512(flags, above));
}

INLINE void number_elements(uint32_t classes, uint32_t flipped, const uint8_t *old,
                            const uint8_t *new, struct chunk *chunk) {
    for (uint32_t c = 0; c < COLUMNS; c++) {
        for (uint32_t i = 0; i < 4; i++)
            prefetch_part(old, new, PARTS_WITH_CLASSES + 4 * c + i);
        make_masks(classes, c, chunk);
        flag_flipped(flipped, c, new, chunk);
    }
    for (uint32_t k = 0; k < classes; k++)
        number_class(chunk, k);
}

/* The places of all flagged elements. Two are written without asking: at 1 % most groups have no
 * more, and a branch could not be foreseen. */
INLINE uint32_t list_flagged(struct chunk *chunk, const uint8_t *old, const uint8_t *new) {
    uint32_t count = 0;

    for (uint32_t g = 0; g < GROUPS; g++) {
        uint64_t flags = chunk->flagged[word_of(g)];
        uint16_t *to = chunk->places + count;
        uint32_t first = WALK_GROUP * g;

        prefetch_part(old, new, PARTS_WITH_CLASSES + PARTS_WITH_NUMBERS + g);
        count += (uint32_t)__builtin_popcountll(flags);
        *to++ = (uint16_t)(first + (uint32_t)_tzcnt_u64(flags));
        flags = _blsr_u64(flags);
        *to++ = (uint16_t)(first + (uint32_t)_tzcnt_u64(flags));
        for (flags = _blsr_u64(flags); __builtin_expect(flags != 0, 0); flags = _blsr_u64(flags))
            *to++ = (uint16_t)(first + (uint32_t)_tzcnt_u64(flags));
    }
    return count;
}

/* ---- 3: encoding ---- */

/* What was found, waiting until there is a vector of it; then each class picks out its own. */
struct found {
    uint32_t class[CHUNK + LANES] __attribute__((aligned(64))); /* class bytes */
    uint32_t rank[CHUNK + LANES] __attribute__((aligned(64)));
    uint32_t step[CHUNK + LANES] __attribute__((aligned(64))); /* 16 bits */
    uint32_t count;
};

struct encoder {
    struct encode_walk *walk;
    struct chunk chunk;
    struct found found;
    uint32_t first[CLASSES_MAX]; /* the rank of the first element in the chunk */
    uint32_t *ranks[CLASSES_MAX], *values[CLASSES_MAX];
};

/* Looks at the flagged elements. */
INLINE void find(struct encoder *e, const uint8_t *old, const uint8_t *new) {
    const uint32_t count = list_flagged(&e->chunk, old, new);
    const uint32_t at = e->walk->at;
    uint32_t *positions = e->walk->positions;
    struct found *found = &e->found;

    for (uint32_t i = 0, to = found->count; i < count; i++, to++) {
        uint32_t place = e->chunk.places[i], group = place / WALK_GROUP;
        uint32_t class = e->chunk.class[place] & CLASS_BITS;
        uint16_t step = (uint16_t)(element_at(new, place) - element_at(old, place));
        uint64_t behind = e->chunk.mask[class][word_of(group)] >> place % WALK_GROUP;

        found->class[to] = e->chunk.class[place];
        found->step[to] = step;
        found->rank[to] =
            e->first[class] + e->chunk.upto[class][group] - (uint32_t)__builtin_popcountll(behind);
        *positions = at + place;
        positions += step != 0;
    }
    found->count += count;
    e->walk->positions = positions;
}

/* As value_of_step() does it. */
INLINE __m512i values_of_steps(__m512i step, __mmask16 negate) {
    const __m512i width = _mm512_set1_epi32(UINT16_MAX);
    __m512i zigzag;

    step = _mm512_mask_sub_epi32(step, negate, _mm512_setzero_si512(), step);
    step = _mm512_slli_epi32(step, 16);
    zigzag = _mm512_xor_si512(_mm512_srai_epi32(step, 15), _mm512_srai_epi32(step, 31));
    return _mm512_sub_epi32(_mm512_and_si512(zigzag, width), _mm512_set1_epi32(1));
}

/* Hands a vector of what was found, or less at the end of a block, to the classes. All lanes are
 * written: the lists have room for a vector more. */
INLINE void put(struct encoder *e, uint32_t from, __mmask16 valid, uint32_t flipped) {
    const uint32_t classes = e->walk->map->count;
    const __m512i raw = _mm512_loadu_si512(e->found.class + from);
    const __m512i rank = _mm512_loadu_si512(e->found.rank + from);
    const __m512i step = _mm512_loadu_si512(e->found.step + from);
    const __m512i class = _mm512_and_si512(raw, _mm512_set1_epi32(CLASS_BITS));
    const __m512i value =
        values_of_steps(step, _mm512_test_epi32_mask(raw, _mm512_set1_epi32(DOWNWARDS)));
    const __mmask16 change = _mm512_mask_test_epi32_mask(valid, step, step);
    const __mmask16 event =
        change ^ _mm512_mask_cmpge_epu32_mask(valid, class, _mm512_set1_epi32((int)flipped));

    for (uint32_t k = 0; k < classes; k++) {
        __mmask16 here = _mm512_mask_cmpeq_epi32_mask(valid, class, _mm512_set1_epi32((int)k));
        uint32_t events = here & event, changes = here & change;

        _mm512_storeu_si512(e->ranks[k], _mm512_maskz_compress_epi32((__mmask16)events, rank));
        _mm512_storeu_si512(e->values[k], _mm512_maskz_compress_epi32((__mmask16)changes, value));
        e->ranks[k] += __builtin_popcount(events);
        e->values[k] += __builtin_popcount(changes);
    }
}

INLINE void put_vectors(struct encoder *e, uint32_t flipped) {
    struct found *found = &e->found;
    uint32_t done = 0;

    for (; found->count - done >= LANES; done += LANES)
        put(e, done, UINT16_MAX, flipped);
    found->count -= done;
    _mm512_store_si512(found->class, _mm512_loadu_si512(found->class + done));
    _mm512_store_si512(found->rank, _mm512_loadu_si512(found->rank + done));
    _mm512_store_si512(found->step, _mm512_loadu_si512(found->step + done));
}

static void encode_begin(struct encoder *e, struct encode_walk *walk) {
    e->walk = walk;
    memset(&e->found, 0,
           sizeof e->found); /* whole vectors are moved, also where little was found */
    for (uint32_t k = 0; k < walk->map->count; k++) {
        e->first[k] = 0;
        e->ranks[k] = walk->lists[k].gaps + walk->lists[k].gap_count;
        e->values[k] = walk->lists[k].values + walk->lists[k].value_count;
    }
}

/* The ranks of the block become gaps. */
static void encode_end(struct encoder *e) {
    for (uint32_t k = 0; k < e->walk->map->count; k++) {
        struct event_list *list = &e->walk->lists[k];
        uint32_t next = 0;

        for (uint32_t *at = list->gaps + list->gap_count; at < e->ranks[k]; at++) {
            uint32_t rank = *at;

            *at = rank - next;
            next = rank + 1;
        }
        list->gap_count = (size_t)(e->ranks[k] - list->gaps);
        list->value_count = (size_t)(e->values[k] - list->values);
        e->walk->rank[k] = e->first[k];
        e->walk->next[k] = next;
    }
}

INLINE void encode_chunks(struct encoder *e, struct encode_walk *walk, uint32_t flipped) {
    const struct classifier classifier = classifier_of(walk->kind, walk->map);
    struct reclassifier reclassifier = {0};
    const uint32_t classes = walk->map->count;

    if (walk->block->move_count)
        reclassifier_make(walk->kind, &reclassifier);
    for (; walk->at + CHUNK <= walk->block->elements; walk->at += CHUNK) {
        const uint8_t *old = (const uint8_t *)walk->block->old + 2 * (size_t)walk->at;
        const uint8_t *new = (const uint8_t *)walk->block->new + 2 * (size_t)walk->at;

        classify_all(&classifier, &reclassifier, &walk->history, walk->map, walk->kind, old, new,
                     walk->at, &e->chunk);
        number_elements(classes, flipped, old, new, &e->chunk);
        find(e, old, new);
        put_vectors(e, flipped);
        for (uint32_t k = 0; k < classes; k++)
            e->first[k] += count_of(&e->chunk, k);
    }
    put(e, 0, (__mmask16)((1u << e->found.count) - 1), flipped);
}

TARGET void encode_walk_avx512(struct encode_walk *walk) {
    struct encoder encoder;

    if (walk->block->elements < CHUNK)
        return;
    encode_begin(&encoder, walk);
    encode_chunks(&encoder, walk, flipped_of(walk->map));
    encode_end(&encoder);
}

/* ---- 3: decoding ---- */

struct decoder {
    struct chunk chunk;

    /* Changes that wait for their values until there is a vector of them. */
    uint32_t class[CHUNK + LANES] __attribute__((aligned(64))); /* class bytes */
    uint32_t old[CHUNK + LANES] __attribute__((aligned(64)));
    uint32_t events[CHUNK + LANES]; /* of the chunk: class << 16 | number in the chunk */
    const uint32_t *ranks[CLASSES_MAX], *values[CLASSES_MAX];
    struct decode_walk *walk;
    uint32_t first[CLASSES_MAX]; /* the rank of the first element in the chunk */
    uint32_t waiting;
};

/* Lists the chunk's events, class by class. Behind a class's ranks stands one that no chunk has. */
INLINE uint32_t list_events(struct decoder *d) {
    uint32_t count = 0;

    for (uint32_t k = 0; k < d->walk->map->count; k++) {
        const __m512i first = _mm512_set1_epi32((int)d->first[k]);
        const __m512i end = _mm512_set1_epi32((int)count_of(&d->chunk, k));
        const __m512i class = _mm512_set1_epi32((int)(k << 16));
        uint32_t taken;

        do {
            __m512i number = _mm512_sub_epi32(_mm512_loadu_si512(d->ranks[k]), first);
            uint32_t beyond = _mm512_cmpge_epu32_mask(number, end);

            taken = _tzcnt_u32(beyond | 1u << LANES);
            _mm512_storeu_si512(d->events + count, _mm512_or_si512(number, class));
            count += taken;
            d->ranks[k] += taken;
        } while (__builtin_expect(taken == LANES, 0));
    }
    return count;
}

/* The group that holds element number `number` of a class: as many end at or before it. */
INLINE uint32_t group_of(const uint16_t upto[GROUPS], uint32_t number) {
    const __m512i wanted = _mm512_set1_epi16((short)number);

    return (uint32_t)__builtin_popcount(_mm512_cmple_epu16_mask(_mm512_load_si512(upto), wanted));
}

/* Flags the changes: events, or in a flipped class all but those. */
INLINE void flag_changes(struct decoder *d) {
    struct chunk *chunk = &d->chunk;
    const uint32_t count = list_events(d);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = d->events[i] >> 16, number = d->events[i] & UINT16_MAX;
        uint32_t group = group_of(chunk->upto[k], number);
        uint32_t word = word_of(group);
        uint64_t mask = chunk->mask[k][word];
        uint32_t in_group = number + (uint32_t)__builtin_popcountll(mask) - chunk->upto[k][group];

        chunk->flagged[word] ^= _pdep_u64(UINT64_C(1) << in_group, mask);
    }
}

/* False if there are more than there should be. */
INLINE bool find_changes(struct decoder *d, const uint8_t *old) {
    const uint32_t count = list_flagged(&d->chunk, old, NULL), at = d->walk->at;
    uint32_t *positions = d->walk->positions + d->walk->found;

    if (count > d->walk->room - d->walk->found)
        return false;
    for (uint32_t i = 0, to = d->waiting; i < count; i++, to++) {
        uint32_t place = d->chunk.places[i];

        positions[i] = at + place;
        d->class[to] = d->chunk.class[place];
        d->old[to] = element_at(old, place);
    }
    d->waiting += count;
    d->walk->found += count;
    return true;
}

/* The new elements of a vector of changes, or of fewer at the end. Takes values without asking how
 * many a class has left: the arrays do not end there, and it is counted afterwards. */
INLINE __m256i take_values(struct decoder *d, uint32_t from, __mmask16 valid) {
    const __m512i one = _mm512_set1_epi32(1), zero = _mm512_setzero_si512();
    const __m512i raw = _mm512_loadu_si512(d->class + from);
    const __m512i class = _mm512_and_si512(raw, _mm512_set1_epi32(CLASS_BITS));
    const __mmask16 negate = _mm512_test_epi32_mask(raw, _mm512_set1_epi32(DOWNWARDS));
    __m512i value = zero, step;

    for (uint32_t k = 0; k < d->walk->map->count; k++) {
        __mmask16 here = _mm512_mask_cmpeq_epi32_mask(valid, class, _mm512_set1_epi32((int)k));

        value = _mm512_mask_expand_epi32(value, here, _mm512_loadu_si512(d->values[k]));
        d->values[k] += __builtin_popcount(here);
    }
    value = _mm512_add_epi32(value, one); /* then as step_of_value() does it */
    step = _mm512_xor_si512(_mm512_srli_epi32(value, 1),
                            _mm512_sub_epi32(zero, _mm512_and_si512(value, one)));
    step = _mm512_mask_sub_epi32(step, negate, zero, step);
    return _mm512_cvtepi32_epi16(_mm512_add_epi32(_mm512_loadu_si512(d->old + from), step));
}

INLINE void emit_vectors(struct decoder *d) {
    uint8_t *to = (uint8_t *)d->walk->values + 2 * (d->walk->found - d->waiting);
    uint32_t done = 0;

    for (; d->waiting - done >= LANES; done += LANES) {
        _mm256_storeu_si256((__m256i *)(void *)to, take_values(d, done, UINT16_MAX));
        to += 2 * LANES;
    }
    d->waiting -= done;
    _mm512_store_si512(d->class, _mm512_loadu_si512(d->class + done));
    _mm512_store_si512(d->old, _mm512_loadu_si512(d->old + done));
}

/* The caller's array ends with the last value. */
INLINE void emit_rest(struct decoder *d) {
    uint8_t *to = (uint8_t *)d->walk->values + 2 * (d->walk->found - d->waiting);
    uint16_t rest[LANES];

    _mm256_storeu_si256((__m256i *)(void *)rest,
                        take_values(d, 0, (__mmask16)((1u << d->waiting) - 1)));
    memcpy(to, rest, 2 * (size_t)d->waiting);
}

/* In other classes every event is a change, so there is a value for each. */
static inline bool values_suffice(const struct decoder *d) {
    const struct event_feed *feeds = d->walk->feeds;

    for (uint32_t k = d->walk->map->flipped; k < d->walk->map->count; k++) {
        if (d->values[k] - feeds[k].values > feeds[k].changes)
            return false;
    }
    return true;
}

static void decode_begin(struct decoder *d, struct decode_walk *walk) {
    d->walk = walk;
    memset(d->class, 0, sizeof d->class); /* whole vectors are moved, also where little was found */
    memset(d->old, 0, sizeof d->old);
    d->waiting = 0;
    for (uint32_t k = 0; k < walk->map->count; k++) {
        d->first[k] = 0;
        d->ranks[k] = walk->feeds[k].ranks;
        d->values[k] = walk->feeds[k].values;
    }
}

static void decode_end(struct decoder *d) {
    struct decode_walk *walk = d->walk;

    for (uint32_t k = 0; k < walk->map->count; k++) {
        walk->until[k] = *d->ranks[k] - d->first[k];
        walk->event[k] = (uint32_t)(d->ranks[k] - walk->feeds[k].ranks);
        walk->change[k] = (uint32_t)(d->values[k] - walk->feeds[k].values);
    }
}

INLINE bool decode_chunks(struct decoder *d, struct decode_walk *walk) {
    const struct classifier classifier = classifier_of(walk->kind, walk->map);
    struct reclassifier reclassifier = {0};
    const uint32_t classes = walk->map->count, flipped = flipped_of(walk->map);

    if (walk->block->move_count)
        reclassifier_make(walk->kind, &reclassifier);
    for (; walk->at + CHUNK <= walk->block->elements; walk->at += CHUNK) {
        const uint8_t *old = (const uint8_t *)walk->block->old + 2 * (size_t)walk->at;

        classify_all(&classifier, &reclassifier, &walk->history, walk->map, walk->kind, old, NULL,
                     walk->at, &d->chunk);
        number_elements(classes, flipped, old, NULL, &d->chunk);
        flag_changes(d);
        if (!find_changes(d, old))
            return false;
        emit_vectors(d);
        if (!values_suffice(d))
            return false;
        for (uint32_t k = 0; k < classes; k++)
            d->first[k] += count_of(&d->chunk, k);
    }
    emit_rest(d);
    return values_suffice(d);
}

TARGET bool decode_walk_avx512(struct decode_walk *walk) {
    struct decoder decoder;

    if (walk->block->elements < CHUNK)
        return true;
    decode_begin(&decoder, walk);
    if (!decode_chunks(&decoder, walk))
        return false;
    decode_end(&decoder);
    return true;
}
