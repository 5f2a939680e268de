// SPDX-License-Identifier: Apache-2.0
/* A record that is being made, and the moment in which it becomes part of the log. */
#ifndef SYNC_COMMIT_H
#define SYNC_COMMIT_H

#include "sync/follower.h"

/* What is added to the map; the parts are stored. */
struct addition {
    const struct way *way;       /* or NULL */
    const struct anchor *anchor; /* or NULL */
    unsigned keep_anchors;       /* 0: nothing is let go */
    bool version;                /* a new one, with this step and root */
    uint64_t step;
    struct ulp_root root;
    bool boundary;                        /* deletion is announced */
    const struct ulp_key *hand_over_from; /* or NULL */
    const struct ulp_key *key;            /* that signs; NULL: nobody */
};

/*
 * Adds a record behind holder->seen, which it becomes. Records that others put there meanwhile are
 * taken in, if they only change the map; *ret_moved says that one of them announced a deletion that
 * may have hit our parts, and nothing was added: they must be stored again.
 *
 * ULP_E_FENCED if a version was to be added and somebody else added one; ULP_E_EXISTS if the map has
 * the way or the anchor already.
 */
enum ulp_status commit(struct ulp_follower *follower, const struct addition *addition,
                       struct ulp_run_report *report, bool *ret_moved);

#endif
