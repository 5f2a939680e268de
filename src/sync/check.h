// SPDX-License-Identifier: Apache-2.0
/* Whether a run is whole; see ulp_run_check() in <ulpsync/run.h>. */
#ifndef SYNC_CHECK_H
#define SYNC_CHECK_H

#include "store/store.h"

#include <ulpsync/run.h>

enum ulp_status run_check(struct ulp_store *store, const char *run, ulp_run_damage damage,
                          void *user, struct ulp_run_health *ret_health);

#endif
