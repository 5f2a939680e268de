// SPDX-License-Identifier: Apache-2.0
/* A trainer that publishes from memory, workers that follow in memory, and a count of what both ask
 * of the store. */
#ifndef TESTS_SYNC_LIVE_H
#define TESTS_SYNC_LIVE_H

#include "tests/sync/trainer.h"

#include <stdatomic.h>

/* The weights move, except for the first time, and are published; the step is the version. */
struct ulp_run_report live_publish(struct trainer *trainer, struct ulp_publisher *publisher);

/* So many more versions from a publisher in memory that comes and goes. */
void live_versions(struct trainer *trainer, unsigned count, const struct ulp_run_options *options);

/* Brings the version that is newest under an anchor, which must be due. */
void live_anchor(struct trainer *trainer, const struct ulp_run_options *options);

/* Somebody who follows in memory of its own. */
struct worker {
    struct state state;
    struct ulp_follower *follower;
};

/* Its memory holds something that is no version of the run. */
struct worker worker_make(const struct trainer *trainer, const struct ulp_run_options *options);

/* Its memory holds what the trainer has now. */
struct worker worker_like(const struct trainer *trainer, const struct ulp_run_options *options);
void worker_free(struct worker *worker);

/* Polls and applies until nothing is left; what both reported, added up. */
struct ulp_run_report worker_catch_up(struct worker *worker);
void assert_worker_at(const struct worker *worker, const struct trainer *trainer, unsigned version);

/* The newest version. */
void assert_worker_follows(struct worker *worker, const struct trainer *trainer);

/* What was asked of a store. */
struct requests {
    atomic_uint by_op[ULP_STORE_REMOVE + 1];
};

/* From here on the trainer's store is counted. */
void count_requests(struct trainer *trainer, struct requests *requests);
unsigned requests_total(const struct requests *requests);
void requests_clear(struct requests *requests);

#endif
