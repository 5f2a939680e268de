// SPDX-License-Identifier: Apache-2.0
/* Adding versions to a run; see struct ulp_publisher in <ulpsync/run.h>. */
#ifndef SYNC_PUBLISHER_H
#define SYNC_PUBLISHER_H

#include "sync/follower.h"

struct ulp_publisher {
    struct ulp_follower *follower; /* whoever publishes follows first */
    bool fenced;
};

/* Takes over the holder, also when it fails. */
enum ulp_status publisher_new(struct ulp_store *store, const char *run,
                              const struct ulp_run_options *options, struct holder *holder,
                              struct ulp_publisher **ret_publisher);
void publisher_free(struct ulp_publisher *publisher);
enum ulp_status publisher_publish(struct ulp_publisher *publisher, const struct given *given,
                                  uint64_t step, struct ulp_run_report *report);
enum ulp_status publisher_anchor(struct ulp_publisher *publisher, struct ulp_run_report *report);

#endif
