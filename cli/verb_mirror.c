// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/terminal.h"

#include <stdio.h>

static void print_text(const struct ulp_run_report *report) {
    printf("version %llu, step %llu: copied %s in %u objects\n",
           (unsigned long long)report->head.version, (unsigned long long)report->head.step,
           readable_bytes(report->stored_bytes + report->record_bytes).text,
           report->stored_objects);
}

static void print_json(const struct ulp_run_report *report) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    run_record_json(&out, &report->head);
    run_fetched_json(&out, report);
    run_stored_json(&out, report);
    json_out_bool(&out, "fresh", report->fresh);
    json_out_end(&out, '}');
}

struct mirroring {
    const struct cli_args *args;
    struct ulp_store *from, *to;
    const char *run;
    struct ulp_run_options options;
    bool deletes; /* what the original has let go */
    uint64_t grace_ms;
};

static enum ulp_status clean_up(const struct mirroring *m) {
    const struct ulp_collect_options options = {.grace_ms = m->grace_ms,
                                                .now = !m->grace_ms,
                                                .only_delete = 1,
                                                .trusted = m->options.trusted,
                                                .trusted_count = m->options.trusted_count};

    return m->deletes ? ulp_run_collect(m->to, m->run, &options, NULL) : ULP_OK;
}

static enum ulp_status once(const struct mirroring *m, bool first) {
    struct ulp_run_report report = {0};
    enum ulp_status status = ulp_run_mirror(m->from, m->to, m->run, &m->options, &report);

    if (!status && (first || report.fresh)) {
        (option_given(m->args, "json") ? print_json : print_text)(&report);
        fflush(stdout);
    }
    return status || !report.fresh ? status : clean_up(m);
}

/* What may be better next time, as for followers. */
static bool may_pass(enum ulp_status status) {
    return status == ULP_E_NO_RUN || status == ULP_E_IO || status == ULP_E_PART ||
           status == ULP_E_PART_MISSING || status == ULP_E_FROZEN;
}

static enum ulp_status go_on(const struct mirroring *m, enum ulp_status status) {
    uint64_t poll_ms = 1000;
    enum ulp_status bad = run_option_poll(m->args, &poll_ms);

    while (!bad && !terminal_stopping() && (!status || may_pass(status))) {
        run_wait(poll_ms);
        if (!terminal_stopping())
            status = once(m, false);
    }
    if (terminal_stopping() && may_pass(status))
        status = ULP_OK;
    terminal_stopped_well();
    return bad ? bad : status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct run_place place = {.run = option_text(args, "run")};
    struct mirroring m = {
        .args = args, .run = place.run, .deletes = option_given(args, "delete"), .grace_ms = 3600};
    const char *trust = option_text(args, "trust");
    enum ulp_status status = option_count(args, "grace", 0, 100000000, &m.grace_ms);

    m.grace_ms *= 1000;
    if (!status && !place.run)
        status = ulp_fail(ULP_E_USAGE, "say which run: --run NAME");
    if (!status && trust)
        status =
            ulp_public_keys_load(trust, place.trusted, ULP_TRUSTED_KEYS_MAX, &place.trusted_count);
    if (!status)
        status = run_options(args, &place, &m.options);
    if (!status)
        status = store_open(args, args->operands[0], &m.from);
    if (!status)
        status = store_open(args, args->operands[1], &m.to);
    if (!status)
        status = once(&m, true);
    if (m.to && option_given(args, "follow"))
        status = go_on(&m, status);
    ulp_store_free(m.from);
    ulp_store_free(m.to);
    return status;
}

static const struct cli_option options[] = {
    {"run", 'r', "NAME", "The run's name, the same in both stores."},
    {"follow", 0, NULL, "Go on copying as the run goes on."},
    RUN_OPTION_POLL("1000"),
    RUN_OPTION_TRUST,
    {"max-age", 0, "SECONDS", "Refuse a newest record that is older (exit code 80)."},
    {"delete", 0, NULL, "Also delete in DST what the run has announced to delete."},
    {"grace", 0, "SECONDS", "So long after the announcement; 3600 unless given."},
    STORE_OPTIONS,
    CLI_OPTION_JSON_LINES,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_mirror = {
    .name = "mirror",
    .group = CLI_RUNS,
    .summary = "copy a run into another store, verified on the way",
    .operands = "SRC DST --run NAME [--follow] [...]",
    .operands_min = 2,
    .operands_max = 2,
    .description =
        "Brings the copy of a run in store DST to where it is in store SRC: the same\n"
        "records, byte for byte, and every part that the newest one names. So bytes cross\n"
        "a slow link once, and a whole site follows the copy. Parts are verified before\n"
        "they appear, records before they are created, and who follows the copy verifies\n"
        "the same chain and the same signatures.\n"
        "\n"
        "Nobody else may publish to the copy (exit codes 74, 77). --endpoint and --region\n"
        "stand for both stores; where they differ, put them into the URLs:\n"
        "s3://bucket/prefix?endpoint=https://host&region=eu-west-1\n",
    .examples = "  $ ulpsync mirror s3://far/rl /mnt/weights --run r1 --follow --delete\n"
                "  $ ulpsync mirror https://cdn.example/rl /mnt/weights --run r1\n",
    .options = options,
    .run = run,
};
