// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/telling.h"
#include "cli/terminal.h"
#include "cli/tiling.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define POLL_MS_DEFAULT 1000u

struct following {
    const struct cli_args *args;
    struct run_place place;
    struct ulp_run_options options;
    struct ulp_tiling *tiling; /* NULL: everything is followed */
    struct ulp_follower *follower;
    struct progress_line line;
    struct ulp_progress progress;
    struct metrics metrics;
    struct telling telling;
    bool told;            /* of the first look */
    enum ulp_status last; /* what was complained of */
    uint64_t poll_ms;
};

/* ---- telling ---- */

static void print_text(const struct following *f, const struct ulp_run_report *report) {
    if (report->version != report->head.version)
        printf("the run is at version %llu; stopped at ", (unsigned long long)report->head.version);
    run_fetched_text(&f->metrics.held, report);
}

static void report_json(struct json_out *out, const struct following *f,
                        const struct ulp_run_report *report) {
    run_record_json(out, &report->head);
    json_out_u64(out, "held_version", report->version);
    json_out_u64(out, "held_step", f->metrics.held.step);
    json_out_bool(out, "fresh", report->fresh);
    run_fetched_json(out, report);
    run_phases_json(out, &report->phases);
}

static void print_json(const struct following *f, const struct ulp_run_report *report) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    report_json(&out, f, report);
    json_out_end(&out, '}');
}

static void tell_others(struct following *f, const struct ulp_run_report *report, uint64_t now_ms) {
    const uint64_t published_ms = f->metrics.held.time_ms;
    struct json_out out;

    if (!telling_begin(&f->telling, "follow", &out))
        return;
    if (report->fresh) /* clocks differ; what is below zero says no more than zero does */
        json_out_u64(&out, "publish_to_active_ms",
                     now_ms > published_ms ? now_ms - published_ms : 0);
    report_json(&out, f, report);
    telling_end(&f->telling, &out);
}

static void set_number(const char *name, uint64_t value) {
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

static enum ulp_status run_command(const struct following *f, const char *command) {
    const uint64_t version = f->metrics.held.version;
    char model[PATH_MAX];
    int result;

    snprintf(model, sizeof model, "%s/current", option_text(f->args, "out"));
    set_number("ULPSYNC_VERSION", version);
    set_number("ULPSYNC_STEP", f->metrics.held.step);
    setenv("ULPSYNC_MODEL", model, 1);
    result = system(command);
    if (result == -1 || !WIFEXITED(result) || WEXITSTATUS(result))
        return ulp_fail(ULP_E_IO, "the command given with --exec failed after version %llu",
                        (unsigned long long)version);
    return ULP_OK;
}

static enum ulp_status tell(struct following *f, const struct ulp_run_report *report) {
    const char *command = option_text(f->args, "exec");
    const uint64_t now_ms = wall_ms();

    (option_given(f->args, "json") ? print_json : print_text)(f, report);
    fflush(stdout);
    f->told = true;
    tell_others(f, report, now_ms);
    return command && report->fresh ? run_command(f, command) : ULP_OK;
}

/* ---- one look ---- */

/* Which step it is, and in which epoch, is said by its record. */
static enum ulp_status note_held(struct following *f, const struct ulp_run_report *report) {
    struct metrics *m = &f->metrics;
    enum ulp_status status = ULP_OK;

    m->head = report->head;
    if (report->version == report->head.version)
        m->held = report->head;
    else if (!m->holds || m->held.version != report->version)
        status = run_record_of_version(&f->place, &report->head, report->version, &m->held);
    m->holds = !status;
    return status;
}

/* The report that each call gives is added to those before it. */
static enum ulp_status
do_one(struct following *f, enum ulp_status (*call)(struct ulp_follower *, struct ulp_run_report *),
       struct ulp_run_report *report) {
    const int fresh = report->fresh;
    struct ulp_run_report one = {0};
    enum ulp_status status = call(f->follower, &one);

    if (status)
        return status;
    run_report_add(report, &one);
    report->fresh |= fresh;
    return ULP_OK;
}

static enum ulp_status look(struct following *f, struct ulp_run_report *report) {
    enum ulp_status status = do_one(f, ulp_follower_poll, report);

    f->metrics.polls++;
    while (!status && report->ready) {
        status = do_one(f, ulp_follower_apply, report);
        f->metrics.applies += !status;
        if (!status && report->apply_left)
            status = do_one(f, ulp_follower_poll, report);
    }
    return status ? status : note_held(f, report);
}

/* How far behind somebody is who cannot get on is told by what the store says, unverified. The
 * message of the failure stays. */
static void note_failure(struct following *f, enum ulp_status status) {
    struct ulp_run_record head = {0};
    char *message = strdup(ulp_last_error());

    if ((unsigned)status < METRICS_STATUS_MAX)
        f->metrics.errors[status]++;
    if (f->metrics.path && !ulp_run_head(f->place.store, f->place.run, &head))
        f->metrics.head = head;
    metrics_write(&f->metrics);
    ulp_fail(status, "%s", message ? message : "no memory for a message");
    free(message);
}

static enum ulp_status once(struct following *f) {
    struct ulp_run_report report = {0};
    enum ulp_status status, written = ULP_OK;

    f->progress = progress_begin(&f->line, "follow", 0);
    status = look(f, &report);
    progress_end(&f->line);
    run_report_add(&f->metrics.total, &report);
    if (status) {
        note_failure(f, status);
        return status;
    }
    written = metrics_write(&f->metrics);
    if (!f->told || report.fresh)
        status = tell(f, &report);
    return status ? status : written;
}

/* ---- staying ---- */

static enum ulp_status follow_on(struct following *f) {
    enum ulp_status status = once(f);

    while (!terminal_stopping() && (!status || run_may_pass(status))) {
        run_complain(&f->last, status, "still following");
        run_wait(f->poll_ms);
        if (!terminal_stopping())
            status = once(f);
    }
    if (terminal_stopping() && (status == ULP_E_CANCELLED || run_may_pass(status)))
        status = ULP_OK;
    terminal_stopped_well();
    return status;
}

static bool stays(const struct following *f) {
    return !option_given(f->args, "once") && !f->options.stop_at_version;
}

static enum ulp_status begin(struct following *f) {
    const char *directory = option_text(f->args, "out");
    enum ulp_status status = run_option_poll(f->args, &f->poll_ms);

    if (!status && !directory)
        status = ulp_fail(ULP_E_USAGE, "say where to keep the model: --out DIR");
    if (!status)
        status = run_place_open(f->args, &f->place);
    if (!status)
        status = run_options(f->args, &f->place, &f->options);
    if (!status)
        status = option_slice(f->args, &f->tiling, &f->options.tile);
    if (!status)
        status = run_options_version(f->args, &f->place, &f->options);
    if (!status)
        status = telling_open(f->args, &f->place, stays(f), &f->telling);
    if (status)
        return status;
    f->options.progress = &f->progress;
    f->options.tiling = f->tiling;
    f->options.eager = 1; /* there is always a next look */
    f->metrics.path = option_text(f->args, "metrics");
    f->metrics.run = f->place.run;
    return ulp_follower_open(f->place.store, f->place.run, directory, &f->options, &f->follower);
}

static enum ulp_status run(const struct cli_args *args) {
    struct following f = {.args = args, .poll_ms = POLL_MS_DEFAULT};
    enum ulp_status status = begin(&f);

    if (!status)
        status = stays(&f) ? follow_on(&f) : once(&f);
    ulp_follower_close(f.follower);
    telling_close(&f.telling);
    ulp_tiling_free(f.tiling);
    run_place_close(&f.place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"out", 'o', "DIR", "Where the model is kept: DIR/current is always a complete version."},
    {"slice", 0, "K/N", "Fetch and hold only tile K of N, and what all tiles have in common."},
    CLI_OPTION_LAYOUT,
    {"once", 0, NULL, "Catch up and end, instead of following on."},
    {"step", 's', "N", "Go to the newest version with this step and end."},
    {"version", 0, "N", "Go to version N and end, instead of to the newest."},
    RUN_OPTIONS_READING,
    {"exec", 0, "COMMAND",
     "Run this with the shell after each new version, with ULPSYNC_VERSION, ULPSYNC_STEP and "
     "ULPSYNC_MODEL (the path DIR/current) in its environment."},
    {"metrics", 0, "FILE",
     "Write figures for Prometheus to FILE after every look: version, lag, age, bytes, errors, "
     "time by phase."},
    TELL_OPTION("each new version, with when and how it came to be held,"),
    RUN_OPTION_POLL("1000"),
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON_LINES,
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
        "Then it looks again every second (a fifth more or less, so that many followers\n"
        "do not come at once), until it is stopped, which is no failure. DIR/current is a\n"
        "link to a complete model directory and is switched in one go.\n"
        "\n"
        "With --slice, of a run that is published with --tiles N and the same --layout,\n"
        "only what tile K needs is fetched and written. The files have the names, headers\n"
        "and lengths of the whole model, and zeros, which take no room on most disks, in\n"
        "the place of other tiles: an engine's rank K loads its part from there. The\n"
        "first version is fetched whole.\n"
        "\n"
        "Every byte is verified before it is used, and the root of every version before\n"
        "DIR/current leads to it. The process may be killed at any moment. A log that is\n"
        "shorter than it was (exit code 74), another one (77), or not signed as it must\n"
        "be (81, 82) is refused. What may pass (a run that is not there yet, a store that\n"
        "cannot be reached, a run that stands still for longer than --max-age) is waited\n"
        "for, and said once.\n"
        "\n"
        "With --tell each new version is told of in the store too, beside the run:\n"
        "'ulpsync top' shows who holds what since when. Give each follower its own name.\n",
    .examples =
        "  $ ulpsync follow --store /mnt/weights --run rl1 --out model --once\n"
        "  $ ulpsync follow --store /mnt/weights --run rl1 --out model --trust trusted \\\n"
        "        --exec './reload \"$ULPSYNC_MODEL\"' --metrics /var/lib/node/ulpsync.prom\n"
        "  $ ulpsync follow --store /mnt/weights --run rl1 --out old --step 100\n",
    .options = options,
    .run = run,
};
