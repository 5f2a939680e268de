// SPDX-License-Identifier: Apache-2.0
/* Long ways; see ulp_run_tend() in <ulpsync/run.h>. */
#ifndef SYNC_TEND_H
#define SYNC_TEND_H

#include "sync/follower.h"

enum ulp_status tend(struct ulp_store *store, const char *run, const char *directory,
                     const struct ulp_run_options *options, struct ulp_run_report *report);

#endif
