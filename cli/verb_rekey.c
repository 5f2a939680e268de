// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/runs.h"

#include <stdio.h>

static void print_result(const struct cli_args *args, const struct ulp_run_report *report) {
    char hex[ULP_PUBLIC_KEY_HEX_BYTES];
    struct json_out out = {0};

    ulp_public_key_hex(&report->head.signer, hex);
    if (!option_given(args, "json")) {
        printf("record %llu is signed by %s\n", (unsigned long long)report->head.sequence, hex);
        return;
    }
    json_out_begin(&out, NULL, '{');
    run_record_json(&out, &report->head);
    json_out_end(&out, '}');
}

static enum ulp_status run(const struct cli_args *args) {
    const char *path = option_text(args, "to");
    struct ulp_run_report report = {0};
    struct run_place place = {0};
    struct ulp_key *to = NULL;
    enum ulp_status status = option_given(args, "sign") && path
                                 ? run_place_open(args, &place)
                                 : ulp_fail(ULP_E_USAGE, "give both keys: --sign OLD --to NEW");

    if (!status)
        status = run_key_load(path, &to);
    if (!status)
        status = ulp_run_rekey(place.store, place.run, place.sign, to, &report);
    if (!status)
        print_result(args, &report);
    ulp_key_free(to);
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS,
    {"sign", 0, "KEYFILE", "The private key that signs the run now."},
    {"to", 0, "KEYFILE", "The private key that signs it from now on."},
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_rekey = {
    .name = "rekey",
    .group = CLI_RUNS,
    .summary = "let another key sign a run from now on",
    .operands = "--store URL --run NAME --sign OLD --to NEW [--json]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Adds a record to the run's log in which the old key hands over to the new one.\n"
        "Followers that trust the old key accept what the new one signs; nobody has to\n"
        "be told. Publishers must use the new key from then on: what the old one signs\n"
        "is refused (exit code 82).\n"
        "\n"
        "Both private keys are needed. If the old one is lost or stolen, hand over is not\n"
        "possible or not to be trusted: begin a new run, and give followers the new key.\n",
    .examples = "  $ ulpsync keygen new.key\n"
                "  $ ulpsync rekey --store /mnt/weights --run rl1 --sign old.key --to new.key\n",
    .options = options,
    .run = run,
};
