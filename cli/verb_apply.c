// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <stdio.h>

struct request {
    const char *model, *output; /* no output: in place */
    struct ulp_patch *patch;
    struct history history;
    struct ulp_apply_options options;
};

struct outcome {
    struct ulp_apply_report report;
    double open_s, total_s;
};

static void print_json(const struct request *request, const struct outcome *outcome) {
    const struct ulp_apply_report *report = &outcome->report;
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_root(&out, "parent_root", &report->parent);
    json_out_root(&out, "child_root", &report->child);
    json_out_u64(&out, "changed", report->already ? 0 : report->changed);
    json_out_bool(&out, "already", report->already);
    json_out_bool(&out, "in_place", !request->output);
    json_out_u64(&out, "staged_bytes", report->staged_bytes);
    json_out_u64(&out, "spilled_bytes", report->spilled_bytes);
    json_out_u64(&out, "threads", ulp_pool_threads(request->options.pool));
    json_out_begin(&out, "seconds", '{');
    json_out_real(&out, "open", outcome->open_s);
    json_out_real(&out, "decode", report->decode_seconds);
    json_out_real(&out, "keep_root", report->digest_seconds);
    json_out_real(&out, "write", report->write_seconds);
    json_out_real(&out, "total", outcome->total_s);
    json_out_end(&out, '}');
    json_out_end(&out, '}');
}

static void print_text(const struct request *request, const struct outcome *outcome) {
    const struct ulp_apply_report *report = &outcome->report;

    if (report->already)
        puts("already   the model is what the patch leads to; nothing changed");
    else
        printf("changed   %llu elements, verified before the first was written\n",
               (unsigned long long)report->changed);
    fputs("model     ", stdout);
    print_safely(stdout, request->output ? request->output : request->model);
    puts(request->output ? "" : ", in place");
    report_root_text("root", &report->child);
    printf("time      %.3f s, of which writing %.3f s\n", outcome->total_s, report->write_seconds);
}

static enum ulp_status read_request(const struct cli_args *args, struct request *request) {
    bool in_place = option_given(args, "in-place");
    enum ulp_status status = ULP_OK;

    request->model = args->operands[1];
    request->output = option_text(args, "output");
    if (in_place && request->output)
        status = ulp_fail(ULP_E_USAGE, "-o and --in-place exclude each other");
    else if (!in_place && !request->output)
        status = ulp_fail(ULP_E_USAGE,
                          "say where the result goes: -o OUT for a copy, or --in-place to change "
                          "the files of '%s'",
                          request->model);
    if (!status)
        status =
            option_size(args, "staging", 1, UINT64_C(1) << 50, &request->options.staging_bytes);
    request->options.spill_directory = option_text(args, "spill-dir");
    if (!status)
        status = option_pool(args, &request->options.pool);
    if (!status)
        status = input_patch(args->operands[0], &request->patch);
    if (!status)
        status = history_open(args, &request->history);
    return status;
}

static enum ulp_status apply(struct request *request, struct ulp_apply_report *ret_report) {
    const struct ulp_model *before = NULL;
    struct ulp_patch_info info;
    struct progress_line line;
    struct ulp_progress progress;
    enum ulp_status status = history_for(&request->history, request->patch, &before);

    if (status)
        return status;
    ulp_patch_info(request->patch, &info);
    progress = progress_begin(&line, "apply", info.dense_bytes);
    request->options.progress = &progress;
    status = request->output ? ulp_model_patch(request->model, request->patch, before,
                                               request->output, &request->options, ret_report)
                             : ulp_model_patch_in_place(request->model, request->patch, before,
                                                        &request->options, ret_report);
    progress_end(&line);
    request->options.progress = NULL;
    return input_explain(status, request->model, "a model");
}

static enum ulp_status run(const struct cli_args *args) {
    struct request request = {0};
    struct outcome outcome = {0};
    uint64_t started = now_ns(), lap = started;
    enum ulp_status status = read_request(args, &request);

    outcome.open_s = lap_seconds(&lap);
    if (!status)
        status = apply(&request, &outcome.report);
    outcome.total_s = lap_seconds(&started);
    if (!status)
        (option_given(args, "json") ? print_json : print_text)(&request, &outcome);
    history_release(&request.history);
    ulp_patch_free(request.patch);
    ulp_pool_free(request.options.pool);
    return status;
}

static const struct cli_option options[] = {
    {"output", 'o', "OUT",
     "Write a patched copy: a file, or for a model that is a directory a directory with all that "
     "lies beside the weights. It must not exist yet."},
    {"in-place", 'i', NULL, "Change the files of MODEL where they are."},
    CLI_OPTIONS_HISTORY,
    {"staging", 0, "SIZE",
     "Hold at most this much of the decoded changes in memory, such as 256MiB; 64MiB unless given. "
     "The rest goes to a temporary file."},
    {"spill-dir", 0, "DIR", "Where that file is made; without it, TMPDIR or /tmp."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_apply = {
    .name = "apply",
    .group = CLI_PATCHES,
    .summary = "bring a model to the state that a patch leads to",
    .operands = "PATCH MODEL (-o OUT | --in-place) [--history BEFORE]",
    .operands_min = 2,
    .operands_max = 2,
    .description =
        "All of the patch is decoded and checked against MODEL before anything is\n"
        "written: it fits these very bits, and the result has the root that the patch\n"
        "names. A model that is there already is left as it is, which is no failure.\n"
        "\n"
        "With -o the result appears complete or not at all. With --in-place a journal is\n"
        "written first; whatever happens then, the files hold the old state or can be\n"
        "brought to the new one with 'ulpsync recover', which the next apply does by\n"
        "itself. Until then they are refused, so nobody reads half a step.\n"
        "\n"
        "A patch that was made with --history needs the same one here.\n",
    .examples = "  $ ulpsync apply step-2.ulp step-1 -o step-2\n"
                "  $ ulpsync apply step-2.ulp current --in-place\n"
                "  $ ulpsync apply step-3.ulp step-2 -o step-3 --history step-1\n",
    .options = options,
    .run = run,
};
