// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/terminal.h"
#include "cli/tiling.h"

#include <stdio.h>

static void print_text(const struct ulp_run_report *report) {
    const struct ulp_run_record *head = &report->head;

    printf("version   %llu, step %llu\n", (unsigned long long)head->version,
           (unsigned long long)head->step);
    if (head->patch_bytes)
        printf("changed   %llu elements, a patch of %s%s\n", (unsigned long long)head->changed,
               readable_bytes(head->patch_bytes).text, head->history ? " with history" : "");
    if (head->anchor_bytes)
        printf("anchor    %s\n", readable_bytes(head->anchor_bytes).text);
    printf("stored    %s\n", readable_bytes(report->stored_bytes).text);
    report_root_text("root", &head->root);
}

static void print_json(const struct ulp_run_report *report) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    run_record_json(&out, &report->head);
    json_out_u64(&out, "stored_bytes", report->stored_bytes);
    json_out_end(&out, '}');
}

static enum ulp_status run(const struct cli_args *args) {
    const char *state = option_text(args, "state");
    struct ulp_run_options options = {0};
    struct ulp_run_report report = {0};
    struct run_place place = {0};
    struct ulp_tiling *tiling = NULL;
    struct progress_line line;
    struct ulp_progress progress;
    uint64_t step = 0;
    enum ulp_status status = option_count(args, "step", 0, UINT64_MAX, &step);

    if (!status && !state)
        status = ulp_fail(ULP_E_USAGE, "say where to keep the last version: --state DIR");
    if (!status)
        status = option_tiles(args, &tiling);
    if (!status)
        status = run_place_open(args, &place);
    if (status) {
        ulp_tiling_free(tiling);
        return status;
    }
    options.tiling = tiling;
    progress = progress_begin(&line, "publish", 0);
    options.pool = place.pool;
    options.progress = &progress;
    status = ulp_publish(place.store, place.run, state, args->operands[0], step, &options, &report);
    progress_end(&line);
    if (!status)
        (option_given(args, "json") ? print_json : print_text)(&report);
    run_place_close(&place);
    ulp_tiling_free(tiling);
    return input_explain(status, args->operands[0], "a model");
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"state", 0, "DIR", "Where the last version is kept; made if missing, and brought up to date."},
    {"step", 's', "N", "The trainer's own number for this version; 0 unless given."},
    {"tiles", 0, "N", "Cut what is stored into N tiles, for followers with --slice K/N."},
    CLI_OPTION_LAYOUT,
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_publish = {
    .name = "publish",
    .group = CLI_RUNS,
    .summary = "add a checkpoint to a run in a store",
    .operands = "MODEL --store URL --run NAME --state DIR [...]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Stores what changed between the run's newest version and MODEL, a safetensors\n"
        "file or a directory of them, and makes it known to all followers. The first\n"
        "version of a run is stored whole, and now and then a later one (an anchor),\n"
        "with the files beside the weights: whoever comes late starts from there.\n"
        "\n"
        "DIR holds the newest version, to compare with. It belongs to this run; after a\n"
        "crash, or on another machine, it is brought up to date from the store.\n"
        "\n"
        "With --tiles each tensor that can be is cut into N bands of rows, or as the\n"
        "rules of --layout say (docs/tiles.md), and each tile has a patch of its own: a\n"
        "rank of an engine that holds one of them fetches no more. All versions of a run\n"
        "should be cut alike.\n"
        "\n"
        "Nothing is known to followers until everything is stored and checked. If another\n"
        "publisher was first, this one is told so (exit code 73) and has changed nothing.\n",
    .examples = "  $ ulpsync publish step-100 --store /mnt/rl --run r1 --state base --step 100\n",
    .options = options,
    .run = run,
};
