// SPDX-License-Identifier: Apache-2.0
/* Those who live in the world. Each runs in a thread of its own until its rounds are over. */
#ifndef TESTS_SIM_ACTORS_H
#define TESTS_SIM_ACTORS_H

#include "tests/sim/station.h"

/* What an actor has kept where it outlasts a crash. */
struct kept {
    const struct world *world;
    uint8_t *record;
    size_t bytes;
};

enum ulp_status kept_write(void *user, const void *record, size_t bytes);
void kept_lose(struct kept *kept);

/* The actor dies at one of the next operations, perhaps. */
void plan_death(struct station *station, unsigned percent);

/* Called by each actor at its end. */
void actor_done(struct world *world);

/* ---- publishers ---- */

struct trainer {
    struct station station;
    struct state state;
    struct ulp_publisher *publisher;
    struct kept kept;
    char *directory; /* NULL: in memory */
    unsigned rounds, deaths, models;
    uint64_t step;
    unsigned anchor_every, keep_anchors;
    bool again; /* the last version may not have been published: the same again */
};

void trainer_open(struct trainer *trainer, struct world *world, const char *who, bool zombie,
                  bool on_disk);
void trainer_run(void *trainer);
void trainer_close(struct trainer *trainer);

/* With nobody else at work and no faults, publishing must just work. */
void trainer_finish(struct trainer *trainer);

/* ---- followers ---- */

struct watcher {
    struct station station;
    struct state state; /* the weights in use */
    struct ulp_follower *follower;
    struct kept kept;
    char *directory; /* NULL: in memory */
    unsigned rounds, deaths;

    bool holds; /* a version, and these bits */
    uint64_t version, highest;
    uint8_t *bits;
};

void watcher_open(struct watcher *watcher, struct world *world, const char *who, bool on_disk);
void watcher_run(void *watcher);
void watcher_close(struct watcher *watcher);

/* I8: without faults it gets to the newest version within a bounded number of polls. */
void watcher_converge(struct watcher *watcher);

/* ---- those who take care ---- */

struct carer {
    struct station station;
    char *directory; /* NULL: it needs none */
    unsigned rounds;
};

void carer_open(struct carer *carer, struct world *world, const char *who, bool on_disk);
void carer_close(struct carer *carer);

/* The run function decides what it does: delete, tend, or break a rule. */
void collector_run(void *carer);
void tender_run(void *carer);
void reckless_collector_run(void *carer);
void record_remover_run(void *carer);

#endif
