// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/runs.h"

#include <stdio.h>

struct printer {
    struct json_out out;
    bool json;
};

/* Only when there is something to say: a run that is not there has no list. */
static void begin(struct printer *printer) {
    if (printer->out.depth)
        return;
    json_out_begin(&printer->out, NULL, '{');
    json_out_begin(&printer->out, "damaged", '[');
}

static void print_damage(void *user, const char *key, enum ulp_status status, const char *message) {
    struct printer *printer = user;

    if (printer->json) {
        begin(printer);
        json_out_begin(&printer->out, NULL, '{');
        json_out_text(&printer->out, "key", key);
        json_out_text(&printer->out, "status", ulp_status_name(status));
        json_out_text(&printer->out, "message", message);
        json_out_end(&printer->out, '}');
        return;
    }
    printf("%s: %s: ", key, ulp_status_name(status));
    print_safely(stdout, message);
    putchar('\n');
}

static void print_health(struct printer *printer, const struct ulp_run_health *health) {
    if (printer->json) {
        begin(printer);
        json_out_end(&printer->out, ']');
        json_out_u64(&printer->out, "records", health->records);
        json_out_u64(&printer->out, "parts", health->parts);
        json_out_u64(&printer->out, "bytes", health->bytes);
        json_out_bool(&printer->out, "reachable", health->reachable);
        json_out_end(&printer->out, '}');
        return;
    }
    printf("%llu records, %llu parts, %s: %llu damaged; the newest version %s\n",
           (unsigned long long)health->records, (unsigned long long)health->parts,
           readable_bytes(health->bytes).text, (unsigned long long)health->damaged,
           health->reachable ? "can be reached" : "CANNOT be reached by who starts with nothing");
}

static enum ulp_status run(const struct cli_args *args) {
    struct printer printer = {.json = option_given(args, "json")};
    struct ulp_run_health health = {0};
    struct run_place place = {0};
    enum ulp_status status = run_place_open(args, &place);

    if (!status)
        status = ulp_run_check(place.store, place.run, print_damage, &printer, &health);
    if (!status)
        print_health(&printer, &health);
    if (!status && (health.damaged || !health.reachable))
        status = ulp_fail(ULP_E_PART, "%llu objects of the run are missing or damaged",
                          (unsigned long long)health.damaged);
    run_place_close(&place);
    return status;
}

static const struct cli_option options[] = {
    RUN_OPTIONS, CLI_OPTION_JSON, CLI_OPTION_VERBOSE, CLI_OPTION_HELP, CLI_OPTIONS_END,
};

const struct cli_verb verb_fsck = {
    .name = "fsck",
    .group = CLI_RUNS,
    .summary = "check that a run in a store is whole",
    .operands = "--store URL --run NAME [--json]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Reads the log of a run from the beginning and every part that its newest record\n"
        "names, names each object that is missing or damaged, and says whether the newest\n"
        "version can still be reached by who starts with nothing. The exit code is 0 when\n"
        "all is well, and 76 otherwise.\n",
    .examples = "  $ ulpsync fsck --store /mnt/weights --run rl1\n",
    .options = options,
    .run = run,
};
