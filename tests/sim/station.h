// SPDX-License-Identifier: Apache-2.0
/*
 * An actor's door to the store. At each operation others may go on first, the actor may stall for
 * long, or die: from then on nothing that it does has any effect.
 */
#ifndef TESTS_SIM_STATION_H
#define TESTS_SIM_STATION_H

#include "tests/sim/world.h"

struct station {
    struct world *world;
    const char *who;
    struct ulp_store *store; /* what the actor gets */

    uint64_t dies_in;   /* operations; 0: not */
    bool dies_after;    /* after the operation, whose answer is lost; or before it */
    bool dead;          /* until station_revive() */
    uint64_t stalls_in; /* operations; 0: not */
    uint64_t stall_ns;  /* for so long */
    bool keeps_parts;   /* BROKEN_RECORD_BEFORE_PARTS: they are stored after the next record */
    struct late *late;  /* parts that were kept back */

    /* Called after each operation. */
    void (*look)(void *user);
    void *user;
};

void station_open(struct station *station, struct world *world, const char *who);
void station_close(struct station *station);

/* As after a restart. */
void station_revive(struct station *station);

/* The store that lies, over the inner one. */
struct ulp_store *lying_store(struct world *world);

#endif
