// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/runs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void print_line(const struct ulp_run_record *record) {
    time_t seconds = (time_t)(record->time_ms / 1000);
    char when[32] = "", hex[ULP_ROOT_HEX_BYTES];
    struct tm local;

    if (localtime_r(&seconds, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    ulp_root_hex(&record->root, hex);
    printf("%8llu %8llu %8llu  %s  %12s %12s%c  %.16s%s\n", (unsigned long long)record->sequence,
           (unsigned long long)record->version, (unsigned long long)record->step, when,
           record->patch_bytes ? readable_count(record->changed).text : "",
           record->patch_bytes ? readable_bytes(record->patch_bytes).text : "",
           record->history ? 'h' : ' ', hex, record->anchor_bytes ? "  anchor" : "");
}

static enum ulp_status run(const struct cli_args *args) {
    const bool json = option_given(args, "json");
    struct run_place place = {0};
    struct ulp_run_record head = {0};
    struct json_out out = {0};
    enum ulp_status status = run_place_open(args, &place);

    if (!status)
        status = ulp_run_head(place.store, place.run, &head);
    if (!status && json) {
        json_out_begin(&out, NULL, '{');
        json_out_begin(&out, "records", '[');
    } else if (!status) {
        printf(
            "  record  version     step  time                      changed        patch   root\n");
    }
    for (uint64_t i = 1; !status && i <= head.sequence; i++) {
        struct ulp_run_record record = {0};

        status = ulp_run_read(place.store, place.run, i, &record);
        if (!status && json) {
            json_out_begin(&out, NULL, '{');
            run_record_json(&out, &record);
            json_out_end(&out, '}');
        } else if (!status) {
            print_line(&record);
        }
    }
    if (json && out.depth) {
        json_out_end(&out, ']');
        json_out_end(&out, '}');
    }
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS, CLI_OPTION_JSON, CLI_OPTION_VERBOSE, CLI_OPTION_HELP, CLI_OPTIONS_END,
};

const struct cli_verb verb_log = {
    .name = "log",
    .group = CLI_RUNS,
    .summary = "the history of a run: versions, sizes, times",
    .operands = "--store URL --run NAME [--json]",
    .operands_min = 0,
    .operands_max = 0,
    .description = "Lists the records of a run's log, oldest first: the version that each made\n"
                   "known, the trainer's step, how many elements changed, how large the patch is\n"
                   "('h': it needs the version before as history), and whether the version is\n"
                   "stored whole.\n",
    .examples = "  $ ulpsync log --store /mnt/weights --run rl1\n"
                "  $ ulpsync log --store /mnt/weights --run rl1 --json | jq '.records[-1].step'\n",
    .options = options,
    .run = run,
};
