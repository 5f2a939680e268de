// SPDX-License-Identifier: Apache-2.0
/* The walks on this CPU find what the portable ones find, whatever the classes are. */
#include "base/cpu.h"
#include "code/context_scan.h"
#include "tests/code/sample.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const uint32_t sizes[] = {1, 63, 2047, 2048, 2049, 4096, 4097, 6143, 8192, 20000};
static const uint32_t densities[] = {10, 0, 300, 1000, 950, 1};

/* All that an encoder's walk tells of a block. */
struct walked {
    struct event_list lists[CLASSES_MAX];
    uint64_t seen[CLASSES_MAX];
    uint32_t *positions;
};

static struct class_map any_map(uint32_t count, uint32_t flipped) {
    struct class_map map = {.count = count, .flipped = flipped};

    for (uint32_t cell = 0; cell < CELLS; cell++)
        map.of[cell] = (uint8_t)(test_random() % count);
    return map;
}

static struct walked walk(const struct sample *sample, const struct class_map *map) {
    const size_t room = (size_t)sample->total + LIST_SLACK;
    struct walked walked = {.positions = sample_memory(room, sizeof(uint32_t))};

    for (uint32_t k = 0; k < CLASSES_MAX; k++) {
        walked.lists[k].gaps = sample_memory(room, sizeof(uint32_t));
        walked.lists[k].values = sample_memory(room, sizeof(uint32_t));
    }
    scan_encode(sample->kind, map, &sample->blocks[0], walked.lists, walked.seen, walked.positions);
    return walked;
}

static void walked_free(struct walked *walked) {
    for (uint32_t k = 0; k < CLASSES_MAX; k++) {
        free(walked->lists[k].gaps);
        free(walked->lists[k].values);
    }
    free(walked->positions);
}

static size_t changes_of(const struct walked *walked) {
    size_t changes = 0;

    for (uint32_t k = 0; k < CLASSES_MAX; k++)
        changes += walked->lists[k].value_count;
    return changes;
}

static void check_same(const struct walked *a, const struct walked *b) {
    for (uint32_t k = 0; k < CLASSES_MAX; k++) {
        const struct event_list *x = &a->lists[k], *y = &b->lists[k];

        assert_int_equal(x->gap_count, y->gap_count);
        assert_int_equal(x->value_count, y->value_count);
        assert_memory_equal(x->gaps, y->gaps, x->gap_count * sizeof *x->gaps);
        assert_memory_equal(x->values, y->values, x->value_count * sizeof *x->values);
        assert_true(a->seen[k] == b->seen[k]);
    }
    assert_memory_equal(a->positions, b->positions, changes_of(a) * sizeof *a->positions);
}

/* The gaps of a class become ranks in `to`; returns where those of the next class go. */
static uint32_t *feed_ranks(const struct event_list *list, uint32_t *to) {
    uint32_t rank = 0;

    for (size_t i = 0; i < list->gap_count; i++) {
        rank += list->gaps[i];
        *to++ = rank++;
    }
    *to++ = UINT32_MAX;
    return to;
}

/* Decodes what was encoded, less `missing` values of the last class. */
static bool decode(const struct sample *sample, const struct class_map *map,
                   const struct walked *walked, uint32_t missing) {
    size_t changes = changes_of(walked) - missing, found = 0;
    uint32_t *ranks = sample_memory(sample->total + CLASSES_MAX + FEED_SLACK, sizeof *ranks);
    uint32_t *values = sample_memory(sample->total + FEED_SLACK, sizeof *values);
    uint32_t *positions = sample_memory(changes, sizeof *positions);
    uint16_t *new = sample_memory(changes, sizeof *new);
    uint32_t *rank_to = ranks, *value_to = values;
    struct event_feed feeds[CLASSES_MAX];
    bool fits;

    for (uint32_t k = 0; k < map->count; k++) {
        const struct event_list *list = &walked->lists[k];

        feeds[k] = (struct event_feed){rank_to, value_to, NULL, (uint32_t)list->gap_count,
                                       (uint32_t)list->value_count};
        feeds[k].changes -= k + 1 == map->count ? missing : 0;
        rank_to = feed_ranks(list, rank_to);
        memcpy(value_to, list->values, list->value_count * sizeof *values);
        value_to += list->value_count;
    }
    fits = scan_decode(sample->kind, map, &sample->blocks[0], feeds, positions, new);
    for (uint32_t i = 0; fits && i < sample->blocks[0].elements; i++) {
        uint64_t expected = element_get(sample->blocks[0].new, 2, i);

        if (element_get(sample->blocks[0].old, 2, i) == expected)
            continue;
        assert_int_equal(positions[found], i);
        assert_int_equal(new[found++], expected);
    }
    assert_true(!fits || found == changes);
    free(ranks);
    free(values);
    free(positions);
    free(new);
    return fits;
}

static void check_walks(const struct sample *sample, const struct class_map *map) {
    struct walked here = walk(sample, map), portable;
    uint32_t last = map->count - 1;

    cpu_allow(0);
    portable = walk(sample, map);
    check_same(&here, &portable);
    assert_true(decode(sample, map, &portable, 0));
    cpu_allow(CPU_ALL);
    assert_true(decode(sample, map, &portable, 0));
    if (map->flipped <= last && portable.lists[last].value_count) {
        assert_false(decode(sample, map, &portable, 1));
        cpu_allow(0);
        assert_false(decode(sample, map, &portable, 1));
        cpu_allow(CPU_ALL);
    }
    walked_free(&here);
    walked_free(&portable);
}

static void check_samples(const struct sample *sample) {
    for (uint32_t stride = 1; stride < 4; stride++) {
        struct cell_counts here = {0}, portable = {0};

        scan_sample(sample->kind, &sample->blocks[0], stride, &here);
        cpu_allow(0);
        scan_sample(sample->kind, &sample->blocks[0], stride, &portable);
        cpu_allow(CPU_ALL);
        assert_memory_equal(&here, &portable, sizeof here);
    }
}

/* One block, which need not be aligned. */
static struct sample make(const char *dtype, unsigned i, uint8_t *old, uint8_t *new) {
    uint32_t size = sizes[i % COUNT(sizes)];
    struct sample sample = sample_make(code_kind_of(dtype, 16), &size, 1,
                                       densities[i % COUNT(densities)], i / 8 % CHANGES, i & 1);

    sample.blocks[0].old = memcpy(old + i / 2 % 3, sample.old, 2 * (size_t)size);
    sample.blocks[0].new = memcpy(new + i / 4 % 3, sample.new, 2 * (size_t)size);
    return sample;
}

static void test_any_classes(void **state) {
    static const char *const dtypes[] = {"BF16", "F16", "I16"};
    static uint8_t old[2 * 20000 + 2], new[2 * 20000 + 2];
    unsigned i = 0;

    (void)state;
    for (uint32_t count = 1; count <= CLASSES_MAX; count++) {
        for (uint32_t flipped = 0; flipped <= count; flipped++, i++) {
            struct sample sample = make(dtypes[i % 7 < 5 ? 0 : i % 7 - 4], i, old, new);
            struct class_map map = any_map(count, flipped);

            check_walks(&sample, &map);
            check_samples(&sample);
            sample_free(&sample);
        }
    }
}

TEST_MAIN(test_any_classes)
