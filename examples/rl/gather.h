// SPDX-License-Identifier: Apache-2.0
/* Collecting what workers have said, as much as a step needs and no older than it may be. */
#ifndef RL_GATHER_H
#define RL_GATHER_H

#include "jsonl.h"
#include "samples.h"

struct gathering {
    struct ulp_store *store;
    const char *run;
    uint64_t workers, groups, size;
    uint64_t lag;      /* 0: exactly what each worker made with this version, in their order */
    double patience_s; /* for the next samples */
    struct jsonl *log; /* hears of what was refused */
};

struct harvest {
    struct sequence *sequences;
    size_t groups, room;
    double age;     /* mean, in versions */
    uint64_t stale; /* objects that came too late */
};

void harvest_release(struct harvest *harvest);

/* Waits. ULP_E_NOT_FOUND if nothing comes. */
enum ulp_status gather(const struct gathering *how, uint64_t version, struct harvest *harvest);

/* Throws away what nobody will take. */
enum ulp_status gather_clear(struct ulp_store *store, const char *run);

/* The name of a worker's samples where the order counts. */
void gather_name(uint64_t worker, char ret_name[32]);

/* Groups of a worker's share. */
uint64_t gather_share(uint64_t groups, uint64_t workers, uint64_t worker);

/* How many objects wait that are not older than `version`. */
enum ulp_status gather_waiting(struct ulp_store *store, const char *run, uint64_t version,
                               size_t *ret_objects);

#endif
