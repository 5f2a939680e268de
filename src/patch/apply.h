// SPDX-License-Identifier: Apache-2.0
/*
 * A patch, or several of regions, decoded and verified against weights; see struct ulp_apply in
 * <ulpsync/patch.h>.
 */
#ifndef PATCH_APPLY_H
#define PATCH_APPLY_H

#include "patch/decode.h"
#include "patch/staging.h"
#include "patch/weights.h"

struct apply_part {
    const struct ulp_patch *patch;
    struct decoded_chunk *chunks; /* values are new before a commit and old after it */
    size_t *first_held;           /* of each of its regions the first piece of a tile; else NULL */
    uint64_t first_task;          /* tasks of all parts are numbered through: one for each chunk */
};

struct ulp_apply {
    struct ulp_weights *weights;
    struct apply_part *parts;
    size_t part_count;
    uint64_t tasks;
    struct ulp_pool *pool;
    struct staging *staging;
    struct ulp_sum *sums; /* of the weights' pieces: new before a commit and old after it */
    struct ulp_root root; /* likewise */
    struct moves *moves;  /* likewise what is remembered; NULL unless asked for */
    bool already;         /* the weights were the child from the start */
    bool committed;
    struct ulp_apply_report report;
};

/* For what is staged, and as much again for what is remembered; `options` may be NULL. */
struct staging_room apply_room(const struct ulp_apply_options *options);

/* `child` is NULL for a whole patch, which says it itself. */
enum ulp_status apply_prepare(struct ulp_weights *weights, const struct ulp_patch *const *parts,
                              size_t count, const struct ulp_root *child,
                              const struct ulp_apply_options *options,
                              struct ulp_apply **ret_apply);
enum ulp_status apply_commit(struct ulp_apply *apply, const struct ulp_progress *progress,
                             struct ulp_apply_report *ret_report);
enum ulp_status apply_undo(struct ulp_apply *apply);
void apply_free(struct ulp_apply *apply);

/* Goes through the blocks that change, in order. */
struct staged_block {
    struct block_walk block;
    const uint32_t *positions;
    uint8_t *values;
    uint32_t count;
};
typedef enum ulp_status (*staged_block_fn)(void *user, const struct staged_block *block);
enum ulp_status apply_each_block(const struct ulp_apply *apply, staged_block_fn fn, void *user);

#endif
