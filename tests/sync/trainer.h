// SPDX-License-Identifier: Apache-2.0
/* A small training run on disk, to publish and to follow. */
#ifndef TESTS_SYNC_TRAINER_H
#define TESTS_SYNC_TRAINER_H

#include "tests/patch/disk.h"

#include <stdbool.h>

#define TRAINER_STEPS_MAX 64u
#define RUN "rl"

struct trainer {
    char *top; /* everything is below it */
    struct ulp_store *store;
    struct state state;
    unsigned shards;
    struct ulp_root roots[TRAINER_STEPS_MAX]; /* by version */
    unsigned count;                           /* of versions that were made */
};

/* With a store in memory, or one in top/store. */
struct trainer trainer_make(unsigned shards, bool in_memory);
void trainer_free(struct trainer *trainer);

/* A path below the top. */
struct path below(const struct trainer *trainer, const char *name);

/* Where the model is saved: a directory with a config beside the weights. */
struct path model_of(const struct trainer *trainer);

/* The weights move, except for the first time, and are saved; nothing is published. */
void trainer_step(struct trainer *trainer);

/* Steps and publishes from top/state; the step is the version. */
struct ulp_run_report trainer_publish(struct trainer *trainer,
                                      const struct ulp_run_options *options);

/* Follows into top/NAME and checks that it arrives at the newest version that was published. */
struct ulp_run_report assert_follows(const struct trainer *trainer, const char *name);
enum ulp_status follow_to(const struct trainer *trainer, const char *name);

/* What top/NAME/current holds. */
void assert_at(const struct trainer *trainer, const char *name, unsigned version);
void assert_holds_nothing(const struct trainer *trainer, const char *name);

/* A copy of a directory with all below it, over what is there. */
void tree_copy(const char *from, const char *to);
void tree_remove(const char *path);

/* All objects of a store. */
struct object {
    char key[300];
    struct bytes bytes;
};
struct objects {
    struct object *list;
    size_t count;
};
struct objects objects_of(struct ulp_store *store);
void objects_free(struct objects *objects);

/* The store holds just these afterwards. */
void objects_restore(struct ulp_store *store, const struct objects *objects);

#endif
