// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>

static void print_tensors_json(struct json_out *out, const struct ulp_model *model,
                               const struct ulp_sum *sums) {
    const struct ulp_tensor *tensors = ulp_model_tensors(model);
    char sum[40];

    json_out_begin(out, "sums", '{');
    for (size_t i = 0; i < ulp_model_count(model); i++) {
        snprintf(sum, sizeof sum, "%016llx%016llx", (unsigned long long)sums[i].lane[0],
                 (unsigned long long)sums[i].lane[1]);
        json_out_text(out, tensors[i].name, sum);
    }
    json_out_end(out, '}');
}

static void print_json(const struct ulp_model *model, const struct ulp_root *root,
                       const struct ulp_sum *sums, double seconds) {
    char hex[ULP_ROOT_HEX_BYTES];
    struct json_out out = {0};

    ulp_root_hex(root, hex);
    json_out_begin(&out, NULL, '{');
    json_out_text(&out, "root", hex);
    json_out_u64(&out, "tensors", ulp_model_count(model));
    json_out_u64(&out, "bytes", ulp_model_bytes(model));
    json_out_u64(&out, "files", ulp_model_files(model));
    json_out_real(&out, "seconds", seconds);
    if (sums)
        print_tensors_json(&out, model, sums);
    json_out_end(&out, '}');
}

static void print_text(const struct ulp_model *model, const struct ulp_root *root,
                       const struct ulp_sum *sums, double seconds) {
    const struct ulp_tensor *tensors = ulp_model_tensors(model);
    char hex[ULP_ROOT_HEX_BYTES];

    for (size_t i = 0; sums && i < ulp_model_count(model); i++) {
        printf("%016llx%016llx  ", (unsigned long long)sums[i].lane[0],
               (unsigned long long)sums[i].lane[1]);
        print_safely(stdout, tensors[i].name);
        putchar('\n');
    }
    ulp_root_hex(root, hex);
    printf("root     %s\n", hex);
    printf("tensors  %zu\n", ulp_model_count(model));
    printf("bytes    %llu (%s)\n", (unsigned long long)ulp_model_bytes(model),
           readable_bytes(ulp_model_bytes(model)).text);
    if (!sums) /* with them, the output is for comparing */
        printf("time     %.3f s, %.2f GB/s\n", seconds,
               (double)ulp_model_bytes(model) / seconds / 1e9);
}

static enum ulp_status run(const struct cli_args *args) {
    struct ulp_model *model = NULL;
    struct ulp_pool *pool = NULL;
    struct ulp_sum *sums = NULL;
    struct ulp_root root;
    struct progress_line line;
    struct ulp_progress progress;
    uint64_t started = now_ns();
    double seconds;
    enum ulp_status status = option_pool(args, &pool);

    if (!status)
        status = input_model(args->operands[0], &model);
    if (status)
        goto out;
    if (option_given(args, "tensors")) {
        sums = calloc(ulp_model_count(model) + 1, sizeof *sums);
        if (!sums) {
            status = ulp_fail(ULP_E_NOMEM, "out of memory for the sums of the tensors");
            goto out;
        }
    }
    progress = progress_begin(&line, "digest", ulp_model_bytes(model));
    status = ulp_state_digest(ulp_model_tensors(model), ulp_model_count(model), pool, &progress,
                              sums, &root);
    progress_end(&line);
    if (status)
        goto out;
    seconds = (double)(now_ns() - started) / 1e9;
    (option_given(args, "json") ? print_json : print_text)(model, &root, sums, seconds);
out:
    free(sums);
    ulp_model_free(model);
    ulp_pool_free(pool);
    return status;
}

static const struct cli_option options[] = {
    {"tensors", 0, NULL, "Also print the sum of every tensor, to find out which ones differ."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_digest = {
    .name = "digest",
    .group = CLI_MODELS,
    .summary = "one value for all names, dtypes, shapes and bits of a model",
    .operands = "MODEL [--tensors] [--threads N] [--json]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Prints the root digest of MODEL, a safetensors file or a directory of them.\n"
        "Models that hold the same tensors, bit for bit, have the same root, and others\n"
        "another: how they are spread over files does not matter, nor does metadata.\n"
        "\n"
        "The root is what patches name as their base and their result, so this is how to\n"
        "ask whether a worker has the trainer's weights.\n",
    .examples = "  $ ulpsync digest model.safetensors\n"
                "  $ ulpsync digest checkpoints/step-100 --json | jq -r .root\n"
                "  $ diff <(ulpsync digest a --tensors) <(ulpsync digest b --tensors)\n",
    .options = options,
    .run = run,
};
