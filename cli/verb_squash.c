// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <stdio.h>

struct request {
    const char *output;
    struct ulp_pool *pool;
    struct ulp_model *base;
    struct history history;
    struct ulp_patch *patches[CLI_OPERANDS_MAX];
    unsigned count;
    uint64_t bytes; /* of all patches */
};

struct outcome {
    struct ulp_diff_report report;
    struct diff_times times;
};

static void print_json(const struct request *request, const struct outcome *outcome) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    report_diff_json(&out, &outcome->report);
    json_out_u64(&out, "patches", request->count);
    json_out_u64(&out, "patches_bytes", request->bytes);
    json_out_u64(&out, "threads", ulp_pool_threads(request->pool));
    report_diff_times_json(&out, &outcome->report, &outcome->times);
    json_out_end(&out, '}');
}

static void print_text(const struct request *request, const struct outcome *outcome) {
    printf("squashed  %u patch%s of together %s\n", request->count, request->count == 1 ? "" : "es",
           readable_bytes(request->bytes).text);
    report_diff_text(&outcome->report, outcome->times.total_s);
}

static enum ulp_status open_patches(const struct cli_args *args, struct request *request) {
    enum ulp_status status = ULP_OK;

    for (unsigned i = 0; !status && i < args->operand_count; i++) {
        struct ulp_patch_info info;

        status = input_patch(args->operands[i], &request->patches[i]);
        if (status)
            break;
        ulp_patch_info(request->patches[i], &info);
        request->bytes += info.bytes;
        request->count++;
    }
    return status;
}

static enum ulp_status read_request(const struct cli_args *args, struct request *request) {
    enum ulp_status status = ULP_OK;

    request->output = option_text(args, "output");
    if (!request->output)
        status = ulp_fail(ULP_E_USAGE, "say where to write: -o PATCH");
    else if (!option_given(args, "base"))
        status = ulp_fail(ULP_E_USAGE, "say which model the first patch starts from: --base MODEL");
    if (!status && !option_given(args, "replace"))
        status = output_is_free(request->output);
    if (!status)
        status = option_pool(args, &request->pool);
    if (!status)
        status = open_patches(args, request);
    if (!status)
        status = input_model(option_text(args, "base"), &request->base);
    if (!status)
        status = history_open(args, &request->history);
    return status;
}

static enum ulp_status make(const struct cli_args *args, const struct request *request,
                            struct outcome *outcome) {
    struct progress_line line;
    struct ulp_progress progress;
    struct ulp_diff_options options = {.pool = request->pool, .progress = &progress};
    struct ulp_weights *weights = NULL;
    uint64_t lap = now_ns();
    enum ulp_status status = report_weights(
        ulp_model_tensors(request->base), ulp_model_count(request->base), request->pool, &weights);

    outcome->times.digest_s = lap_seconds(&lap);
    if (!status)
        status = history_remember(&request->history, weights, request->pool);
    outcome->times.history_s = lap_seconds(&lap);
    if (!status) {
        progress = progress_begin(&line, "squash", ulp_model_bytes(request->base));
        status = ulp_squash_file(
            weights, (const struct ulp_patch *const *)request->patches, request->count, &options,
            request->output, option_given(args, "replace") ? ULP_COMMIT_REPLACE : ULP_COMMIT_NEW,
            &outcome->report);
        progress_end(&line);
    }
    ulp_weights_free(weights);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct request request = {0};
    struct outcome outcome = {0};
    uint64_t started = now_ns(), lap = started;
    enum ulp_status status = read_request(args, &request);

    outcome.times.open_s = lap_seconds(&lap);
    if (!status)
        status = make(args, &request, &outcome);
    outcome.times.total_s = lap_seconds(&started);
    if (!status)
        (option_given(args, "json") ? print_json : print_text)(&request, &outcome);
    for (unsigned i = 0; i < request.count; i++)
        ulp_patch_free(request.patches[i]);
    history_release(&request.history);
    ulp_model_free(request.base);
    ulp_pool_free(request.pool);
    return status;
}

static const struct cli_option options[] = {
    {"base", 'b', "MODEL", "The model that the first patch starts from. It stays as it is."},
    {"output", 'o', "PATCH", "The patch to write. It appears complete or not at all."},
    CLI_OPTIONS_HISTORY,
    {"replace", 0, NULL, "Replace a file that is there already."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_squash = {
    .name = "squash",
    .group = CLI_PATCHES,
    .summary = "make one patch of several that follow each other",
    .operands = "PATCH... --base MODEL -o PATCH [--history BEFORE] [...]",
    .operands_min = 1,
    .operands_max = CLI_OPERANDS_MAX,
    .description =
        "Writes one patch that does what the given ones do one after the other: for a\n"
        "worker that was away. Weights that moved and came back drop out, so it is\n"
        "smaller than the sum. It needs no history, even if the given ones do; --history\n"
        "is the checkpoint before MODEL, for a first patch that was made with it.\n"
        "\n"
        "Every patch is checked as 'ulpsync apply' would, and the result leads to the\n"
        "state that the last one names.\n",
    .examples = "  $ ulpsync squash step-2.ulp step-3.ulp --base step-1 -o steps-2-3.ulp\n"
                "  $ ulpsync apply steps-2-3.ulp step-1 -o step-3\n",
    .options = options,
    .run = run,
};
