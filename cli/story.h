// SPDX-License-Identifier: Apache-2.0
/*
 * A run as a story: what its log says of each version, and what publishers and followers told of
 * it (<ulpsync/tell.h>), in one place for whoever draws it.
 *
 *     struct story story = {0};
 *     story_open(store, "rl1", 0, &story);
 *     while (looking) {
 *         status = story_refresh(&story);       ULP_E_NO_RUN: there is none yet, try again
 *         ... draw story.steps, story.followers ...
 *     }
 *     story_close(&story);
 *
 * The first refresh reads the last records of the log, the next ones only what is new. Nothing is
 * verified, as with `ulpsync log`, and tellings may be lies: every number is finite or NaN, every
 * text is harmless (see below), and nothing else is promised. A story without tellings has steps without
 * notes, and no followers.
 */
#ifndef CLI_STORY_H
#define CLI_STORY_H

#include "cli/runs.h"

#define STORY_STEPS_DEFAULT 1024u
#define STORY_STEPS_MAX 65536u
#define STORY_NOTES_MAX 9u
#define STORY_NOTE_NAME_BYTES 32u        /* with the NUL */
#define STORY_FOLLOWERS_MAX 4096u        /* then whoever is silent for longest is forgotten */
#define STORY_ACTIVATIONS_MAX 1024u      /* of one follower */
#define STORY_ALL_ACTIVATIONS (1u << 18) /* of all together */

/* A version. */
struct story_step {
    /* from the log */
    uint64_t version, step, epoch, sequence;
    uint64_t time_ms; /* since 1970, by the publisher's clock */
    uint64_t elements;
    uint64_t changed; /* of them, since the version before; 0 for the first */
    double density;   /* changed / elements; NaN where there is no version before, or no element */
    uint64_t patch_bytes;  /* 0: the log does not know, or there is none, as for the first */
    uint64_t anchor_bytes; /* of this version, stored whole; 0: it is not */
    uint64_t full_bytes; /* what a full state takes: of the newest anchor up to here, or else of the
                              next; 0: not known */
    struct ulp_root root;

    /* from who published it */
    bool told; /* else all of this is 0 or NaN */
    uint64_t stored_bytes;
    double phases_ms[RUN_PHASES];  /* as run_phase_names; NaN: not told */
    double notes[STORY_NOTES_MAX]; /* as story.note_names; NaN: not told */
};

/* A version came to life somewhere. */
struct story_activation {
    uint64_t version, step;
    uint64_t time_ms;            /* since 1970, by the follower's clock */
    double publish_to_active_ms; /* NaN: not told */
    uint64_t fetched_bytes;
    double phases_ms[RUN_PHASES]; /* NaN: not told */
};

struct story_follower {
    char name[ULP_TELLER_NAME_BYTES_MAX + 1]; /* letters, digits, '.', '-', '_' */
    uint64_t version, step;                   /* that it said last it holds */
    uint64_t told_ms;                         /* when, by its clock */
    uint64_t fetched_bytes;                   /* all that it told of */
    struct story_activation *activations;     /* the newest, in the order in which they were told */
    size_t activation_count, room;
};

struct story {
    struct ulp_store *store;
    const char *run;
    struct ulp_run_record head; /* the newest record; sequence 0: none was read yet */

    struct story_step *steps; /* the newest, ascending by version */
    size_t step_count;
    uint64_t full_bytes; /* of the newest step for which it is known; 0: not known */

    /* Letters, digits, '.', '-', '_', '/' and spaces; in the order in which they were told first. */
    char note_names[STORY_NOTES_MAX][STORY_NOTE_NAME_BYTES];
    unsigned note_count;

    struct story_follower *followers; /* by name */
    size_t follower_count;

    /* What came of reading tellings: ULP_E_UNSUPPORTED where the store cannot be listed. The steps
     * are there all the same. */
    enum ulp_status told_status;
    char told_message[256];
    bool told;    /* anything at all, by anybody */
    bool changed; /* by the last refresh */

    struct story_inside *inside;
};

/* `steps_max`: so many of the newest records are read, 0: STORY_STEPS_DEFAULT. What is pointed to must
 * outlive the story. Nothing is read yet. */
enum ulp_status story_open(struct ulp_store *store, const char *run, size_t steps_max,
                           struct story *ret_story);
void story_close(struct story *story);

/* Takes in what is new. One that fails leaves the story as far as it got. A run that was replaced by
 * another begins anew. */
enum ulp_status story_refresh(struct story *story);

/* Which note to draw first: "reward", or the one that was told first; -1 if there is none. */
int story_main_note(const struct story *story);

/* The newest step, or NULL. */
const struct story_step *story_newest(const struct story *story);

/* The step of a version, or NULL. */
const struct story_step *story_find(const struct story *story, uint64_t version);

/* How many times smaller than a full state the patch is; NaN where either is not known. */
double story_ratio(const struct story_step *step);

/* Versions behind the newest. */
uint64_t story_lag(const struct story *story, const struct story_follower *follower);

/* Of publish_to_active_ms; NaN where none was told. */
double story_active_last(const struct story_follower *follower);
double story_active_median(const struct story_follower *follower);

/* The middle one of those that are finite, which are put in order; NaN if there is none. */
double story_median(double *numbers, size_t count);

#endif
