// SPDX-License-Identifier: Apache-2.0
/* Contributions of many ranks become one version, or nothing. */
#ifndef SYNC_JOIN_H
#define SYNC_JOIN_H

#include "sync/follower.h"

/* The follower holds a tile, and has just looked at the log. It is not moved. */
enum ulp_status join_and_commit(struct ulp_follower *follower, const struct work *work,
                                const void *const *contributions, const size_t *sizes, size_t count,
                                uint64_t step);

#endif
