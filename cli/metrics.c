// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct page {
    FILE *file;
    const char *run;
};

static void print_label(FILE *file, const char *text) {
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", file);
        else if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else
            fputc(*text, file);
    }
}

static void print_head(const struct page *page, const char *name, const char *type,
                       const char *help) {
    fprintf(page->file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* `label` is NULL, or the name of a second label. */
static void print_sample(const struct page *page, const char *name, const char *label,
                         const char *label_value, double value) {
    fprintf(page->file, "%s{run=\"", name);
    print_label(page->file, page->run);
    fputc('"', page->file);
    if (label) {
        fprintf(page->file, ",%s=\"", label);
        print_label(page->file, label_value);
        fputc('"', page->file);
    }
    fprintf(page->file, "} %.17g\n", value);
}

static void print_one(const struct page *page, const char *name, const char *type, const char *help,
                      double value) {
    print_head(page, name, type, help);
    print_sample(page, name, NULL, NULL, value);
}

static double age_seconds(const struct ulp_run_record *record) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)record->time_ms / 1e3;
}

static void print_state(const struct page *page, const struct metrics *m) {
    if (m->holds) {
        print_one(page, "ulpsync_version", "gauge", "Version of the run that is held.",
                  (double)m->held.version);
        print_one(page, "ulpsync_step", "gauge", "Step of the version that is held.",
                  (double)m->held.step);
        print_one(page, "ulpsync_epoch", "gauge", "Epoch of the version that is held.",
                  (double)m->held.epoch);
    }
    if (m->holds && m->head.sequence)
        print_one(page, "ulpsync_lag_versions", "gauge",
                  "Versions between the one that is held and the newest that is known.",
                  (double)m->head.version - (double)m->held.version);
    if (m->head.sequence)
        print_one(page, "ulpsync_head_age_seconds", "gauge",
                  "Time since the newest record that is known was made.", age_seconds(&m->head));
}

static void print_errors(const struct page *page, const struct metrics *m) {
    static const char name[] = "ulpsync_errors_total";

    print_head(page, name, "counter", "Polls and applies that failed, by status.");
    for (unsigned i = 0; i < METRICS_STATUS_MAX; i++) {
        if (m->errors[i])
            print_sample(page, name, "status", ulp_status_name((enum ulp_status)i),
                         (double)m->errors[i]);
    }
}

static void print_counters(const struct page *page, const struct metrics *m) {
    static const char bytes[] = "ulpsync_fetched_bytes_total";
    static const char seconds[] = "ulpsync_phase_seconds_total";
    const struct ulp_run_report *total = &m->total;

    print_one(page, "ulpsync_polls_total", "counter", "Looks at the run's log.", (double)m->polls);
    print_one(page, "ulpsync_applies_total", "counter", "Changes to what is held.",
              (double)m->applies);
    print_errors(page, m);
    print_head(page, bytes, "counter", "Bytes fetched from the store, by kind of object.");
    print_sample(page, bytes, "kind", "patch", (double)total->patch_bytes);
    print_sample(page, bytes, "kind", "anchor", (double)total->anchor_bytes);
    print_sample(page, bytes, "kind", "record", (double)total->record_bytes);
    print_one(page, "ulpsync_fetched_objects_total", "counter", "Objects fetched from the store.",
              (double)total->fetched_objects);
    print_head(page, seconds, "counter", "Time spent, by phase.");
    for (unsigned i = 0; i < RUN_PHASES; i++)
        print_sample(page, seconds, "phase", run_phase_names[i],
                     (double)run_phase_ns(&total->phases, i) / 1e9);
}

/* Hidden, and with another ending: collectors leave it alone. */
static enum ulp_status unfinished_name(const char *path, char *ret_name) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;

    if (snprintf(ret_name, PATH_MAX, "%.*s.%s.%ld", folder, path, path + folder, (long)getpid()) >=
        PATH_MAX)
        return ulp_fail(ULP_E_NAME, "the path '%s' is too long", path);
    return ULP_OK;
}

enum ulp_status metrics_write(const struct metrics *metrics) {
    struct page page = {.run = metrics->run};
    char unfinished[PATH_MAX];
    enum ulp_status status = ULP_OK;
    bool written;

    if (!metrics->path)
        return ULP_OK;
    status = unfinished_name(metrics->path, unfinished);
    if (status)
        return status;
    page.file = fopen(unfinished, "w");
    if (!page.file)
        return ulp_fail(ULP_E_IO, "cannot write '%s': %s", unfinished, strerror(errno));
    print_state(&page, metrics);
    print_counters(&page, metrics);
    written = !ferror(page.file);
    if (fclose(page.file) || !written || rename(unfinished, metrics->path)) {
        status = ulp_fail(ULP_E_IO, "cannot write '%s': %s", metrics->path, strerror(errno));
        unlink(unfinished);
    }
    return status;
}
