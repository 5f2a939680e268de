// SPDX-License-Identifier: Apache-2.0
/*
 * The last versions of a run once more, in memory, with a look at the weights between them: what
 * changes in which layer, and how few bytes a patch could have.
 */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "cli/options.h"
#include "cli/runs.h"
#include "cli/story.h"

#define REPLAY_OPTIONS                                                                             \
    {"last", 'n', "N",                                                                             \
     "Replay at most the last N steps, for what needs the weights; 64 unless given."},             \
        {"replay-bytes", 0, "SIZE",                                                                \
         "Do not replay a state that is larger; 4GiB unless given. It takes this twice in memory " \
         "and once on disk, beside the report."},                                                  \
    {                                                                                              \
        "no-replay", 0, NULL, "Fetch no weights: no figure of layers, and no entropy floor."       \
    }

struct replay_step {
    uint64_t version, step;
    uint64_t elements, changed;
    double floor_bytes;    /* in-sample conditional entropy; NaN where it is not known */
    double *layer_density; /* of each layer; NaN where it has no elements */
};

struct replay {
    char **layers; /* names: a block such as "model.layers.7", or a tensor that is in none */
    size_t layer_count;
    size_t layer_total;        /* with those that there is no space to show */
    struct replay_step *steps; /* ascending by version */
    size_t step_count;
    char missing[512]; /* why steps are missing, in a sentence; "" if none are */
};

/*
 * Replays as the options say. What cannot be had (collected patches, a large state, a store that
 * does not answer) is no failure: `missing` says so, and the steps that were seen are there.
 * `beside` is the path of a file beside which the state may lie while this works.
 */
enum ulp_status replay_run(const struct cli_args *args, const struct run_place *place,
                           const struct story *story, const char *beside,
                           struct replay *ret_replay);
void replay_release(struct replay *replay);

/* The step of a version, or NULL. */
const struct replay_step *replay_find(const struct replay *replay, uint64_t version);

#endif
