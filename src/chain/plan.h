// SPDX-License-Identifier: Apache-2.0
/* The cheapest way from what is held to the newest version: a pure function of a record's map. */
#ifndef CHAIN_PLAN_H
#define CHAIN_PLAN_H

#include "chain/record.h"

/* What a follower holds. */
struct held {
    bool any;
    uint64_t version;
    bool before; /* also the version in front of it, so that ways with history are open */
    bool back;   /* an older anchor will do, because what is on the way from there is not shown */
};

/* Start from the anchor, if there is one in the plan, then take the ways in order. */
struct plan {
    const struct anchor *anchor; /* NULL: from what is held */
    const struct way **ways;     /* in the arena */
    size_t way_count;
    uint64_t bytes;
};

/* To version `to` of the record. ULP_E_UNREACHABLE if nothing leads there. */
enum ulp_status plan_make(const struct record *record, const struct held *held, uint64_t to,
                          struct arena *arena, struct plan *ret_plan);

/* Whether the record's version can be reached at all, from one of its anchors: I6. */
enum ulp_status plan_check(const struct record *record);

#endif
