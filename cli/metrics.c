// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics.h"

#include "cli/prometheus.h"
#include "cli/whole_file.h"

#include <stdio.h>
#include <stdlib.h>

static void print_state(const struct prometheus *page, const struct metrics *m) {
    if (m->holds) {
        prometheus_one(page, "ulpsync_version", "gauge", "Version of the run that is held.",
                       (double)m->held.version);
        prometheus_one(page, "ulpsync_step", "gauge", "Step of the version that is held.",
                       (double)m->held.step);
        prometheus_one(page, "ulpsync_epoch", "gauge", "Epoch of the version that is held.",
                       (double)m->held.epoch);
    }
    if (m->holds && m->head.sequence)
        prometheus_one(page, "ulpsync_lag_versions", "gauge",
                       "Versions between the one that is held and the newest that is known.",
                       (double)m->head.version - (double)m->held.version);
    if (m->head.sequence)
        prometheus_one(page, "ulpsync_head_age_seconds", "gauge",
                       "Time since the newest record that is known was made.",
                       prometheus_age_seconds(m->head.time_ms));
}

static void print_errors(const struct prometheus *page, const struct metrics *m) {
    static const char name[] = "ulpsync_errors_total";

    prometheus_head(page, name, "counter", "Polls and applies that failed, by status.");
    for (unsigned i = 0; i < METRICS_STATUS_MAX; i++) {
        if (m->errors[i])
            prometheus_sample(page, name, "status", ulp_status_name((enum ulp_status)i),
                              (double)m->errors[i]);
    }
}

static void print_counters(const struct prometheus *page, const struct metrics *m) {
    static const char bytes[] = "ulpsync_fetched_bytes_total";
    static const char seconds[] = "ulpsync_phase_seconds_total";
    const struct ulp_run_report *total = &m->total;

    prometheus_one(page, "ulpsync_polls_total", "counter", "Looks at the run's log.",
                   (double)m->polls);
    prometheus_one(page, "ulpsync_applies_total", "counter", "Changes to what is held.",
                   (double)m->applies);
    print_errors(page, m);
    prometheus_head(page, bytes, "counter", "Bytes fetched from the store, by kind of object.");
    prometheus_sample(page, bytes, "kind", "patch", (double)total->patch_bytes);
    prometheus_sample(page, bytes, "kind", "anchor", (double)total->anchor_bytes);
    prometheus_sample(page, bytes, "kind", "record", (double)total->record_bytes);
    prometheus_one(page, "ulpsync_fetched_objects_total", "counter",
                   "Objects fetched from the store.", (double)total->fetched_objects);
    prometheus_head(page, seconds, "counter", "Time spent, by phase.");
    for (unsigned i = 0; i < RUN_PHASES; i++)
        prometheus_sample(page, seconds, "phase", run_phase_names[i],
                          (double)run_phase_ns(&total->phases, i) / 1e9);
}

enum ulp_status metrics_write(const struct metrics *metrics) {
    struct prometheus page = {.run = metrics->run};
    enum ulp_status status;
    char *text = NULL;
    size_t bytes = 0;

    if (!metrics->path)
        return ULP_OK;
    page.file = open_memstream(&text, &bytes);
    if (!page.file)
        return ulp_fail(ULP_E_NOMEM, "out of memory for a page of metrics");
    print_state(&page, metrics);
    print_counters(&page, metrics);
    status = fclose(page.file) ? ulp_fail(ULP_E_NOMEM, "out of memory for a page of metrics")
                               : whole_file_write(metrics->path, text, bytes);
    free(text);
    return status && status != ULP_E_NOMEM ? ULP_E_IO : status; /* which may pass */
}
