// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "synth/checkpoints.h"

#include <stdio.h>
#include <sys/statvfs.h>

/* What the recorded runs were trained with; see docs/synth.md. */
#define LR_MASTER 1e-6
#define LR_BF16 3e-6

struct request {
    uint64_t params, layers, steps, seed;
    unsigned regime, dtype;
    double lr;
};

static enum ulp_status read_request(const struct cli_args *args, struct request *request) {
    static const char *const regimes[] = {"master", "bf16", NULL};
    static const char *const dtypes[] = {"bf16", "f16", "f32", NULL};
    enum ulp_status status =
        option_count(args, "params", SYNTH_PARAMS_MIN, SYNTH_PARAMS_MAX, &request->params);

    if (!status)
        status = option_count(args, "layers", 1, SYNTH_LAYERS_MAX, &request->layers);
    if (!status)
        status = option_count(args, "steps", 0, SYNTH_STEPS_MAX, &request->steps);
    if (!status)
        status = option_count(args, "seed", 0, UINT64_C(1) << 52, &request->seed);
    if (!status)
        status = option_choice(args, "regime", regimes, &request->regime);
    if (!status)
        status = option_choice(args, "dtype", dtypes, &request->dtype);
    request->lr = request->regime == SYNTH_MASTER ? LR_MASTER : LR_BF16;
    if (!status)
        status = option_real(args, "lr", 1e-12, 1.0, &request->lr);
    if (!status && request->regime == SYNTH_BF16 && request->dtype == SYNTH_DT_F32)
        status = ulp_fail(ULP_E_USAGE, "with --dtype f32 there is nothing to round after a step; "
                                       "use --regime master");
    if (!status && !option_given(args, "output"))
        status = ulp_fail(ULP_E_USAGE, "say where to write: -o DIR");
    return status;
}

/* A run is tens of files of gigabytes; better to know beforehand. */
static enum ulp_status check_space(const char *directory, uint64_t bytes) {
    struct statvfs space;
    uint64_t there;

    if (statvfs(directory, &space))
        return ULP_OK; /* then the writes will tell */
    there = (uint64_t)space.f_bavail * space.f_frsize;
    if (there >= bytes)
        return ULP_OK;
    return ulp_fail(ULP_E_NO_SPACE, "this run needs %s in '%s', which has %s free",
                    readable_bytes(bytes).text, directory, readable_bytes(there).text);
}

static void print_result(const struct cli_args *args, const struct synth_checkpoints *what,
                         uint64_t bytes, double seconds) {
    const char *directory = what->directory;
    struct json_out out = {0};

    if (!option_given(args, "json")) {
        printf("%u checkpoints of %s parameters (%llu layers, hidden size %llu, vocabulary %llu)\n",
               what->steps + 1, readable_count(what->plan->params).text,
               (unsigned long long)what->plan->layers, (unsigned long long)what->plan->hidden,
               (unsigned long long)what->plan->vocabulary);
        printf("%s in %s, %.1f s\n", readable_bytes(bytes).text, directory, seconds);
        return;
    }
    json_out_begin(&out, NULL, '{');
    json_out_text(&out, "directory", directory);
    json_out_u64(&out, "checkpoints", what->steps + 1);
    json_out_u64(&out, "params", what->plan->params);
    json_out_u64(&out, "layers", what->plan->layers);
    json_out_u64(&out, "hidden", what->plan->hidden);
    json_out_u64(&out, "vocabulary", what->plan->vocabulary);
    json_out_u64(&out, "bytes", bytes);
    json_out_real(&out, "seconds", seconds);
    json_out_end(&out, '}');
}

static enum ulp_status write_run(const struct cli_args *args, const struct request *request,
                                 const struct synth_plan *plan) {
    const struct synth_checkpoints what = {
        option_text(args, "output"),
        plan,
        {(enum synth_regime)request->regime, (enum synth_dtype)request->dtype, (float)request->lr,
         request->seed},
        (unsigned)request->steps,
        option_given(args, "force") ? ULP_COMMIT_REPLACE : ULP_COMMIT_NEW};
    uint64_t bytes = plan->params * synth_dtype_bytes(what.run.dtype) * (request->steps + 1),
             started = now_ns();
    struct ulp_pool *pool = NULL;
    struct progress_line line;
    struct ulp_progress progress;
    enum ulp_status status = ulp_directory_make(what.directory);

    if (!status)
        status = check_space(what.directory, bytes);
    if (!status)
        status = option_pool(args, &pool);
    if (status)
        return status;
    progress = progress_begin(&line, "synth", bytes);
    status = synth_checkpoints_write(&what, pool, &progress);
    progress_end(&line);
    ulp_pool_free(pool);
    if (!status)
        print_result(args, &what, bytes, (double)(now_ns() - started) / 1e9);
    return status;
}

static enum ulp_status run(const struct cli_args *args) {
    struct request request = {.params = 64000000, .steps = 4, .seed = 1};
    struct synth_plan plan;
    enum ulp_status status = read_request(args, &request);

    if (status)
        return status;
    status = synth_plan_make(request.params, request.layers, &plan);
    if (status)
        return status;
    status = write_run(args, &request, &plan);
    synth_plan_release(&plan);
    return status;
}

static const struct cli_option options[] = {
    {"output", 'o', "DIR", "Where to write; made if missing."},
    {"params", 'p', "N", "Parameters, such as 64M (the default) or 2B."},
    {"steps", 's', "N",
     "Optimiser steps, 4 unless given, 255 at most; one more checkpoint than that is written."},
    {"regime", 0, "KIND",
     "'master' (the default): FP32 master weights, of which the checkpoint is a rounded view. 'bf16': "
     "the weights themselves, in the checkpoint's type, are rounded after each step, so small updates "
     "are lost."},
    {"lr", 0, "RATE", "Learning rate; without it 1e-6 for master and 3e-6 for bf16."},
    {"seed", 0, "N", "Another seed, another run; 1 unless given."},
    {"layers", 0, "N", "Transformer layers; without it, what suits the size."},
    {"dtype", 0, "TYPE", "bf16 (the default), f16 or f32."},
    {"force", 0, NULL, "Replace the checkpoints of another run that are there already."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_synth = {
    .name = "synth",
    .group = CLI_TRIALS,
    .summary = "make checkpoints of a synthetic training run",
    .operands = "-o DIR [--params N] [--steps N] [--regime KIND] [...]",
    .operands_min = 0,
    .operands_max = 0,
    .description =
        "Writes step-000.safetensors, step-001.safetensors, ... into DIR: a transformer\n"
        "whose weights move from step to step as those of a model in reinforcement\n"
        "learning do. How many weights change, which ones, by how much, and how often\n"
        "the same ones change again were calibrated on two recorded runs; docs/synth.md\n"
        "says how close it comes.\n"
        "\n"
        "The bytes depend on the options alone: not on the machine, not on the number of\n"
        "threads. Memory stays small, however large the model is.\n",
    .examples = "  $ ulpsync synth -o run --params 64M --steps 4\n"
                "  $ ulpsync synth -o big --params 2B --steps 1 --regime bf16 --seed 7\n"
                "  $ ulpsync digest run/step-004.safetensors\n",
    .options = options,
    .run = run,
};
