// SPDX-License-Identifier: Apache-2.0
/*
 * Ways are sorted by the version that they lead to, so one pass over them finds the cheapest way to
 * each. A place is a version, and whether the one in front of it is held too: who took the step from
 * there in tiles does not remember how the elements moved.
 */
#include "chain/plan.h"

#include "base/quote.h"

#include <string.h>

#define NOWHERE UINT64_MAX

struct place {
    uint64_t version, bytes;
    const struct anchor *anchor;
    const struct way *last; /* NULL: an anchor, or what is held */
    size_t from;            /* the place that `last` leaves from */
    bool before;
};

struct search {
    struct place *places;
    size_t count;
};

/* The cheapest place at a version from which the way is open; `count` if there is none. */
static size_t best_start(const struct search *search, const struct way *way) {
    size_t best = search->count;

    for (size_t i = 0; i < search->count; i++) {
        const struct place *place = &search->places[i];

        if (place->version == way->from && (place->before || !way->history) &&
            (best == search->count || place->bytes < search->places[best].bytes))
            best = i;
    }
    return best;
}

static void add_start(struct search *search, struct place place) {
    search->places[search->count++] = place;
}

static void add_starts(struct search *search, const struct record *record,
                       const struct held *held) {
    if (held->any)
        add_start(search, (struct place){.version = held->version, .before = held->before});
    for (size_t i = 0; i < record->anchor_count; i++) {
        const struct anchor *anchor = &record->anchors[i];

        if (!*anchor->reference && (!held->any || held->back || anchor->version > held->version))
            add_start(search, (struct place){.version = anchor->version,
                                             .bytes = anchor_bytes(anchor),
                                             .anchor = anchor});
    }
}

static void follow_ways(struct search *search, const struct record *record) {
    for (size_t i = 0; i < record->way_count; i++) {
        const struct way *way = &record->ways[i];
        size_t from = best_start(search, way);

        if (from < search->count)
            add_start(search,
                      (struct place){.version = way->to,
                                     .bytes = add_bytes(search->places[from].bytes, way_bytes(way)),
                                     .anchor = search->places[from].anchor,
                                     .last = way,
                                     .from = from,
                                     .before = way->to == way->from + 1 && way->patch_count == 1});
    }
}

static enum ulp_status trace_back(const struct search *search, size_t end, struct arena *arena,
                                  struct plan *plan) {
    size_t count = 0;
    enum ulp_status status;

    for (size_t at = end; search->places[at].last; at = search->places[at].from)
        count++;
    status = arena_zeroed(arena, count, sizeof *plan->ways, &plan->ways);
    if (status)
        return status;
    plan->way_count = count;
    plan->bytes = search->places[end].bytes;
    plan->anchor = search->places[end].anchor;
    for (size_t at = end; search->places[at].last; at = search->places[at].from)
        plan->ways[--count] = search->places[at].last;
    return ULP_OK;
}

/* Anchors by reference are no start for who has not got the model that they name. */
static enum ulp_status unreachable(const struct record *record, uint64_t to) {
    for (size_t i = 0; i < record->anchor_count; i++) {
        if (*record->anchors[i].reference)
            return fail(ULP_E_UNREACHABLE,
                        "nothing in the store leads to version %llu; the run begins with the model "
                        "%s: get that, and name it as the base to start from",
                        (unsigned long long)to, quote(record->anchors[i].reference).text);
    }
    return fail(ULP_E_UNREACHABLE,
                "nothing in the store leads to version %llu any more, from what is held or from "
                "an anchor",
                (unsigned long long)to);
}

enum ulp_status plan_make(const struct record *record, const struct held *held, uint64_t to,
                          struct arena *arena, struct plan *ret_plan) {
    struct search search = {0};
    struct plan plan = {0};
    size_t best;
    enum ulp_status status = arena_zeroed(arena, 1 + record->anchor_count + record->way_count,
                                          sizeof *search.places, &search.places);

    if (status)
        return status;
    add_starts(&search, record, held);
    follow_ways(&search, record);
    best = best_start(&search, &(struct way){.from = to});
    if (best == search.count)
        return unreachable(record, to);
    status = trace_back(&search, best, arena, &plan);
    if (!status)
        *ret_plan = plan;
    return status;
}

/* Whoever has the model that an anchor refers to starts there as from any other. */
static enum ulp_status reaches_from(const struct record *record, const struct anchor *anchor,
                                    struct arena *arena) {
    const struct held held = {.any = true, .version = anchor->version};
    struct plan plan;

    return plan_make(record, &held, record->version, arena, &plan);
}

enum ulp_status plan_check(const struct record *record) {
    struct arena arena = {0};
    enum ulp_status status = fail(ULP_E_UNREACHABLE, "a record without an anchor");

    for (size_t i = 0; status == ULP_E_UNREACHABLE && i < record->anchor_count; i++)
        status = reaches_from(record, &record->anchors[i], &arena);
    arena_release(&arena);
    return status;
}
