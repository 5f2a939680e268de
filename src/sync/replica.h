// SPDX-License-Identifier: Apache-2.0
/*
 * A directory that holds a version of a run as a model:
 *
 *     current -> versions/00000000000000000007
 *     versions/00000000000000000006            the one before, while it is of use as history
 *     versions/00000000000000000007
 *     seen                                     the newest record that was accepted
 *     lock
 *
 * A version's directory appears complete, and `current` is switched in one go; what a process that
 * was killed left behind is cleaned up by the next.
 */
#ifndef SYNC_REPLICA_H
#define SYNC_REPLICA_H

#include "sync/holder.h"

/* Makes it if it is missing. ULP_E_BUSY if another process has it. */
enum ulp_status replica_open(const char *path, struct holder **ret_holder);

#endif
