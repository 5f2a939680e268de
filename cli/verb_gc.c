// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/runs.h"

#include <limits.h>
#include <stdio.h>

static void print_condemned(const struct ulp_collect_report *report, bool dry) {
    const unsigned long long parts = report->condemned;

    if (report->announced)
        printf("announced the deletion of %llu parts: run this again in %.0f s\n", parts,
               (double)report->wait_ms / 1000);
    else if (report->wait_ms)
        printf("%llu parts were announced, and can go in %.0f s\n", parts,
               (double)report->wait_ms / 1000);
    else
        printf("%s announce the deletion of %llu parts\n", dry ? "would" : "did not", parts);
}

static void print_text(const struct ulp_collect_report *report, bool dry) {
    printf("%s %llu parts, %s; %llu are still named\n", dry ? "would delete" : "deleted",
           (unsigned long long)report->deleted, readable_bytes(report->bytes).text,
           (unsigned long long)report->kept);
    if (report->condemned)
        print_condemned(report, dry);
}

static void print_json(const struct ulp_collect_report *report, bool dry) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_bool(&out, "dry_run", dry);
    json_out_u64(&out, "deleted", report->deleted);
    json_out_u64(&out, "deleted_bytes", report->bytes);
    json_out_u64(&out, "kept", report->kept);
    json_out_u64(&out, "condemned", report->condemned);
    json_out_u64(&out, "wait_ms", report->wait_ms);
    json_out_bool(&out, "announced", report->announced);
    json_out_u64(&out, "boundary", report->boundary);
    json_out_end(&out, '}');
}

static enum ulp_status read_options(const struct cli_args *args, const struct run_place *place,
                                    struct ulp_collect_options *ret_options) {
    double grace = 0;
    uint64_t keep = 0;
    enum ulp_status status = option_real(args, "grace", 0.001, 1e9, &grace);

    if (!status && option_given(args, "grace") && option_given(args, "now"))
        status = ulp_fail(ULP_E_USAGE, "give either --grace or --now");
    if (!status)
        status = option_count(args, "keep-anchors", 1, UINT_MAX, &keep);
    if (!status)
        *ret_options = (struct ulp_collect_options){
            .grace_ms = (uint64_t)(grace * 1000),
            .now = option_given(args, "now"),
            .dry_run = option_given(args, "dry-run"),
            .keep_anchors = (unsigned)keep,
            .sign = place->sign,
            .trusted = place->trusted_count ? place->trusted : NULL,
            .trusted_count = place->trusted_count,
        };
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    const bool dry = option_given(args, "dry-run");
    struct ulp_collect_options options = {0};
    struct ulp_collect_report report = {0};
    struct run_place place = {0};
    enum ulp_status status = run_place_open(args, &place);

    if (!status)
        status = read_options(args, &place, &options);
    if (!status)
        status = ulp_run_collect(place.store, place.run, &options, &report);
    if (!status)
        (option_given(args, "json") ? print_json : print_text)(&report, dry);
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"dry-run", 'n', NULL, "Say what would be done, and do nothing."},
    {"keep-anchors", 0, "N",
     "Keep the newest N states that are stored whole, with all that leads on from them; without "
     "it, those that the run names now."},
    {"grace", 0, "SECONDS",
     "How long after the announcement parts are deleted; 3600 unless given. Longer than any "
     "follower takes to catch up."},
    {"now", 0, NULL, "Delete at once. Only when no follower and no publisher is at work."},
    RUN_OPTION_SIGN,
    RUN_OPTION_TRUST,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_gc = {
    .name = "gc",
    .group = CLI_RUNS,
    .summary = "delete what no follower of a run needs any more",
    .operands = "--store URL --run NAME [--dry-run] [--keep-anchors N] [...]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "A run grows with every step: patches, and now and then a whole state (an\n"
        "anchor). Those that its newest record does not name any more are of no use. This\n"
        "verb deletes them in two strokes: it announces in the log what will go, and a\n"
        "later call, when the grace is over, deletes it and announces the next. So run it\n"
        "now and then, from cron; each call does what is due. Publishers and followers go\n"
        "on meanwhile.\n"
        "\n"
        "With --keep-anchors the run also forgets older anchors and versions, which can\n"
        "then not be pulled any more. The log itself stays for ever; a record has a few\n"
        "KB. A run that is signed needs its key here, since an announcement is a record.\n",
    .examples = "  $ ulpsync gc --store /mnt/weights --run rl1 --keep-anchors 2 --dry-run\n"
                "  $ ulpsync gc --store /mnt/weights --run rl1 --sign trainer.key\n",
    .options = options,
    .run = run,
};
