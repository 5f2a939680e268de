// SPDX-License-Identifier: Apache-2.0
/*
 * Patches on their way from the store. While one is applied, a thread fetches those that come next,
 * within a budget of bytes. What is given out was verified: every part has its hash.
 */
#ifndef SYNC_FETCH_H
#define SYNC_FETCH_H

#include "base/lock.h"
#include "base/spool.h"
#include "base/thread.h"
#include "chain/plan.h"
#include "store/store.h"

#include <ulpsync/patch.h>

/* A way whose patches are here, opened: those of tiles that have one. Zeroed means none. */
struct fetched {
    struct spool *spools; /* one for each patch */
    struct ulp_patch **patches;
    size_t count;
    uint64_t bytes;
    unsigned objects;
};

enum ulp_status fetch_way(struct ulp_store *store, const char *run, const struct way *way,
                          struct fetched *ret_fetched);
void fetched_release(struct fetched *fetched);

/* Ways that are fetched one after the other, ahead of who takes them. Zeroed means none. */
struct ahead {
    struct lock lock;
    struct thread thread;
    struct ulp_store *store;
    const char *run;
    const struct way *const *ways; /* of a plan, which must stay */
    size_t count;
    struct fetched *fetched; /* one for each */
    size_t ready, taken;
    uint64_t budget, waiting; /* bytes: that may wait to be taken, that do */
    bool stop;
    enum ulp_status status; /* of the way at `ready`, where it failed */
    struct error_note note;
};

enum ulp_status ahead_start(struct ahead *ahead, struct ulp_store *store, const char *run,
                            const struct plan *plan, uint64_t budget);

/* The next way, in order; waits for it. */
enum ulp_status ahead_take(struct ahead *ahead, struct fetched *ret_fetched);

/* Ends it, wherever it is. */
void ahead_stop(struct ahead *ahead);

#endif
