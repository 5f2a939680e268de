// SPDX-License-Identifier: Apache-2.0
/*
 * A run in figures, for `ulpsync report` and for whoever shows a run while it happens: each function
 * adds one piece to a page (cli/page.h), or to a fragment of one, from what the story knows by then.
 * Where something is missing a sentence says so.
 */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include "cli/page.h"
#include "cli/replay.h"
#include "cli/story.h"

/* All of the below in their order, the body of a page. `replay` may be NULL: then there is no
 * figure that needs the weights themselves, and no word about it. */
void figures_of_story(struct text *out, const struct story *story, const struct replay *replay);

/* The large numbers on top. */
void figures_headline(struct text *out, const struct story *story);

/* One figure for each note that was told; reward first. */
void figures_notes(struct text *out, const struct story *story);

void figures_density(struct text *out, const struct story *story);
void figures_bytes(struct text *out, const struct story *story, const struct replay *replay);
void figures_bits(struct text *out, const struct story *story, const struct replay *replay);
void figures_layers(struct text *out, const struct story *story, const struct replay *replay);

/* Where the time went, and how long a version took to come to life with each follower. */
void figures_publish_times(struct text *out, const struct story *story);
void figures_follow_times(struct text *out, const struct story *story);
void figures_activation(struct text *out, const struct story *story);

/* Tables. */
#define FIGURES_STEPS_SHOWN 20u
#define FIGURES_FOLLOWERS_SHOWN 200u
void figures_followers_table(struct text *out, const struct story *story);
void figures_steps_table(struct text *out, const struct story *story);

#endif
