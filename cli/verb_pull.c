// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* renameat2 */
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/terminal.h"
#include "cli/workshop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sync_directory(const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0)
        return;
    fsync(descriptor);
    close(descriptor);
}

/* Never over something, not even an empty directory that has just been made. */
static enum ulp_status move_out(const struct workshop *w, const char *goal) {
    char link[PATH_MAX + 16], *version;
    enum ulp_status status = ULP_OK;

    snprintf(link, sizeof link, "%s/current", w->path);
    version = realpath(link, NULL);
    if (!version || renameat2(AT_FDCWD, version, AT_FDCWD, goal, RENAME_NOREPLACE)) {
        if (version && errno == EINVAL && !ulp_name_is_free(goal) && !rename(version, goal))
            errno = 0; /* a file system that cannot promise it */
        else
            status = ulp_fail(errno == EEXIST ? ULP_E_EXISTS : ULP_E_IO, "cannot make '%s': %s",
                              goal, strerror(errno));
    }
    if (!status)
        sync_directory(w->parent);
    free(version);
    return status;
}

static void print_result(const struct cli_args *args, const struct ulp_run_record *record,
                         const struct ulp_run_report *report) {
    struct json_out out = {0};

    if (!option_given(args, "json")) {
        run_fetched_text(record, report);
        return;
    }
    json_out_begin(&out, NULL, '{');
    json_out_text(&out, "path", option_text(args, "out"));
    run_record_json(&out, record);
    run_fetched_json(&out, report);
    run_phases_json(&out, &report->phases);
    json_out_end(&out, '}');
}

static enum ulp_status pull(const struct cli_args *args, const struct run_place *place,
                            const struct workshop *w) {
    const char *goal = option_text(args, "out");
    struct ulp_run_options options = {0};
    struct ulp_run_report report = {0};
    struct ulp_run_record record = {0};
    struct progress_line line;
    struct ulp_progress progress;
    enum ulp_status status = run_options(args, place, &options);

    if (!status)
        status = run_options_version(args, place, &options);
    if (status)
        return status;
    progress = progress_begin(&line, "pull", 0);
    options.progress = &progress;
    status = ulp_follow(place->store, place->run, w->path, &options, &report);
    progress_end(&line);
    if (!status)
        status = run_record_of_version(place, &report.head, report.version, &record);
    if (!status && terminal_stopping())
        status = ulp_fail(ULP_E_CANCELLED, "stopped; nothing was left behind");
    if (!status)
        status = move_out(w, goal);
    if (!status)
        print_result(args, &record, &report);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    const char *goal = option_text(args, "out");
    struct run_place place = {0};
    struct workshop workshop = {0};
    enum ulp_status status = goal && *goal ? run_place_open(args, &place)
                                           : ulp_fail(ULP_E_USAGE, "say what to make: --out DIR");

    if (!status)
        status = ulp_name_is_free(goal);
    if (!status)
        status = workshop_open(goal, "pull", &workshop);
    if (!status)
        status = pull(args, &place, &workshop);
    workshop_release(&workshop);
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"out", 'o', "DIR", "The model directory that is made; there must be nothing yet."},
    RUN_OPTIONS_VERSION,
    RUN_OPTIONS_READING,
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_pull = {
    .name = "pull",
    .group = CLI_RUNS,
    .summary = "get one version of a run as a plain model directory",
    .operands = "--store URL --run NAME --out DIR [--step N] [...]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Makes DIR, a model directory like any other, with the run's newest version or an\n"
        "older one that the run still leads to ('ulpsync log' shows them): to evaluate a\n"
        "step, or to go back to it. Nothing of ulpsync is left in DIR; use 'follow' for\n"
        "what shall stay up to date.\n"
        "\n"
        "DIR appears complete and verified, or not at all. Until then all is in a hidden\n"
        "directory beside it (.DIR.pull), which goes when the verb ends; if it is killed,\n"
        "the next pull to DIR takes it away.\n",
    .examples = "  $ ulpsync pull --store /mnt/weights --run rl1 --step 100 -o step-100\n"
                "  $ ulpsync pull --store /mnt/weights --run rl1 -o newest --trust trusted\n",
    .options = options,
    .run = run,
};
