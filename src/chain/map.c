// SPDX-License-Identifier: Apache-2.0
#include "chain/map.h"

#include <string.h>

static bool goes_before(const struct way *a, uint64_t from, uint64_t to) {
    return a->to < to || (a->to == to && a->from < from);
}

enum ulp_status map_add_way(struct record *record, const struct way *way, struct arena *arena) {
    struct way *ways = NULL;
    size_t at = 0;
    enum ulp_status status = arena_zeroed(arena, record->way_count + 1, sizeof *ways, &ways);

    if (status)
        return status;
    if (map_way(record, way->from, way->to))
        return fail(ULP_E_EXISTS, "there is a way from version %llu to %llu already",
                    (unsigned long long)way->from, (unsigned long long)way->to);
    for (size_t i = 0; i < record->way_count; i++) {
        bool before = goes_before(&record->ways[i], way->from, way->to);

        ways[i + !before] = record->ways[i];
        at += before;
    }
    ways[at] = *way;
    record->ways = ways;
    record->way_count++;
    return ULP_OK;
}

enum ulp_status map_add_anchor(struct record *record, const struct anchor *anchor,
                               struct arena *arena) {
    struct anchor *anchors = NULL;
    size_t at = 0;
    enum ulp_status status =
        arena_zeroed(arena, record->anchor_count + 1, sizeof *anchors, &anchors);

    if (status)
        return status;
    if (map_anchor(record, anchor->version))
        return fail(ULP_E_EXISTS, "there is an anchor of version %llu already",
                    (unsigned long long)anchor->version);
    for (size_t i = 0; i < record->anchor_count; i++) {
        bool before = record->anchors[i].version < anchor->version;

        anchors[i + !before] = record->anchors[i];
        at += before;
    }
    anchors[at] = *anchor;
    record->anchors = anchors;
    record->anchor_count++;
    return ULP_OK;
}

enum ulp_status map_trim(struct record *record, size_t anchors, struct arena *arena) {
    struct way *ways = NULL;
    size_t count = 0;
    enum ulp_status status = arena_zeroed(arena, record->way_count, sizeof *ways, &ways);

    if (status || !anchors || record->anchor_count <= anchors)
        return status;
    record->anchors += record->anchor_count - anchors;
    record->anchor_count = anchors;
    for (size_t i = 0; i < record->way_count; i++) {
        if (record->ways[i].from >= record->anchors[0].version)
            ways[count++] = record->ways[i];
    }
    record->ways = ways;
    record->way_count = count;
    return ULP_OK;
}

/* The patches that are wanted lie apart, so they are put side by side. */
static enum ulp_status slice_way(const struct way *way, unsigned tile, bool common,
                                 struct arena *arena, struct way *ret_way) {
    struct stored_patch *patches = NULL;
    enum ulp_status status = arena_zeroed(arena, 2, sizeof *patches, &patches);

    if (status)
        return status;
    *ret_way = *way;
    ret_way->patches = patches;
    ret_way->patch_count = 0;
    if (common)
        patches[ret_way->patch_count++] = way->patches[0];
    patches[ret_way->patch_count++] = way->patches[tile];
    return ULP_OK;
}

enum ulp_status map_slice(const struct record *record, unsigned tiles, unsigned tile, bool common,
                          struct arena *arena, struct record *ret_sliced) {
    struct record sliced = *record;
    struct way *ways = NULL;
    enum ulp_status status = arena_zeroed(arena, record->way_count, sizeof *ways, &ways);

    sliced.ways = ways;
    sliced.way_count = 0;
    for (size_t i = 0; !status && i < record->way_count; i++) {
        if (record->ways[i].patch_count == (size_t)tiles + 1)
            status = slice_way(&record->ways[i], tile, common, arena, &ways[sliced.way_count++]);
    }
    if (!status)
        *ret_sliced = sliced;
    return status;
}

enum ulp_status map_each_version(const struct record *record, bool holds, struct arena *arena,
                                 struct record *ret_stepwise) {
    struct record stepwise = *record;
    struct way *ways = NULL;
    enum ulp_status status = arena_zeroed(arena, record->way_count, sizeof *ways, &ways);

    if (status)
        return status;
    stepwise.ways = ways;
    stepwise.way_count = 0;
    for (size_t i = 0; i < record->way_count; i++) {
        if (record->ways[i].to == record->ways[i].from + 1)
            ways[stepwise.way_count++] = record->ways[i];
    }
    if (holds)
        stepwise.anchor_count = 0;
    *ret_stepwise = stepwise;
    return ULP_OK;
}

const struct way *map_way(const struct record *record, uint64_t from, uint64_t to) {
    for (size_t i = 0; i < record->way_count; i++) {
        if (record->ways[i].from == from && record->ways[i].to == to)
            return &record->ways[i];
    }
    return NULL;
}

const struct anchor *map_anchor(const struct record *record, uint64_t version) {
    for (size_t i = 0; i < record->anchor_count; i++) {
        if (record->anchors[i].version == version)
            return &record->anchors[i];
    }
    return NULL;
}

static enum ulp_status each_of_way(const struct way *way, map_part fn, void *user) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < way->patch_count; i++) {
        for (size_t k = 0; !status && k < way->patches[i].part_count; k++)
            status = fn(user, &way->patches[i].parts[k]);
    }
    return status;
}

enum ulp_status map_each_part(const struct record *record, map_part fn, void *user) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < record->anchor_count; i++) {
        for (size_t k = 0; !status && k < record->anchors[i].file_count; k++)
            status = fn(user, &record->anchors[i].files[k].part);
    }
    for (size_t i = 0; !status && i < record->way_count; i++)
        status = each_of_way(&record->ways[i], fn, user);
    return status;
}

/* ULP_E_EXISTS once it was found. */
static enum ulp_status is_it(void *user, const struct part *part) {
    const struct part *wanted = user;

    return part->folder == wanted->folder && !memcmp(&part->hash, &wanted->hash, sizeof part->hash)
               ? ULP_E_EXISTS
               : ULP_OK;
}

bool map_names(const struct record *record, const struct part *part) {
    struct part wanted = *part;

    return map_each_part(record, is_it, &wanted) == ULP_E_EXISTS;
}
