// SPDX-License-Identifier: Apache-2.0
/* Adding a version to a run; see ulp_publish() in <ulpsync/run.h>. */
#ifndef SYNC_PUBLISH_H
#define SYNC_PUBLISH_H

#include "sync/replica.h"

#include <ulpsync/run.h>

enum ulp_status publish(struct ulp_store *store, const char *run, struct replica *replica,
                        const char *path, uint64_t step, const struct ulp_run_options *options,
                        struct ulp_run_report *report);

#endif
