// SPDX-License-Identifier: Apache-2.0
/*
 * A small world that one seed decides: a store that may lie, publishers, followers and those who
 * clean up, each a thread, all of them real code of the library. What must never happen is looked
 * for at every operation on the store.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "sync/follower.h"
#include "tests/sim/chance.h"

#include <stdio.h>
#include <ulpsync/run.h>

#define RUN "run"
#define TENSORS_MAX 4u
#define FOLLOWERS_MAX 5u
#define ACTORS_MAX 12u

/* Rules that can be broken on purpose, to see that it is noticed. */
enum broken {
    BROKEN_NOTHING,
    BROKEN_RECORD_BEFORE_PARTS,
    BROKEN_BASE_BEFORE_COMMIT,
    BROKEN_DELETED_RECORD,
    BROKEN_XOR_APPLY,
    BROKEN_UNALIGNED_HISTORY,
    BROKEN_COLLECT_WITHOUT_BOUNDARY,
    BROKEN_BOUNDARY_IGNORED,
    BROKEN_COUNT
};

/* How much can be relied on. */
enum honesty {
    HONEST,   /* nothing goes wrong but crashes, and everybody at once */
    DELAYING, /* answers get lost, come late or damaged; in the end all is as it should be */
    LOSING,   /* what was stored may be gone, or be only half there */
    FORKING   /* records are replaced, or said to be */
};

/* Percent of the operations that go wrong, by kind of fault. */
struct habits {
    enum honesty honesty;
    unsigned before, after, old, flip, truncate, lose, cut, force, invert;
};

/* The shape of the model, and one state of it. */
struct shape {
    size_t count, bytes;
    struct ulp_tensor tensors[TENSORS_MAX]; /* without data */
    uint64_t extents[TENSORS_MAX];
};

struct state {
    struct ulp_tensor tensors[TENSORS_MAX];
    uint8_t *bits; /* of all tensors, one after the other */
};

/* What was offered for publication, by root. */
struct known_state {
    struct ulp_root root;
    uint8_t *bits;
};

/* A record that was in the log at some moment. */
struct known_record {
    uint64_t sequence, version;
    struct hash hash;
    struct ulp_root root;
};

/* What has really happened. */
struct truth {
    struct known_state *states;
    size_t state_count, state_room;
    struct known_record *records;
    size_t record_count, record_room;
    struct log_entry head; /* the newest of the log */
};

struct world {
    uint64_t seed;
    enum broken broken;
    bool verbose;
    struct shape shape;
    struct habits habits;
    bool calm; /* no more faults, crashes and stalls */

    struct ulp_store *inner;  /* the truth */
    struct ulp_store *shared; /* the same, lying */
    struct truth truth;

    unsigned active; /* actors that still work */
    int all_done;
    bool collects; /* somebody deletes parts */
    unsigned versions_wanted;

    uint64_t events, trace; /* a hash of all that happened */
    char violation[400];    /* the first; "" if there was none */
};

/* Notes what happened. */
void world_event(struct world *world, const char *who, const char *what, const char *key,
                 enum ulp_status status);

/* Notes that something happened that never must. */
void violated(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool is_violated(const struct world *world) {
    return world->violation[0];
}

/* Whether the store can be relied on in the end. */
static inline bool is_strict(const struct world *world) {
    return world->habits.honesty <= DELAYING;
}

/* ---- states ---- */

struct shape shape_make(struct chance *chance);
struct state state_make(const struct shape *shape);
void state_free(struct state *state);

/* Some bits change, now and then all of them. */
void state_move(const struct shape *shape, struct state *state, struct chance *chance);

/* ---- truth ---- */

void truth_offer(struct world *world, const struct state *state);
/* A record that is in the log now; or one that a publisher takes for that, because the store lost
 * it and did not say so. */
void truth_record(struct world *world, uint64_t sequence, const uint8_t *bytes, size_t count,
                  bool is_in_log);
void truth_free(struct truth *truth);

/* The state that was published as this version is just this: I1. */
bool truth_is_published(const struct world *world, uint64_t version, const uint8_t *bits);

/* What the log says is there: I6. To be called after each change of the store. */
void truth_check_parts(struct world *world);
void truth_check_removed(struct world *world, const char *key);
void truth_check_head(struct world *world);

/* Every record that ever was is still there, and whoever comes finds everything. */
void truth_check_end(struct world *world);

/* ---- one run of it ---- */

void world_run(struct world *world, uint64_t seed, enum broken broken, bool verbose);

#endif
