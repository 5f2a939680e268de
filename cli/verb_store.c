// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/stores.h"

#include <stdio.h>
#include <string.h>

struct promise {
    const char *name, *text;
    int kept;
};

#define PROMISES 7u

static void promises_of(const struct ulp_store_report *report, struct promise promises[PROMISES]) {
    const struct promise all[PROMISES] = {
        {"writes", "objects can be created and put", report->writes},
        {"reads_own", "what was written is there at once", report->reads_own},
        {"ranges", "it can be read from the middle", report->ranges},
        {"refuses_second", "creating over an object fails", report->refuses_second},
        {"one_of_many", "of many who create at once one succeeds", report->one_of_many},
        {"lists", "it lists what was written, in order", report->lists},
        {"removes", "objects can be removed", report->removes},
    };

    memcpy(promises, all, sizeof all);
}

static void print_text(const struct ulp_store_report *report) {
    struct promise promises[PROMISES];

    promises_of(report, promises);
    for (size_t i = 0; i < PROMISES; i++)
        printf("%-5s %s\n", promises[i].kept ? "yes" : "no", promises[i].text);
    printf("fit for: %s\n", ulp_store_verdict_name(report->verdict));
    if (*report->why) {
        printf("because: ");
        print_safely(stdout, report->why);
        putchar('\n');
    }
}

static void print_json(const struct ulp_store_report *report) {
    struct promise promises[PROMISES];
    struct json_out out = {0};

    promises_of(report, promises);
    json_out_begin(&out, NULL, '{');
    for (size_t i = 0; i < PROMISES; i++)
        json_out_bool(&out, promises[i].name, promises[i].kept);
    json_out_text(&out, "verdict", ulp_store_verdict_name(report->verdict));
    json_out_text(&out, "why", report->why);
    json_out_end(&out, '}');
}

static enum ulp_status run(const struct cli_args *args) {
    struct ulp_store *store = NULL;
    struct ulp_store_report report = {0};
    enum ulp_status status;

    if (strcmp(args->operands[0], "check") != 0)
        return ulp_fail(ULP_E_USAGE, "there is only one thing to do: ulpsync store check URL");
    status = store_open(args, args->operands[1], &store);
    if (!status)
        status = ulp_store_check(store, &report);
    if (!status)
        (option_given(args, "json") ? print_json : print_text)(&report);
    ulp_store_free(store);
    if (!status && report.verdict == ULP_STORE_UNFIT)
        status = ulp_fail(ULP_E_UNSUPPORTED, "this store cannot keep a run: %s", report.why);
    return status;
}

static const struct cli_option options[] = {
    STORE_OPTIONS, CLI_OPTION_JSON, CLI_OPTION_VERBOSE, CLI_OPTION_HELP, CLI_OPTIONS_END,
};

const struct cli_verb verb_store = {
    .name = "store",
    .group = CLI_RUNS,
    .summary = "try whether a store keeps the promises that runs rely on",
    .operands = "check URL [...]",
    .operands_min = 2,
    .operands_max = 2,
    .description =
        "Writes some small objects below 'ulpsync-check/' in the store, reads, lists and\n"
        "removes them, lets many create the same one at once, and says what the store is\n"
        "fit for: several publishers, one publisher, or followers alone.\n"
        "\n"
        "A store on which creating an object does not fail where one is ('no' in the\n"
        "fourth line or the fifth) cannot tell publishers apart: let only one publish.\n"
        "One that is fit for nothing ends with exit code 13.\n",
    .examples = "  $ ulpsync store check /mnt/weights\n"
                "  $ ulpsync store check s3://bucket/rl --endpoint http://127.0.0.1:9000\n",
    .options = options,
    .run = run,
};
