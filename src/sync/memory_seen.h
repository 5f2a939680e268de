// SPDX-License-Identifier: Apache-2.0
/* What holders in memory keep of the log: the caller does it for them. */
#ifndef SYNC_MEMORY_SEEN_H
#define SYNC_MEMORY_SEEN_H

#include "sync/holder.h"

/* What the caller kept the last time becomes holder->seen. */
enum ulp_status memory_seen_take(struct holder *holder, const struct ulp_run_options *options);

/* Gives holder->seen to the caller to keep. */
enum ulp_status memory_seen_keep(const struct holder *holder,
                                 const struct ulp_run_options *options);

/* A holder_ops.keep_evidence: there is nowhere to put it. */
void memory_seen_evidence(const struct holder *holder, const struct log_entry *culprit);

#endif
