// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <stdio.h>

struct request {
    const char *output;
    unsigned coder; /* as enum ulp_coder numbers them */
    struct ulp_pool *pool;
    struct history history;
};

struct outcome {
    struct ulp_diff_report report;
    struct diff_times times;
    unsigned threads;
};

static void print_json(const struct outcome *outcome) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    report_diff_json(&out, &outcome->report);
    json_out_u64(&out, "threads", outcome->threads);
    report_diff_times_json(&out, &outcome->report, &outcome->times);
    json_out_end(&out, '}');
}

static enum ulp_status read_request(const struct cli_args *args, struct request *request) {
    static const char *const coders[] = {"best", "context", "plain", "dense", NULL};
    enum ulp_status status = option_choice(args, "coder", coders, &request->coder);

    request->output = option_text(args, "output");
    if (!status && !request->output)
        status = ulp_fail(ULP_E_USAGE, "say where to write: -o PATCH");
    if (!status && !option_given(args, "replace"))
        status = output_is_free(request->output);
    if (!status)
        status = option_pool(args, &request->pool);
    if (!status)
        status = history_open(args, &request->history);
    return status;
}

static enum ulp_status make(const struct cli_args *args, const struct request *request,
                            const struct ulp_model *old, const struct ulp_model *new,
                            struct outcome *outcome) {
    struct ulp_diff_options options = {.pool = request->pool,
                                       .coder = (enum ulp_coder)request->coder,
                                       .history = request->history.before != NULL};
    struct ulp_weights *weights = NULL;
    struct progress_line line;
    struct ulp_progress progress;
    uint64_t lap = now_ns();
    enum ulp_status status =
        report_weights(ulp_model_tensors(old), ulp_model_count(old), request->pool, &weights);

    outcome->times.digest_s = lap_seconds(&lap);
    if (!status)
        status = history_remember(&request->history, weights, request->pool);
    outcome->times.history_s = lap_seconds(&lap);
    if (!status) {
        progress = progress_begin(&line, "diff", ulp_model_bytes(new));
        options.progress = &progress;
        status = ulp_diff_file(
            weights, ulp_model_tensors(new), ulp_model_count(new), &options, request->output,
            option_given(args, "replace") ? ULP_COMMIT_REPLACE : ULP_COMMIT_NEW, &outcome->report);
        progress_end(&line);
    }
    ulp_weights_free(weights);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct ulp_model *old = NULL, *new = NULL;
    struct request request = {0};
    struct outcome outcome = {0};
    uint64_t started = now_ns(), lap = started;
    enum ulp_status status = read_request(args, &request);

    if (!status)
        status = input_model(args->operands[0], &old);
    if (!status)
        status = input_model(args->operands[1], &new);
    outcome.times.open_s = lap_seconds(&lap);
    if (!status)
        status = make(args, &request, old, new, &outcome);
    if (!status) {
        outcome.times.total_s = lap_seconds(&started);
        outcome.threads = ulp_pool_threads(request.pool);
        if (option_given(args, "json"))
            print_json(&outcome);
        else
            report_diff_text(&outcome.report, outcome.times.total_s);
    }
    ulp_model_free(old);
    ulp_model_free(new);
    history_release(&request.history);
    ulp_pool_free(request.pool);
    return status;
}

static const struct cli_option options[] = {
    {"output", 'o', "PATCH", "The patch to write. It appears complete or not at all."},
    CLI_OPTIONS_HISTORY,
    {"coder", 0, "NAME",
     "'best' (the default) takes for each chunk what is smallest; 'context', 'plain' and 'dense' "
     "insist on one, for comparing."},
    {"replace", 0, NULL, "Replace a file that is there already."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_diff = {
    .name = "diff",
    .group = CLI_PATCHES,
    .summary = "make the patch that leads from one model to the next",
    .operands = "OLD NEW -o PATCH [--history BEFORE] [--replace] [...]",
    .operands_min = 2,
    .operands_max = 2,
    .description =
        "Compares two models that hold the same tensors and writes what changed, in far\n"
        "fewer bytes than NEW has. The patch names the root of OLD and of NEW: it can\n"
        "only be applied to the one, and only ever gives the other. How the tensors are\n"
        "spread over files does not matter. The same models give the same bytes,\n"
        "whatever the machine and the number of threads.\n"
        "\n"
        "With --history the patch is smaller still, because weights tend to go on as\n"
        "they went before. Only who has that history too can read it: give the first\n"
        "patch of a chain, and one from time to time, without.\n",
    .examples = "  $ ulpsync diff step-1 step-2 -o step-2.ulp\n"
                "  $ ulpsync diff step-2 step-3 -o step-3.ulp --history step-1\n"
                "  $ ulpsync diff step-2 step-3 -o step-3.ulp \\\n"
                "        --history step-2.ulp --history-base step-1\n",
    .options = options,
    .run = run,
};
