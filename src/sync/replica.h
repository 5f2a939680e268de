// SPDX-License-Identifier: Apache-2.0
/*
 * A directory that holds a version of a run as a model:
 *
 *     current -> versions/00000000000000000007
 *     versions/00000000000000000006            the one before, while it is of use as history
 *     versions/00000000000000000007
 *     seen                                     the newest record that was seen
 *     lock
 *
 * A version's directory appears complete, and `current` is switched in one go; what a process that
 * was killed left behind is cleaned up by the next.
 */
#ifndef SYNC_REPLICA_H
#define SYNC_REPLICA_H

#include "chain/plan.h"
#include "sync/run_log.h"

struct replica {
    char *path;
    int lock; /* descriptor + 1 */
    struct held held;
    bool seen;
    struct log_mark mark; /* valid if seen */
    uint8_t run[RUN_ID_BYTES];
};

/* Makes it if it is missing. ULP_E_BUSY if another process has it. */
enum ulp_status replica_open(const char *path, struct replica *ret_replica);
void replica_release(struct replica *replica);

/* PATH/versions/VERSION, in the text, which has room for PATH_MAX. */
enum ulp_status replica_version_path(const struct replica *replica, uint64_t version, char *text);

/* Where a version is put together before it is complete; empty. */
enum ulp_status replica_unfinished(const struct replica *replica, uint64_t version, char *text);

/* A version that is complete becomes the current one, and older ones than the one before go. */
enum ulp_status replica_switch(struct replica *replica, uint64_t version);

/* Remembers the newest record. */
enum ulp_status replica_see(struct replica *replica, const struct log_entry *entry);

#endif
