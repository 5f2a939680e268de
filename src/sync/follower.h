// SPDX-License-Identifier: Apache-2.0
/* Bringing a holder to a run's newest version; see struct ulp_follower in <ulpsync/run.h>. */
#ifndef SYNC_FOLLOWER_H
#define SYNC_FOLLOWER_H

#include "sync/fetch.h"
#include "sync/holder.h"

struct ulp_follower {
    struct ulp_store *store;
    char *run;
    struct ulp_run_options options;
    struct holder *holder;
    bool looked; /* the record that was seen before was found again */
    bool idle;   /* when it was last looked, there was nothing new */

    /* The way that is being gone; its records are those of holder->seen. */
    struct arena arena;
    struct plan plan;
    struct ulp_root *roots; /* where each way leads, for a holder of a slice; else NULL */
    size_t next;            /* way of the plan */
    uint64_t goal;
    bool travelling;
    struct ahead ahead;
    struct fetched fetched; /* what is staged was made of it */
};

/* Takes over the holder, also when it fails. */
enum ulp_status follower_new(struct ulp_store *store, const char *run,
                             const struct ulp_run_options *options, struct holder *holder,
                             struct ulp_follower **ret_follower);
void follower_free(struct ulp_follower *follower);

/* Looks at the log, and at nothing else. */
enum ulp_status follower_look(struct ulp_follower *follower, struct ulp_run_report *report);
enum ulp_status follower_poll(struct ulp_follower *follower, struct ulp_run_report *report);
enum ulp_status follower_apply(struct ulp_follower *follower, struct ulp_run_report *report);

/* Until the newest version is shown, or the one that was asked for. */
enum ulp_status follower_catch_up(struct ulp_follower *follower, struct ulp_run_report *report);

/* What a record says of itself. */
struct ulp_run_record record_summary(const struct record *record);

#endif
