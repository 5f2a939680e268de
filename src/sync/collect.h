// SPDX-License-Identifier: Apache-2.0
/* Deleting what nobody needs; see ulp_run_collect() in <ulpsync/run.h>. */
#ifndef SYNC_COLLECT_H
#define SYNC_COLLECT_H

#include "sync/follower.h"

enum ulp_status collect(struct ulp_store *store, const char *run,
                        const struct ulp_collect_options *options,
                        struct ulp_collect_report *report);

#endif
