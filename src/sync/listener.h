// SPDX-License-Identifier: Apache-2.0
/* Hearing what was told: <ulpsync/tell.h>. */
#ifndef SYNC_LISTENER_H
#define SYNC_LISTENER_H

#include "sync/telling.h"

enum ulp_status listener_new(struct ulp_store *store, const char *run,
                             struct ulp_listener **ret_listener);
enum ulp_status listener_hear(struct ulp_listener *listener, ulp_told heard, void *user);
void listener_free(struct ulp_listener *listener);

#endif
