// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>

struct check {
    struct ulp_patch *patch;
    struct ulp_patch_info info;
    struct ulp_pool *pool;
    struct history history;
    struct ulp_model *base; /* NULL: the patch alone */
    bool already;           /* the base is the patch's child */
};

static void print_json(const struct check *check, double seconds) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_bool(&out, "patch", true);
    json_out_bool(&out, "result", check->base && !check->already);
    json_out_bool(&out, "already", check->already);
    json_out_root(&out, "parent_root", &check->info.parent);
    if (!check->info.partial)
        json_out_root(&out, "child_root", &check->info.child);
    json_out_bool(&out, "history", check->info.history);
    json_out_bool(&out, "partial", check->info.partial);
    json_out_u64(&out, "patch_bytes", check->info.bytes);
    json_out_u64(&out, "changed", check->info.changed);
    json_out_u64(&out, "chunks", check->info.chunks);
    json_out_real(&out, "seconds", seconds);
    json_out_end(&out, '}');
}

static void print_text(const struct check *check, double seconds) {
    printf("patch     sound: %s in %zu chunk%s, every checksum holds\n",
           readable_bytes(check->info.bytes).text, check->info.chunks,
           check->info.chunks == 1 ? "" : "s");
    if (check->info.partial)
        puts("result    none of its own: it covers regions only, and is applied with other parts");
    else if (!check->base)
        puts("result    not checked; that takes the model: --base MODEL");
    else if (check->already)
        puts("result    not checked: the model is already what the patch leads to");
    else
        puts("result    sound: applied to this model, it gives the root that it names");
    report_root_text("from", &check->info.parent);
    if (!check->info.partial)
        report_root_text("to", &check->info.child);
    if (check->info.history)
        report_root_text("history", &check->info.before);
    printf("time      %.3f s\n", seconds);
}

static enum ulp_status verify_patch(const struct check *check) {
    struct progress_line line;
    struct ulp_progress progress = progress_begin(&line, "verify", check->info.bytes);
    enum ulp_status status = ulp_patch_verify(check->patch, check->pool, &progress);

    progress_end(&line);
    return status;
}

/* Decodes all of it against the model, and writes nothing. */
static enum ulp_status verify_result(struct check *check) {
    struct ulp_weights *weights = NULL;
    struct ulp_apply *apply = NULL;
    struct ulp_root root;
    struct progress_line line;
    struct ulp_progress progress;
    struct ulp_apply_options options = {.pool = check->pool, .progress = &progress};
    enum ulp_status status = report_weights(ulp_model_tensors(check->base),
                                            ulp_model_count(check->base), check->pool, &weights);

    if (!status) {
        ulp_weights_root(weights, &root);
        check->already = !memcmp(&root, &check->info.child, sizeof root);
    }
    if (!status && check->info.history && !check->already)
        status = history_remember(&check->history, weights, check->pool);
    if (!status) {
        progress = progress_begin(&line, "decode", check->info.dense_bytes);
        status = ulp_apply_prepare(weights, check->patch, &options, &apply);
        progress_end(&line);
    }
    ulp_apply_free(apply);
    ulp_weights_free(weights);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    const char *base = option_text(args, "base");
    struct check check = {0};
    uint64_t started = now_ns();
    enum ulp_status status = option_pool(args, &check.pool);

    if (!status && option_given(args, "history") && !base)
        status = ulp_fail(ULP_E_USAGE, "--history is for checking the result: it goes with --base");
    if (!status)
        status = input_patch(args->operands[0], &check.patch);
    if (!status)
        status = history_open(args, &check.history);
    if (!status) {
        ulp_patch_info(check.patch, &check.info);
        if (base && check.info.partial)
            status = ulp_fail(ULP_E_REGIONS,
                              "'%s' covers regions only: there is no state that it leads to by "
                              "itself. Verify it without --base",
                              args->operands[0]);
    }
    if (!status && base)
        status = input_model(base, &check.base);
    if (!status)
        status = verify_patch(&check);
    if (!status && base)
        status = verify_result(&check);
    if (!status)
        (option_given(args, "json") ? print_json : print_text)(&check, lap_seconds(&started));
    history_release(&check.history);
    ulp_model_free(check.base);
    ulp_patch_free(check.patch);
    ulp_pool_free(check.pool);
    return status;
}

static const struct cli_option options[] = {
    {"base", 'b', "MODEL", "The model that the patch starts from: check the result too."},
    CLI_OPTIONS_HISTORY,
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_verify = {
    .name = "verify",
    .group = CLI_PATCHES,
    .summary = "check every byte of a patch, with or without its model",
    .operands = "PATCH [--base MODEL] [--history BEFORE] [...]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Without a model: the table of contents is sound and canonical, all bytes are\n"
        "those that were written, and every coded change is well-formed.\n"
        "\n"
        "With --base also: MODEL is the state that the patch starts from, and applying it\n"
        "gives the state that it names. That is everything 'ulpsync apply' checks, and\n"
        "nothing is written. A patch of regions names no state, so it goes without.\n",
    .examples = "  $ ulpsync verify step-2.ulp\n"
                "  $ ulpsync verify step-2.ulp --base step-1\n"
                "  $ ulpsync verify step-3.ulp --base step-2 --history step-1\n",
    .options = options,
    .run = run,
};
