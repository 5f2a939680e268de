// SPDX-License-Identifier: Apache-2.0
/* The walks in portable C: they define what a stream means. */
#include "base/cpu.h"
#include "code/context_walk.h"

/* A sample takes runs this long: each start of one is a wait for memory. */
#define SAMPLE_RUN 2048u

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

/* The move at `position`, passing over those in front of it. */
static int history_seek(struct history *history, uint32_t position) {
    while (history->position < position)
        history_take(history);
    return history->position == position ? history_take(history) : 0;
}

/* The element behind `i`, or the first of the next run that is sampled. */
static uint32_t next_sampled(uint32_t i, uint32_t stride) {
    return ++i % SAMPLE_RUN ? i : i + SAMPLE_RUN * (stride - 1);
}

static void count_change(struct cell_counts *counts, uint32_t cell, uint64_t value) {
    uint32_t symbol = value_symbol(value);

    counts->changed[cell]++;
    counts->size[cell][symbol < SIZE_SYMBOLS ? symbol : SIZE_SYMBOLS - 1]++;
}

/* One set of walks for each width. TYPE is an element, STEP the same with a sign: a step of the bit
 * pattern wraps around at the element's width. */
#define DEFINE_WALKS(WIDTH, TYPE, STEP)                                                            \
    static TYPE load_##WIDTH(const void *from, uint32_t index) {                                   \
        TYPE value;                                                                                \
                                                                                                   \
        memcpy(&value, (const uint8_t *)from + WIDTH * (size_t)index, WIDTH);                      \
        return value;                                                                              \
    }                                                                                              \
                                                                                                   \
    static uint64_t value_##WIDTH(TYPE old, TYPE new, int move) {                                  \
        STEP step = (STEP)(TYPE)(move < 0 ? old - new : new - old);                                \
                                                                                                   \
        return value_of_step(step, (TYPE)-1);                                                      \
    }                                                                                              \
                                                                                                   \
    static void sample_##WIDTH(struct code_kind kind, const struct lookup *cells,                  \
                               const struct code_block *block, uint32_t stride,                    \
                               struct cell_counts *counts) {                                       \
        const uint32_t mask = (1u << kind.exponent_bits) - 1;                                      \
        struct history history = history_of(block);                                                \
                                                                                                   \
        for (uint32_t i = 0; i < block->elements; i = next_sampled(i, stride)) {                   \
            TYPE old = load_##WIDTH(block->old, i), new = load_##WIDTH(block->new, i);             \
            uint32_t cell = cells->of[(uint32_t)(old >> kind.exponent_shift) & mask];              \
            int move = 0;                                                                          \
                                                                                                   \
            if (history.position <= i) {                                                           \
                move = history_seek(&history, i);                                                  \
                cell = moved_cell(kind, old, move);                                                \
            }                                                                                      \
            counts->sampled++;                                                                     \
            counts->seen[cell]++;                                                                  \
            if (old != new)                                                                        \
                count_change(counts, cell, value_##WIDTH(old, new, move));                         \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void encode_##WIDTH(struct encode_walk *walk, const struct lookup *lookup) {            \
        const struct code_kind kind = walk->kind;                                                  \
        const uint32_t mask = (1u << kind.exponent_bits) - 1, flipped = walk->map->flipped;        \
                                                                                                   \
        for (uint32_t i = walk->at; i < walk->block->elements; i++) {                              \
            TYPE old = load_##WIDTH(walk->block->old, i), new = load_##WIDTH(walk->block->new, i); \
            uint32_t class = lookup->of[(uint32_t)(old >> kind.exponent_shift) & mask];            \
            int move = 0;                                                                          \
                                                                                                   \
            if (i == walk->history.position) {                                                     \
                move = history_take(&walk->history);                                               \
                class = walk->map->of[moved_cell(kind, old, move)];                                \
            }                                                                                      \
            if ((old != new) != (class >= flipped))                                                \
                walk_event(walk, class, (uint32_t)walk->rank[class]);                              \
            walk->rank[class]++;                                                                   \
            if (old != new)                                                                        \
                walk_value(walk, class, value_##WIDTH(old, new, move));                            \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static bool decode_##WIDTH(struct decode_walk *walk, const struct lookup *lookup) {            \
        const struct code_kind kind = walk->kind;                                                  \
        const uint32_t mask = (1u << kind.exponent_bits) - 1, flipped = walk->map->flipped;        \
                                                                                                   \
        for (uint32_t i = walk->at; i < walk->block->elements; i++) {                              \
            TYPE old = load_##WIDTH(walk->block->old, i), new;                                     \
            uint32_t class = lookup->of[(uint32_t)(old >> kind.exponent_shift) & mask];            \
            bool event;                                                                            \
            int move = 0;                                                                          \
            uint64_t step;                                                                         \
                                                                                                   \
            if (i == walk->history.position) {                                                     \
                move = history_take(&walk->history);                                               \
                class = walk->map->of[moved_cell(kind, old, move)];                                \
            }                                                                                      \
            event = walk->rank[class]++ == walk->next[class];                                      \
            if (event)                                                                             \
                walk_next_event(walk, class);                                                      \
            if (event == (class >= flipped))                                                       \
                continue;                                                                          \
            if (!walk_step(walk, class, &step))                                                    \
                return false;                                                                      \
            new = (TYPE)(old + (TYPE)(move < 0 ? 0 - step : step));                                \
            walk->positions[walk->found] = i;                                                      \
            memcpy((uint8_t *)walk->values + WIDTH * walk->found++, &new, WIDTH);                  \
        }                                                                                          \
        return true;                                                                               \
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

void scan_sample(struct code_kind kind, const struct code_block *block, uint32_t stride,
                 struct cell_counts *counts) {
    static void (*const walks[])(struct code_kind, const struct lookup *, const struct code_block *,
                                 uint32_t,
                                 struct cell_counts *) = {sample_1, sample_2, sample_4, sample_8};
    struct lookup cells;

    lookup_make(kind, NULL, &cells);
    counts->all += block->elements;
    walks[__builtin_ctz(kind.width)](kind, &cells, block, stride, counts);
}

void scan_encode(struct code_kind kind, const struct class_map *map, const struct code_block *block,
                 struct event_list *lists, uint64_t *seen) {
    static void (*const walks[])(struct encode_walk *,
                                 const struct lookup *) = {encode_1, encode_2, encode_4, encode_8};
    struct encode_walk walk = {.kind = kind, .map = map, .block = block, .lists = lists};
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
    for (uint32_t k = 0; k < CLASSES_MAX; k++)
        walk.next[k] = k < map->count && feeds[k].events ? feeds[k].ranks[0] : UINT64_MAX;
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
