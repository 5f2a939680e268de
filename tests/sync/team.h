// SPDX-License-Identifier: Apache-2.0
/* Ranks that publish a run together, a tile each. */
#ifndef TESTS_SYNC_TEAM_H
#define TESTS_SYNC_TEAM_H

#include "tests/patch/disk.h"
#include "tests/patch/tile_state.h"

#include <stdbool.h>

#define RUN "rl"
#define TILES 4u
#define RULES "*.down columns\n"

struct rank_writer {
    unsigned tile;
    struct ulp_run_options options;
    struct ulp_tile_writer *writer;
    const void *contribution;
    size_t bytes;
};

struct team {
    char *top;
    struct ulp_store *store;
    struct ulp_tiling *tiling;
    struct state state;
    uint64_t versions;
    struct rank_writer ranks[TILES];
};

struct set {
    const void *contributions[TILES + 2];
    size_t sizes[TILES + 2];
    size_t count;
};

/* A run that begins with a whole state; its ranks are open, or none is. */
struct team team_make(bool in_memory, bool open);
void team_free(struct team *team);

/* The rank of tile index + 1. */
void rank_open(struct team *team, unsigned index);

/* Of what a rank gives all but its tile is garbage. */
void contribute_state(struct team *team, unsigned index, const struct state *state, uint64_t step);
void contribute_all(struct team *team, uint64_t step);

/* What all ranks contributed last. */
struct set set_of(const struct team *team);
enum ulp_status commit_set(struct team *team, unsigned committer, const struct set *set,
                           uint64_t step);

uint64_t team_records(const struct team *team);
uint64_t team_version(const struct team *team);
void assert_settles(struct team *team, unsigned index, int fresh);

/* Whoever follows the whole run gets the state that the ranks made together. */
void assert_published(const struct team *team, const struct state *state);

/* A step of the team's state, contributed, committed and settled. */
void step_together(struct team *team, unsigned committer);

#endif
