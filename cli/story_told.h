// SPDX-License-Identifier: Apache-2.0
/* The part of a story that comes from tellings; for story.c alone. */
#ifndef CLI_STORY_TOLD_H
#define CLI_STORY_TOLD_H

#include "cli/story.h"

/* What somebody who published told of a version, until its record is read. */
struct story_published {
    uint64_t version, stored_bytes;
    bool fresh;
    double phases_ms[RUN_PHASES];
    double notes[STORY_NOTES_MAX];
};

struct story_inside {
    struct ulp_listener *listener;
    size_t steps_max, step_room, follower_room;
    size_t activation_count; /* of all followers */
    uint64_t next;           /* the sequence to read; 0: nothing was read yet */
    uint64_t full_bytes;     /* of the last anchor that was read */
    unsigned idle;           /* refreshes that found no record */
    struct story_published *published;
    size_t published_count, published_room;
    bool failed; /* no memory for what was told */
};

/* Hears what is new. Failures are noted in the story. */
void story_listen(struct story *story);

/* Gives what publishers told to the steps it is of. */
void story_attach(struct story *story);

#endif
