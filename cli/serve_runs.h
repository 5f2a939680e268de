// SPDX-License-Identifier: Apache-2.0
/* The runs that a server shows, each with its story, which is read anew when somebody asks, and not
 * more often than people look. */
#ifndef CLI_SERVE_RUNS_H
#define CLI_SERVE_RUNS_H

#include "cli/serve_objects.h"
#include "cli/story.h"
#include "cli/text.h"

#define SERVE_TAG_BYTES 40u

struct serve_run {
    char name[ULP_KEY_PART_BYTES_MAX + 1];
    struct story story;
    bool opened;
    uint64_t looked_ns; /* at its log; 0: never */
    enum ulp_status status;
    char message[256]; /* what was wrong */

    struct text figures; /* as the story was when they were drawn */
    bool drawn;
    char tag[SERVE_TAG_BYTES]; /* other figures have another one */
};

/* Zeroed has none. */
struct serve_runs {
    struct serve_run **list; /* by name */
    size_t count;
    bool more;                   /* than there is room for */
    uint64_t listed_ns, rest_ns; /* and for how long there is no other listing */
};

/* Which runs there are; those that have gone are forgotten. */
enum ulp_status serve_runs_list(struct serve_runs *runs, const struct serve_objects *objects);

/* NULL if there is none. */
struct serve_run *serve_runs_find(struct serve_runs *runs, const struct serve_objects *objects,
                                  const char *name);

/* Its story, as new as it must be. A run whose log cannot be read has a status that says why, and
 * the story as it was. */
void serve_run_look(struct serve_run *run, const struct serve_objects *objects);

/* The figures of the story, and their tag. */
enum ulp_status serve_run_draw(struct serve_run *run);

void serve_runs_release(struct serve_runs *runs);

#endif
