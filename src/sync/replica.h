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

/* Makes it if it is missing. With a slice the files have the bytes of that alone, and holes
 * elsewhere. ULP_E_BUSY if another process has it, ULP_E_OTHER_RUN if it holds another slice, or a
 * whole model where a slice is wanted, or the other way around. */
enum ulp_status replica_open(const char *path, const struct slice *slice,
                             struct holder **ret_holder);

#endif
