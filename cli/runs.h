// SPDX-License-Identifier: Apache-2.0
/* What the verbs on runs share. */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include "cli/options.h"
#include "cli/output.h"

#define RUN_OPTIONS                                                                                \
    {"store", 0, "URL", "Where the run is kept: a directory, or file:// and its path."}, {         \
        "run", 'r', "NAME", "The run's name in the store."                                         \
    }

/* A store and the name of a run in it. Zeroed means none. */
struct run_place {
    struct ulp_store *store;
    const char *run;
    struct ulp_pool *pool; /* only of verbs that have --threads */
};

enum ulp_status run_place_open(const struct cli_args *args, struct run_place *ret_place);
void run_place_close(struct run_place *place);

/* The members of an open object. */
void run_record_json(struct json_out *out, const struct ulp_run_record *record);

#endif
