// SPDX-License-Identifier: Apache-2.0
/* The walks in portable C: they define what a stream means. */
#include "base/cpu.h"
#include "code/context_walk.h"

/* A sample takes runs this long: each start of one is a wait for memory. */
#define SAMPLE_RUN 2048u
#define SAMPLE_STEP 16u

/* The widest exponent has 11 bits. */
#define EXPONENTS_MAX 2048u

/* What an exponent stands for in elements that did not move before: its class, or without a map its
 * cell. */
struct lookup {
    uint8_t of[EXPONENTS_MAX];
};

static void lookup_make(struct code_kind kind, const struct class_map *map, struct lookup *lookup) {
    for (uint32_t exponent = 0; exponent < 1u << kind.exponent_bits; exponent++) {
        uint32_t cell = code_cell(&kind, (uint64_t)exponent << kind.exponent_shift);

        lookup->of[exponent] = (uint8_t)(map ? map->of[cell] : cell);
    }
}

/* The moves from `position` on. */
static struct history history_from(const struct code_block *block, uint32_t position) {
    struct history history = history_of(block);
    size_t count = block->move_count;

    while (count) { /* halves what may lie in front of it */
        size_t half = count / 2;

        if (history.next[half].position < position) {
            history.next += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    history_step(&history);
    return history;
}

/* How often each cell was seen, as the sum of four counts. */
struct sample_counts {
    uint32_t of[4][EXPONENT_CELLS];
};

/* May lie behind the array, where there is nothing to prefetch. */
static inline void prefetch(const void *from, size_t bytes) {
    __builtin_prefetch((const void *)((uintptr_t)from + bytes));
}

static void count_change(struct cell_counts *counts, uint32_t cell, uint64_t value) {
    uint32_t symbol = value_symbol(value);

    counts->changed[cell]++;
    counts->size[cell][symbol < SIZE_SYMBOLS ? symbol : SIZE_SYMBOLS - 1]++;
}

/* One set of walks for each width. TYPE is an element, STEP the same with a sign: a step of the bit
 * pattern wraps around at the element's width. */
#define DEFINE_WALKS(WIDTH, TYPE, STEP)                                                              \
    static TYPE load_##WIDTH(const void *from, uint32_t index) {                                     \
        TYPE value;                                                                                  \
                                                                                                     \
        memcpy(&value, (const uint8_t *)from + WIDTH * (size_t)index, WIDTH);                        \
        return value;                                                                                \
    }                                                                                                \
                                                                                                     \
    static uint64_t value_##WIDTH(TYPE old, TYPE new, int move) {                                    \
        STEP step = (STEP)(TYPE)(move < 0 ? old - new : new - old);                                  \
                                                                                                     \
        return value_of_step(step, (TYPE)-1);                                                        \
    }                                                                                                \
                                                                                                     \
    static void sample_one_##WIDTH(const struct code_block *block, uint32_t i, uint32_t cell,        \
                                   int move, struct cell_counts *counts) {                           \
        TYPE old = load_##WIDTH(block->old, i), new = load_##WIDTH(block->new, i);                   \
                                                                                                     \
        counts->seen[cell]++;                                                                        \
        if (old != new)                                                                              \
            count_change(counts, cell, value_##WIDTH(old, new, move));                               \
    }                                                                                                \
                                                                                                     \
    /* Elements that did not move. Neighbours are often of one cell, and a count is not increased  \
     * again before it is stored, so four of each are kept. */ \
    static void sample_run_##WIDTH(struct code_kind kind, const struct lookup *cells,                \
                                   const struct code_block *block, uint32_t i, uint32_t end,         \
                                   uint32_t ahead, struct sample_counts *seen,                       \
                                   struct cell_counts *counts) {                                     \
        const uint32_t mask = (1u << kind.exponent_bits) - 1;                                        \
                                                                                                     \
        for (; i + SAMPLE_STEP <= end; i += SAMPLE_STEP) {                                           \
            TYPE old[SAMPLE_STEP], new[SAMPLE_STEP];                                                 \
                                                                                                     \
            memcpy(old, (const uint8_t *)block->old + WIDTH * (size_t)i, sizeof old);                \
            memcpy(new, (const uint8_t *)block->new + WIDTH *(size_t)i, sizeof new);                 \
            prefetch(block->old, WIDTH *((size_t)i + ahead));                                        \
            prefetch(block->new, WIDTH *((size_t)i + ahead));                                        \
            for (uint32_t k = 0; k < SAMPLE_STEP; k++)                                               \
                seen->of[k % 4][cells->of[(uint32_t)(old[k] >> kind.exponent_shift) & mask]]++;      \
            if (!memcmp(old, new, sizeof old))                                                       \
                continue;                                                                            \
            for (uint32_t k = 0; k < SAMPLE_STEP; k++) {                                             \
                uint32_t cell = cells->of[(uint32_t)(old[k] >> kind.exponent_shift) & mask];         \
                                                                                                     \
                if (old[k] != new[k])                                                                \
                    count_change(counts, cell, value_##WIDTH(old[k], new[k], 0));                    \
            }                                                                                        \
        }                                                                                            \
        for (; i < end; i++)                                                                         \
            sample_one_##WIDTH(block, i, code_cell(&kind, load_##WIDTH(block->old, i)), 0,           \
                               counts);                                                              \
    }                                                                                                \
                                                                                                     \
    static void sample_##WIDTH(struct code_kind kind, const struct lookup *cells,                    \
                               const struct code_block *block, uint32_t i, uint32_t end,             \
                               uint32_t ahead, struct sample_counts *seen,                           \
                               struct cell_counts *counts) {                                         \
        struct history history = history_from(block, i);                                             \
                                                                                                     \
        while (i < end) {                                                                            \
            uint32_t stop = history.position < end ? history.position : end;                         \
                                                                                                     \
            sample_run_##WIDTH(kind, cells, block, i, stop, ahead, seen, counts);                    \
            if (stop < end) {                                                                        \
                int move = history_take(&history);                                                   \
                                                                                                     \
                sample_one_##WIDTH(block, stop,                                                      \
                                   moved_cell(kind, load_##WIDTH(block->old, stop), move), move,     \
                                   counts);                                                          \
                stop++;                                                                              \
            }                                                                                        \
            i = stop;                                                                                \
        }                                                                                            \
    }                                                                                                \
                                                                                                     \
    static void encode_##WIDTH(struct encode_walk *walk, const struct lookup *lookup) {              \
        const struct code_kind kind = walk->kind;                                                    \
        const uint32_t mask = (1u << kind.exponent_bits) - 1, flipped = walk->map->flipped;          \
                                                                                                     \
        for (uint32_t i = walk->at; i < walk->block->elements; i++) {                                \
            TYPE old = load_##WIDTH(walk->block->old, i), new = load_##WIDTH(walk->block->new, i);   \
            uint32_t class = lookup->of[(uint32_t)(old >> kind.exponent_shift) & mask];              \
            int move = 0;                                                                            \
                                                                                                     \
            if (i == walk->history.position) {                                                       \
                move = history_take(&walk->history);                                                 \
                class = walk->map->of[moved_cell(kind, old, move)];                                  \
            }                                                                                        \
            if ((old != new) != (class >= flipped))                                                  \
                walk_event(walk, class, (uint32_t)walk->rank[class]);                                \
            walk->rank[class]++;                                                                     \
            if (old != new)                                                                          \
                walk_change(walk, class, i, value_##WIDTH(old, new, move), WIDTH == 8);              \
        }                                                                                            \
    }                                                                                                \
                                                                                                     \
    static bool decode_##WIDTH(struct decode_walk *walk, const struct lookup *lookup) {              \
        const struct code_kind kind = walk->kind;                                                    \
        const uint32_t mask = (1u << kind.exponent_bits) - 1, flipped = walk->map->flipped;          \
                                                                                                     \
        for (uint32_t i = walk->at; i < walk->block->elements; i++) {                                \
            TYPE old = load_##WIDTH(walk->block->old, i), new;                                       \
            uint32_t class = lookup->of[(uint32_t)(old >> kind.exponent_shift) & mask];              \
            int move = 0;                                                                            \
            uint64_t step;                                                                           \
                                                                                                     \
            if (i == walk->history.position) {                                                       \
                move = history_take(&walk->history);                                                 \
                class = walk->map->of[moved_cell(kind, old, move)];                                  \
            }                                                                                        \
            if (walk_is_event(walk, class) == (class >= flipped))                                    \
                continue;                                                                            \
            if (!walk_step(walk, class, &step))                                                      \
                return false;                                                                        \
            new = (TYPE)(old + (TYPE)(move < 0 ? 0 - step : step));                                  \
            walk->positions[walk->found] = i;                                                        \
            memcpy((uint8_t *)walk->values + WIDTH * walk->found++, &new, WIDTH);                    \
        }                                                                                            \
        return true;                                                                                 \
    }

DEFINE_WALKS(1, uint8_t, int8_t)
DEFINE_WALKS(2, uint16_t, int16_t)
DEFINE_WALKS(4, uint32_t, int32_t)
DEFINE_WALKS(8, uint64_t, int64_t)

static bool twin_can(struct code_kind kind) {
#if defined(__x86_64__)
    const uint32_t needs = CPU_AVX512F | CPU_AVX512BW | CPU_AVX512VBMI | CPU_AVX512VPOPCNT |
                           CPU_POPCNT | CPU_BMI | CPU_BMI2;

    return kind.width == 2 && kind.exponent_bits <= 8 && !(needs & ~cpu_features());
#else
    (void)kind;
    return false;
#endif
}

#if defined(__x86_64__)
/* A run of whole groups of two-byte elements. Those that moved are counted again, one by one. */
static void sample_groups(struct code_kind kind, const struct lookup *cells,
                          const struct code_block *block, uint32_t first, uint32_t end,
                          uint32_t ahead, struct sample_counts *seen, struct cell_counts *counts) {
    const uint32_t groups = (end - first) / WALK_GROUP;
    struct history history = history_from(block, first);
    uint64_t changed[SAMPLE_RUN / WALK_GROUP];
    uint8_t cell[SAMPLE_RUN];

    sample_groups_avx512(kind, cells->of, (const uint8_t *)block->old + 2 * (size_t)first,
                         (const uint8_t *)block->new + 2 * (size_t)first, groups, 2 * (size_t)ahead,
                         cell, changed);
    for (uint32_t i = 0; i < groups * WALK_GROUP; i += 4) {
        seen->of[0][cell[i]]++;
        seen->of[1][cell[i + 1]]++;
        seen->of[2][cell[i + 2]]++;
        seen->of[3][cell[i + 3]]++;
    }
    while (history.position < end) {
        uint32_t position = history.position, i = position - first;
        int move = history_take(&history);

        seen->of[0][cell[i]]--;
        changed[i / WALK_GROUP] &= ~(UINT64_C(1) << i % WALK_GROUP);
        sample_one_2(block, position, moved_cell(kind, load_2(block->old, position), move), move,
                     counts);
    }
    for (uint32_t g = 0; g < groups; g++) {
        for (uint64_t left = changed[g]; left; left &= left - 1) {
            uint32_t i = WALK_GROUP * g + (uint32_t)__builtin_ctzll(left);

            count_change(counts, cell[i],
                         value_2(load_2(block->old, first + i), load_2(block->new, first + i), 0));
        }
    }
}
#endif

void scan_sample(struct code_kind kind, const struct code_block *block, uint32_t stride,
                 struct cell_counts *counts) {
    static void (*const walks[])(struct code_kind, const struct lookup *, const struct code_block *,
                                 uint32_t, uint32_t, uint32_t, struct sample_counts *,
                                 struct cell_counts *) = {sample_1, sample_2, sample_4, sample_8};
    struct sample_counts seen = {{{0}}};
    struct lookup cells = {{0}};

    lookup_make(kind, NULL, &cells);
    counts->all += block->elements;
    for (uint32_t i = 0; i < block->elements; i += SAMPLE_RUN * stride) {
        uint32_t left = block->elements - i, end = i + (left < SAMPLE_RUN ? left : SAMPLE_RUN);
        uint32_t from = i;

        counts->sampled += end - i;
#if defined(__x86_64__)
        if (twin_can(kind)) {
            from = end - (end - i) % WALK_GROUP;
            sample_groups(kind, &cells, block, i, from, SAMPLE_RUN * stride, &seen, counts);
        }
#endif
        walks[__builtin_ctz(kind.width)](kind, &cells, block, from, end, SAMPLE_RUN * stride, &seen,
                                         counts);
    }
    for (uint32_t cell = 0; cell < EXPONENT_CELLS; cell++)
        counts->seen[cell] +=
            seen.of[0][cell] + seen.of[1][cell] + seen.of[2][cell] + seen.of[3][cell];
}

void scan_encode(struct code_kind kind, const struct class_map *map, const struct code_block *block,
                 struct event_list *lists, uint64_t *seen, uint32_t *positions) {
    static void (*const walks[])(struct encode_walk *,
                                 const struct lookup *) = {encode_1, encode_2, encode_4, encode_8};
    struct encode_walk walk = {
        .kind = kind, .map = map, .block = block, .lists = lists, .positions = positions};
    struct lookup lookup;

    walk.history = history_of(block);
    lookup_make(kind, map, &lookup);
#if defined(__x86_64__)
    if (twin_can(kind))
        encode_walk_avx512(&walk);
#endif
    walks[__builtin_ctz(kind.width)](&walk, &lookup);
    for (uint32_t k = 0; k < CLASSES_MAX; k++)
        seen[k] += walk.rank[k];
}

bool scan_decode(struct code_kind kind, const struct class_map *map, const struct code_block *block,
                 const struct event_feed *feeds, uint32_t *positions, void *values) {
    static bool (*const walks[])(struct decode_walk *,
                                 const struct lookup *) = {decode_1, decode_2, decode_4, decode_8};
    struct decode_walk walk = {.kind = kind,
                               .map = map,
                               .block = block,
                               .feeds = feeds,
                               .positions = positions,
                               .values = values};
    struct lookup lookup;

    walk.history = history_of(block);
    lookup_make(kind, map, &lookup);
    for (uint32_t k = 0; k < map->count; k++) {
        walk.room += feeds[k].changes;
        walk.until[k] = feeds[k].ranks[0];
    }
#if defined(__x86_64__)
    if (twin_can(kind) && !decode_walk_avx512(&walk))
        return false;
#endif
    if (!walks[__builtin_ctz(kind.width)](&walk, &lookup))
        return false;
    for (uint32_t k = 0; k < map->count; k++) {
        if (walk.event[k] != feeds[k].events || walk.change[k] != feeds[k].changes)
            return false;
    }
    return true;
}
