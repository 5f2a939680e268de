// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"
#include "cli/run_names.h"
#include "cli/runs.h"
#include "cli/stores.h"

#include <stdio.h>

struct printer {
    const char *run;
    struct json_out out;
    bool json;
};

/* Only when there is something to say: a run that is not there has no list. */
static void begin(struct printer *printer) {
    if (printer->out.depth)
        return;
    json_out_begin(&printer->out, NULL, '{');
    json_out_text(&printer->out, "run", printer->run);
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

/* Of a check that could not be ended. */
static void finish_damage(struct printer *printer) {
    if (!printer->out.depth)
        return;
    json_out_end(&printer->out, ']');
    json_out_end(&printer->out, '}');
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
    printf("%s: %llu records, %llu parts, %s: %llu damaged; the newest version %s\n", printer->run,
           (unsigned long long)health->records, (unsigned long long)health->parts,
           readable_bytes(health->bytes).text, (unsigned long long)health->damaged,
           health->reachable ? "can be reached" : "CANNOT be reached by who starts with nothing");
}

struct checking {
    struct ulp_store *store;
    bool json;
    uint64_t runs, damaged, unreachable;
};

static enum ulp_status check_run(void *user, const char *run) {
    struct checking *c = user;
    struct printer printer = {.run = run, .json = c->json};
    struct ulp_run_health health = {0};
    enum ulp_status status = ulp_run_check(c->store, run, print_damage, &printer, &health);

    if (status) {
        finish_damage(&printer);
        return status;
    }
    print_health(&printer, &health);
    c->runs++;
    c->damaged += health.damaged;
    c->unreachable += !health.reachable;
    return ULP_OK;
}

/* ---- the verb ---- */

static enum ulp_status judge(const struct checking *c, const char *url) {
    if (!c->runs)
        return ulp_fail(ULP_E_NO_RUN, "there is no run in '%s'", url);
    if (c->damaged || c->unreachable)
        return ulp_fail(ULP_E_PART,
                        "%llu objects are missing or damaged; %llu of %llu runs cannot "
                        "be reached by who starts with nothing",
                        (unsigned long long)c->damaged, (unsigned long long)c->unreachable,
                        (unsigned long long)c->runs);
    return ULP_OK;
}

static enum ulp_status run(const struct cli_args *args) {
    const char *url = args->operand_count ? args->operands[0] : option_text(args, "store");
    const char *name = option_text(args, "run");
    struct checking c = {.json = option_given(args, "json")};
    enum ulp_status status;

    if (!url || (args->operand_count && option_given(args, "store")))
        return ulp_fail(ULP_E_USAGE, "say which store: ulpsync fsck STORE, or --store URL");
    status = store_open(args, url, &c.store);
    if (!status)
        status = name ? check_run(&c, name) : run_names(c.store, check_run, &c);
    if (!status)
        status = judge(&c, url);
    ulp_store_free(c.store);
    return status;
}

static const struct cli_option options[] = {
    {"store", 0, "URL", "The store, when it is not given as STORE."},
    {"run", 'r', "NAME", "Only this run; without it, all that the store has."},
    STORE_OPTIONS,
    CLI_OPTION_JSON_LINES,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_fsck = {
    .name = "fsck",
    .group = CLI_RUNS,
    .summary = "check that the runs in a store are whole",
    .operands = "STORE [--run NAME] [--json]",
    .operands_min = 0,
    .operands_max = 1,
    .description =
        "Reads the log of each run from the beginning and every part that its newest\n"
        "record names, names each object that is missing or damaged, and says whether the\n"
        "newest version can still be reached by who starts with nothing. The exit code is\n"
        "0 when all is well, 70 when there is no run, and 76 when something is damaged.\n"
        "\n"
        "Damage need not be the end. Followers that are past it do not notice; as long as\n"
        "the newest version can be reached, others find another way; and the next state\n"
        "that is stored whole ('ulpsync publish --anchor-every') leads around it.\n",
    .examples = "  $ ulpsync fsck /mnt/weights\n"
                "  $ ulpsync fsck /mnt/weights --run rl1 --json | jq '.damaged[].key'\n",
    .options = options,
    .run = run,
};
