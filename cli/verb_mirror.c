// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/terminal.h"

#include <stdio.h>

#define POLL_MS_DEFAULT 1000u
#define GRACE_S_DEFAULT 3600u
#define CLEAN_UP_EVERY_MS 60000u

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
    struct run_place place; /* of which the store is DST */
    struct ulp_store *from;
    struct ulp_run_options options;
    uint64_t poll_ms, grace_ms;
    uint64_t clean_ns;    /* when to look next for what can be deleted */
    bool told;            /* of the first look */
    enum ulp_status last; /* what was complained of */
};

/* Also when nothing new came: what was announced can go later, when the grace has run out. */
static enum ulp_status clean_up(struct mirroring *m) {
    const struct ulp_collect_options options = {.grace_ms = m->grace_ms,
                                                .now = !m->grace_ms,
                                                .only_delete = 1,
                                                .trusted = m->options.trusted,
                                                .trusted_count = m->options.trusted_count};
    struct ulp_collect_report report = {0};
    enum ulp_status status = ulp_run_collect(m->place.store, m->place.run, &options, &report);
    uint64_t wait_ms = CLEAN_UP_EVERY_MS;

    if (report.wait_ms && report.wait_ms < wait_ms)
        wait_ms = report.wait_ms;
    if (!status)
        m->clean_ns = now_ns() + wait_ms * 1000000;
    return status;
}

static enum ulp_status once(struct mirroring *m) {
    struct ulp_run_report report = {0};
    enum ulp_status status =
        ulp_run_mirror(m->from, m->place.store, m->place.run, &m->options, &report);

    if (status)
        return status;
    if (!m->told || report.fresh) {
        (option_given(m->args, "json") ? print_json : print_text)(&report);
        fflush(stdout);
        m->told = true;
    }
    if (!option_given(m->args, "delete") || (!report.fresh && now_ns() < m->clean_ns))
        return ULP_OK;
    return clean_up(m);
}

static enum ulp_status mirror_on(struct mirroring *m) {
    enum ulp_status status = once(m);

    while (!terminal_stopping() && (!status || run_may_pass(status))) {
        run_complain(&m->last, status, "still mirroring");
        run_wait(m->poll_ms);
        if (!terminal_stopping())
            status = once(m);
    }
    if (terminal_stopping() && (status == ULP_E_CANCELLED || run_may_pass(status)))
        status = ULP_OK;
    terminal_stopped_well();
    return status;
}

static enum ulp_status begin(struct mirroring *m) {
    struct run_place *place = &m->place;
    const char *trust = option_text(m->args, "trust");
    enum ulp_status status = option_count(m->args, "grace", 0, 100000000, &m->grace_ms);

    m->grace_ms *= 1000;
    if (!status)
        status = run_option_poll(m->args, &m->poll_ms);
    if (!status && !place->run)
        status = ulp_fail(ULP_E_USAGE, "say which run: --run NAME");
    if (!status && trust)
        status = ulp_public_keys_load(trust, place->trusted, ULP_TRUSTED_KEYS_MAX,
                                      &place->trusted_count);
    if (!status)
        status = run_options(m->args, place, &m->options);
    if (!status)
        status = store_open(m->args, m->args->operands[0], &m->from);
    if (!status)
        status = store_open(m->args, m->args->operands[1], &place->store);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct mirroring m = {.args = args,
                          .place.run = option_text(args, "run"),
                          .poll_ms = POLL_MS_DEFAULT,
                          .grace_ms = GRACE_S_DEFAULT};
    enum ulp_status status = begin(&m);

    if (!status)
        status = option_given(args, "follow") ? mirror_on(&m) : once(&m);
    ulp_store_free(m.from);
    run_place_close(&m.place);
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
