// SPDX-License-Identifier: Apache-2.0
/*
 * A follower's figures as a file in the text format of Prometheus, for a collector that reads files
 * (node_exporter's textfile collector). Counters begin with the process.
 */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include "cli/runs.h"

#define METRICS_STATUS_MAX 126u

struct metrics {
    const char *path; /* NULL: nothing is written */
    const char *run;
    bool holds;                 /* the record of what is held is known */
    struct ulp_run_record held; /* a record of the version that is held */
    struct ulp_run_record head; /* the newest that is known; sequence 0: none */
    uint64_t polls, applies;
    uint64_t errors[METRICS_STATUS_MAX];
    struct ulp_run_report total;
};

/* The file appears complete, over the one before. */
enum ulp_status metrics_write(const struct metrics *metrics);

#endif
