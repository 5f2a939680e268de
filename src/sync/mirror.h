// SPDX-License-Identifier: Apache-2.0
/* A copy of a run in another store; see ulp_run_mirror() in <ulpsync/run.h>. */
#ifndef SYNC_MIRROR_H
#define SYNC_MIRROR_H

#include "sync/run_log.h"

#include <ulpsync/run.h>

enum ulp_status mirror(struct ulp_store *from, struct ulp_store *to, const char *run,
                       const struct ulp_run_options *options, struct ulp_run_report *report);

#endif
