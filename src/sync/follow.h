// SPDX-License-Identifier: Apache-2.0
/* Bringing a replica to a run's newest version; see ulp_follow() in <ulpsync/run.h>. */
#ifndef SYNC_FOLLOW_H
#define SYNC_FOLLOW_H

#include "sync/replica.h"

#include <ulpsync/run.h>

enum ulp_status follow(struct ulp_store *store, const char *run, struct replica *replica,
                       const struct ulp_run_options *options, struct log_entry *ret_head,
                       struct ulp_run_report *report);

/* What a record says of itself. */
struct ulp_run_record record_summary(const struct record *record);

#endif
