// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/terminal.h"
#include "cli/tiling.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

/* Between two looks at the store. */
#define POLL_MS_DEFAULT 1000u

static void print_text(const struct ulp_run_report *report) {
    const struct ulp_run_record *head = &report->head;

    if (report->version != head->version)
        printf("stopped at version %llu; ", (unsigned long long)report->version);
    printf("version %llu, step %llu: fetched %s in %u patch%s and %u anchor%s\n",
           (unsigned long long)head->version, (unsigned long long)head->step,
           readable_bytes(report->fetched_bytes).text, report->fetched_patches,
           report->fetched_patches == 1 ? "" : "es", report->fetched_anchors,
           report->fetched_anchors == 1 ? "" : "s");
}

/* One line for each version. */
static void print_json(const struct ulp_run_report *report) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    run_record_json(&out, &report->head);
    json_out_u64(&out, "fetched_bytes", report->fetched_bytes);
    json_out_u64(&out, "fetched_patches", report->fetched_patches);
    json_out_u64(&out, "fetched_anchors", report->fetched_anchors);
    json_out_u64(&out, "held_version", report->version);
    json_out_bool(&out, "fresh", report->fresh);
    json_out_end(&out, '}');
}

static enum ulp_status tell(const struct cli_args *args, const struct ulp_run_report *report) {
    const char *command = option_text(args, "exec");
    int result;

    (option_given(args, "json") ? print_json : print_text)(report);
    fflush(stdout);
    if (!command || !report->fresh)
        return ULP_OK;
    result = system(command);
    if (result == -1 || !WIFEXITED(result) || WEXITSTATUS(result))
        return ulp_fail(ULP_E_IO, "the command given with --exec failed");
    return ULP_OK;
}

static enum ulp_status once(const struct cli_args *args, const struct run_place *place,
                            const char *directory, bool first) {
    struct ulp_run_options options = {.pool = place->pool};
    struct ulp_run_report report = {0};
    struct ulp_tiling *tiling = NULL;
    struct progress_line line;
    struct ulp_progress progress = progress_begin(&line, "follow", 0);
    enum ulp_status status;

    options.progress = &progress;
    options.stop_at_version = option_given(args, "version");
    status = option_count(args, "version", 0, UINT64_MAX, &options.version);
    if (!status)
        status = option_slice(args, &tiling, &options.tile);
    options.tiling = tiling;
    if (!status)
        status = ulp_follow(place->store, place->run, directory, &options, &report);
    progress_end(&line);
    ulp_tiling_free(tiling);
    if (!status && (first || report.fresh))
        status = tell(args, &report);
    return status;
}

static void wait_ms(uint64_t ms) {
    struct timespec duration = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&duration, NULL);
}

/* What may be better next time: a run that is not there yet, a store that hiccups, an object that
 * has not arrived. Everything else needs somebody to look at it. */
static bool may_pass(enum ulp_status status) {
    return status == ULP_E_NO_RUN || status == ULP_E_IO || status == ULP_E_PART || status == ULP_E_PART_MISSING ||
           status == ULP_E_UNREACHABLE;
}

/* Says so once, not at every look. */
static void complain(enum ulp_status status, enum ulp_status *last) {
    if (status && status != *last && status != ULP_E_NO_RUN) {
        fprintf(stderr, "ulpsync: still waiting: ");
        print_safely(stderr, ulp_last_error());
        fputc('\n', stderr);
    }
    *last = status;
}

static enum ulp_status run(const struct cli_args *args) {
    const char *directory = option_text(args, "out");
    struct run_place place = {0};
    uint64_t poll_ms = POLL_MS_DEFAULT;
    enum ulp_status last = ULP_OK;
    enum ulp_status status = option_count(args, "poll", 1, 86400000, &poll_ms);

    if (!status && !directory)
        status = ulp_fail(ULP_E_USAGE, "say where to keep the model: --out DIR");
    if (!status)
        status = run_place_open(args, &place);
    if (status)
        return status;
    status = once(args, &place, directory, true);
    while (!option_given(args, "once") && !option_given(args, "version") &&
           (!status || may_pass(status))) {
        complain(status, &last);
        terminal_finish(); /* Ctrl-C while nothing happens */
        wait_ms(poll_ms);
        status = once(args, &place, directory, false);
    }
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"out", 'o', "DIR", "Where the model is kept: DIR/current is always a complete version."},
    {"version", 0, "N", "Go to version N and end, instead of to the newest."},
    {"slice", 0, "K/N", "Fetch and hold only tile K of N, and what all tiles have in common."},
    CLI_OPTION_LAYOUT,
    {"once", 0, NULL, "Catch up and end, instead of following on."},
    {"poll", 0, "MS", "Milliseconds between two looks at the store; 1000 unless given."},
    {"exec", 0, "COMMAND", "Run this with the shell after each new version."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_follow = {
    .name = "follow",
    .group = CLI_RUNS,
    .summary = "keep a model directory at the newest version of a run",
    .operands = "--store URL --run NAME --out DIR [--once] [...]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Brings DIR to the newest version of the run, by whatever costs fewest bytes:\n"
        "patches from the version that it holds, or an anchor and the patches behind it.\n"
        "Then it looks again every second, until it is stopped. DIR/current is a link to\n"
        "a complete model directory and is switched in one go.\n"
        "\n"
        "With --slice, of a run that is published with --tiles N and the same --layout,\n"
        "only what tile K needs is fetched and written. The files have the names, headers\n"
        "and lengths of the whole model, and zeros, which take no room on most disks, in\n"
        "the place of other tiles: an engine's rank K loads its part from there. The\n"
        "first version is fetched whole.\n"
        "\n"
        "Every byte is verified before it is used, and the root of every version before\n"
        "DIR/current leads to it. The process may be killed at any moment. A log that is\n"
        "shorter than it was (exit code 74) or another (72) is refused.\n",
    .examples = "  $ ulpsync follow --store /mnt/weights --run rl1 --out model --once\n"
                "  $ ulpsync follow --store /mnt/weights --run rl1 --out model --exec ./reload\n",
    .options = options,
    .run = run,
};
