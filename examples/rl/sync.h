// SPDX-License-Identifier: Apache-2.0
/*
 * How weights get from the trainer to the workers: as ulpsync does it, or, to compare with, all of
 * them after each step. Both go through a store, and versions are numbered from 0.
 */
#ifndef RL_SYNC_H
#define RL_SYNC_H

#include "state.h"

#include <stdbool.h>

enum sync_mode { SYNC_ULPSYNC, SYNC_FULL };

/* "ulpsync" or "full"; ULP_E_USAGE. */
enum ulp_status sync_mode_read(const char *text, enum sync_mode *ret_mode);

/* ---- the trainer's end ---- */

struct sender {
    enum sync_mode mode;
    struct ulp_store *store;
    const char *run;
    const struct state *state;
    struct ulp_publisher *publisher;
    uint64_t next;
};

struct sent {
    uint64_t version, bytes; /* bytes that were stored: a patch, or everything */
    struct ulp_root root;
    struct ulp_run_phases phases; /* of ulpsync */
};

/* What is pointed to must outlive the sender. ULP_E_EXISTS if the store has such a run already. */
enum ulp_status sender_open(struct sender *sender, enum sync_mode mode, struct ulp_store *store,
                            const char *run, const struct state *state);
void sender_close(struct sender *sender);
enum ulp_status sender_send(struct sender *sender, struct sent *ret_sent);

/* ---- a worker's end ---- */

struct receiver {
    enum sync_mode mode;
    struct ulp_store *store;
    const char *run;
    const struct state *state;
    struct ulp_follower *follower;
    bool holds; /* a version: before the first one, there is nothing to work with */
    uint64_t version;
};

struct received {
    bool fresh;
    uint64_t time_ms; /* when it was published; 0: nobody said */
    uint64_t bytes, patches, anchors;
    struct ulp_run_phases phases; /* of ulpsync */
};

enum ulp_status receiver_open(struct receiver *receiver, enum sync_mode mode,
                              struct ulp_store *store, const char *run, const struct state *state);
void receiver_close(struct receiver *receiver);

/* Brings the state to the newest version. A run that does not exist yet is no failure. */
enum ulp_status receiver_look(struct receiver *receiver, struct received *ret_received);

#endif
