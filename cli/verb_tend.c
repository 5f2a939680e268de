// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/telling.h"
#include "cli/terminal.h"

#include <stdio.h>

#define POLL_MS_DEFAULT 10000u

struct tending {
    const struct cli_args *args;
    const char *state;
    struct run_place place;
    struct ulp_run_options options;
    struct telling telling;
    uint64_t poll_ms;
    enum ulp_status last; /* what was complained of */
};

static void report_json(struct json_out *out, const struct ulp_run_report *report) {
    run_record_json(out, &report->head);
    json_out_bool(out, "fresh", report->fresh);
    run_stored_json(out, report);
    run_fetched_json(out, report);
    run_phases_json(out, &report->phases);
}

static void print_text(const struct ulp_run_report *report) {
    if (report->fresh)
        printf("version %llu: long ways of %s were added\n",
               (unsigned long long)report->head.version, readable_bytes(report->stored_bytes).text);
    else
        printf("version %llu: nothing is due\n", (unsigned long long)report->head.version);
}

static void print_json(const struct ulp_run_report *report) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    report_json(&out, report);
    json_out_end(&out, '}');
}

static void tell(struct tending *t, const struct ulp_run_report *report) {
    struct json_out out;

    (option_given(t->args, "json") ? print_json : print_text)(report);
    fflush(stdout);
    if (telling_begin(&t->telling, "tend", &out)) {
        report_json(&out, report);
        telling_end(&t->telling, &out);
    }
}

static enum ulp_status once(struct tending *t, bool quietly) {
    struct ulp_run_options options = t->options;
    struct ulp_run_report report = {0};
    struct progress_line line;
    struct ulp_progress progress = progress_begin(&line, "tend", 0);
    enum ulp_status status;

    options.progress = &progress;
    status = ulp_run_tend(t->place.store, t->place.run, t->state, &options, &report);
    progress_end(&line);
    if (!status && (report.fresh || !quietly))
        tell(t, &report);
    return status;
}

/* Somebody who publishes or deletes at the same moment is no reason to end, nor to complain. */
static enum ulp_status unless_fenced(enum ulp_status status) {
    return status == ULP_E_FENCED ? ULP_OK : status;
}

static enum ulp_status tend_on(struct tending *t) {
    enum ulp_status status = unless_fenced(once(t, true));

    while (!terminal_stopping() && (!status || run_may_pass(status))) {
        run_complain(&t->last, status, "still tending");
        run_wait(t->poll_ms);
        if (!terminal_stopping())
            status = unless_fenced(once(t, true));
    }
    if (terminal_stopping() && (status == ULP_E_CANCELLED || run_may_pass(status)))
        status = ULP_OK;
    terminal_stopped_well();
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct tending t = {
        .args = args, .state = option_text(args, "state"), .poll_ms = POLL_MS_DEFAULT};
    enum ulp_status status = run_option_poll(args, &t.poll_ms);

    if (!status && !t.state)
        status = ulp_fail(ULP_E_USAGE, "say where to keep what it works with: --state DIR");
    if (!status)
        status = run_place_open(args, &t.place);
    if (!status)
        status = run_options(args, &t.place, &t.options);
    if (!status)
        status = telling_open(args, &t.place, !option_given(args, "once"), &t.telling);
    if (!status)
        status = option_given(args, "once") ? once(&t, false) : tend_on(&t);
    telling_close(&t.telling);
    run_place_close(&t.place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"state", 0, "DIR", "Where it keeps the states that ways begin with; made if missing."},
    RUN_OPTION_SIGN,
    RUN_OPTION_TRUST,
    {"once", 0, NULL, "Do what is due and end, instead of staying."},
    RUN_OPTION_POLL("10000"),
    TELL_OPTION("what was added"),
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON_LINES,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_tend = {
    .name = "tend",
    .group = CLI_RUNS,
    .summary = "make long ways, so that late followers catch up with fewer bytes",
    .operands = "--store URL --run NAME --state DIR [--once] [...]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Adds patches over 8 and over 32 versions to a run, where they are shorter than\n"
        "the single steps: a follower that was away for 100 versions then takes at most\n"
        "17 of them. It works beside the publisher and is in nobody's way; one process\n"
        "for each run is enough, and nothing breaks when there are several or none.\n"
        "\n"
        "A run that is signed needs its key here too. It stays until it is stopped, which\n"
        "is no failure. DIR belongs to this run and this verb.\n",
    .examples = "  $ ulpsync tend --store /mnt/weights --run rl1 --state tend --sign trainer.key\n"
                "  $ ulpsync tend --store /mnt/weights --run rl1 --state tend --once\n",
    .options = options,
    .run = run,
};
