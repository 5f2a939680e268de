// SPDX-License-Identifier: Apache-2.0
#include "code/classes.h"

#include "base/memory.h"
#include "code/fixed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE 0xff

/* Every pair is priced, so the number of groups to start with is limited; cells beyond it, the
 * least seen, go with their neighbours. */
#define GROUPS_MAX 128u

/* Cells that belong together. */
struct group {
    uint64_t seen, changed;
    uint64_t size[SIZE_SYMBOLS];
    uint64_t cost; /* of places and sizes, with COST_SHIFT fractional bits */
};

struct chooser {
    struct group groups[GROUPS_MAX];
    uint16_t cell[GROUPS_MAX];       /* that group i was made from */
    uint8_t merged_into[GROUPS_MAX]; /* itself while it lives */
    uint32_t count, alive;
    uint64_t merge_cost[GROUPS_MAX][GROUPS_MAX]; /* of i with a later j: how much more as one */
};

static uint64_t cost_of(const struct group *group) {
    uint64_t cost = fixed_cost(group->changed, group->seen) +
                    fixed_cost(group->seen - group->changed, group->seen);

    for (uint32_t s = 0; s < SIZE_SYMBOLS; s++)
        cost += fixed_cost(group->size[s], group->changed);
    return cost;
}

static void add(struct group *to, const struct group *from) {
    to->seen += from->seen;
    to->changed += from->changed;
    for (uint32_t s = 0; s < SIZE_SYMBOLS; s++)
        to->size[s] += from->size[s];
}

static bool alive(const struct chooser *chooser, uint32_t i) {
    return chooser->merged_into[i] == i;
}

static void price(struct chooser *chooser, uint32_t i, uint32_t j) {
    struct group merged = chooser->groups[i];
    uint64_t apart = chooser->groups[i].cost + chooser->groups[j].cost, together;

    add(&merged, &chooser->groups[j]);
    together = cost_of(&merged);
    chooser->merge_cost[i < j ? i : j][i < j ? j : i] = together > apart ? together - apart : 0;
}

static void merge(struct chooser *chooser, uint32_t i, uint32_t j) {
    add(&chooser->groups[i], &chooser->groups[j]);
    chooser->groups[i].cost = cost_of(&chooser->groups[i]);
    chooser->merged_into[j] = (uint8_t)i;
    chooser->alive--;
    for (uint32_t other = 0; other < chooser->count; other++) {
        if (other != i && alive(chooser, other))
            price(chooser, i, other);
    }
}

/* The pair that costs least to merge; the first such in order, so that all machines agree. */
static uint64_t cheapest(const struct chooser *chooser, uint32_t *ret_i, uint32_t *ret_j) {
    uint64_t best = UINT64_MAX;

    for (uint32_t i = 0; i < chooser->count; i++) {
        for (uint32_t j = i + 1; alive(chooser, i) && j < chooser->count; j++) {
            if (alive(chooser, j) && chooser->merge_cost[i][j] < best) {
                best = chooser->merge_cost[i][j];
                *ret_i = i;
                *ret_j = j;
            }
        }
    }
    return best;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The most seen cells, each a group of its own. */
static void start(struct chooser *chooser, const struct cell_counts *counts, uint32_t cells) {
    uint64_t keys[CELLS];
    uint32_t seen = 0;

    for (uint32_t cell = 0; cell < cells; cell++) {
        if (counts->seen[cell])
            keys[seen++] = (uint64_t)(UINT32_MAX - counts->seen[cell]) << 16 | cell;
    }
    qsort(keys, seen, sizeof *keys, ascending);
    chooser->count = chooser->alive = seen < GROUPS_MAX ? seen : GROUPS_MAX;
    for (uint32_t i = 0; i < chooser->count; i++) {
        struct group *group = &chooser->groups[i];
        uint32_t cell = keys[i] & 0xffff;

        chooser->cell[i] = (uint16_t)cell;
        chooser->merged_into[i] = (uint8_t)i;
        group->seen = counts->seen[cell];
        group->changed = counts->changed[cell];
        for (uint32_t s = 0; s < SIZE_SYMBOLS; s++)
            group->size[s] = counts->size[cell][s];
        group->cost = cost_of(group);
    }
    for (uint32_t i = 0; i < chooser->count; i++) {
        for (uint32_t j = i + 1; j < chooser->count; j++)
            price(chooser, i, j);
    }
}

/* Numbers the groups in ascending order of their rate of change, so that flipped ones come last. */
static void number(const struct chooser *chooser, struct class_map *map) {
    uint64_t keys[CLASSES_MAX];
    uint8_t class_of[GROUPS_MAX] = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < chooser->count; i++) {
        if (alive(chooser, i))
            keys[count++] = (chooser->groups[i].changed << 32) / chooser->groups[i].seen << 16 | i;
    }
    qsort(keys, count, sizeof *keys, ascending);
    map->count = count ? count : 1;
    map->flipped = map->count;
    for (uint32_t k = count; k-- > 0;) {
        const struct group *group = &chooser->groups[keys[k] & 0xffff];

        class_of[keys[k] & 0xffff] = (uint8_t)k;
        if (2 * group->changed > group->seen)
            map->flipped = k;
    }
    for (uint32_t i = 0; i < chooser->count; i++) {
        uint32_t root = i;

        while (!alive(chooser, root))
            root = chooser->merged_into[root];
        map->of[chooser->cell[i]] = class_of[root];
    }
}

/* Cells that the sample did not show go with their neighbour in the exponent. */
static void fill_unseen(struct class_map *map, uint32_t cells) {
    for (uint32_t from = 0; from < cells; from += EXPONENT_CELLS) {
        uint8_t last = NONE;

        for (uint32_t e = 0; e < EXPONENT_CELLS; e++) {
            uint8_t *class = &map->of[from + e];

            last = *class == NONE ? last : *class;
            *class = last;
        }
        for (uint32_t e = EXPONENT_CELLS; e-- > 0;) {
            uint8_t *class = &map->of[from + e];

            last = *class == NONE ? last : *class;
            *class = last == NONE ? 0 : last;
        }
    }
}

enum ulp_status classes_choose(const struct cell_counts *counts, uint32_t cells,
                               uint64_t class_bits, struct class_map *ret_map) {
    struct chooser *chooser = NULL;
    uint64_t worth = counts->all ? (class_bits << COST_SHIFT) * counts->sampled / counts->all : 0;
    enum ulp_status status = mem_zeroed(1, sizeof *chooser, &chooser);

    if (status)
        return status;
    start(chooser, counts, cells);
    while (chooser->alive > 1) {
        uint32_t i = 0, j = 0;
        uint64_t cost = cheapest(chooser, &i, &j);

        if (chooser->alive <= CLASSES_MAX && cost > worth)
            break;
        merge(chooser, i, j);
    }
    memset(ret_map, NONE, sizeof ret_map->of);
    number(chooser, ret_map);
    fill_unseen(ret_map, cells);
    mem_free(chooser);
    return ULP_OK;
}
