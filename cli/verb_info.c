// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

/* Dtypes of one model, in the order in which they are met. More kinds than this are summed up. */
#define DTYPES_MAX 32u

struct dtype_total {
    const char *dtype;
    uint64_t tensors, elements, bytes;
};

struct totals {
    struct dtype_total dtypes[DTYPES_MAX];
    unsigned count;
    uint64_t elements;
};

static struct dtype_total *total_of(struct totals *totals, const char *dtype) {
    for (unsigned i = 0; i < totals->count; i++) {
        if (!strcmp(totals->dtypes[i].dtype, dtype))
            return &totals->dtypes[i];
    }
    if (totals->count == DTYPES_MAX) {
        totals->dtypes[DTYPES_MAX - 1].dtype = "others";
        return &totals->dtypes[DTYPES_MAX - 1];
    }
    totals->dtypes[totals->count].dtype = dtype;
    return &totals->dtypes[totals->count++];
}

static struct totals add_up(const struct ulp_model *model) {
    const struct ulp_tensor *tensors = ulp_model_tensors(model);
    struct totals totals = {0};

    for (size_t i = 0; i < ulp_model_count(model); i++) {
        struct dtype_total *total = total_of(&totals, tensors[i].dtype);

        total->tensors++;
        total->elements += tensors[i].elements;
        total->bytes += tensors[i].bytes;
        totals.elements += tensors[i].elements;
    }
    return totals;
}

static void print_tensor_json(struct json_out *out, const struct ulp_tensor *tensor) {
    json_out_begin(out, NULL, '{');
    json_out_text(out, "name", tensor->name);
    json_out_text(out, "dtype", tensor->dtype);
    json_out_begin(out, "shape", '[');
    for (uint32_t i = 0; i < tensor->rank; i++)
        json_out_u64(out, NULL, tensor->shape[i]);
    json_out_end(out, ']');
    json_out_u64(out, "elements", tensor->elements);
    json_out_u64(out, "bytes", tensor->bytes);
    json_out_end(out, '}');
}

static void print_metadata_json(struct json_out *out, const struct ulp_model *model) {
    const struct ulp_text_pair *pairs = NULL;
    size_t count = ulp_model_metadata(model, &pairs);

    json_out_begin(out, "metadata", '{');
    for (size_t i = 0; i < count; i++)
        json_out_text(out, pairs[i].key, pairs[i].value);
    json_out_end(out, '}');
}

static void print_json(const struct ulp_model *model, const struct totals *totals, bool tensors) {
    struct json_out out = {0};

    json_out_begin(&out, NULL, '{');
    json_out_u64(&out, "tensors", ulp_model_count(model));
    json_out_u64(&out, "elements", totals->elements);
    json_out_u64(&out, "bytes", ulp_model_bytes(model));
    json_out_u64(&out, "files", ulp_model_files(model));
    json_out_begin(&out, "dtypes", '{');
    for (unsigned i = 0; i < totals->count; i++) {
        json_out_begin(&out, totals->dtypes[i].dtype, '{');
        json_out_u64(&out, "tensors", totals->dtypes[i].tensors);
        json_out_u64(&out, "elements", totals->dtypes[i].elements);
        json_out_u64(&out, "bytes", totals->dtypes[i].bytes);
        json_out_end(&out, '}');
    }
    json_out_end(&out, '}');
    print_metadata_json(&out, model);
    if (tensors) {
        json_out_begin(&out, "list", '[');
        for (size_t i = 0; i < ulp_model_count(model); i++)
            print_tensor_json(&out, &ulp_model_tensors(model)[i]);
        json_out_end(&out, ']');
    }
    json_out_end(&out, '}');
}

static void print_tensor(const struct ulp_tensor *tensor) {
    printf("%-8s %10s  ", tensor->dtype, readable_bytes(tensor->bytes).text);
    print_safely(stdout, tensor->name);
    fputs(" [", stdout);
    for (uint32_t i = 0; i < tensor->rank; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)tensor->shape[i]);
    puts("]");
}

static void print_text(const struct ulp_model *model, const struct totals *totals, bool tensors) {
    for (size_t i = 0; tensors && i < ulp_model_count(model); i++)
        print_tensor(&ulp_model_tensors(model)[i]);
    printf("tensors   %zu in %zu file%s\n", ulp_model_count(model), ulp_model_files(model),
           ulp_model_files(model) == 1 ? "" : "s");
    printf("elements  %llu (%s)\n", (unsigned long long)totals->elements,
           readable_count(totals->elements).text);
    printf("bytes     %llu (%s)\n", (unsigned long long)ulp_model_bytes(model),
           readable_bytes(ulp_model_bytes(model)).text);
    for (unsigned i = 0; i < totals->count; i++)
        printf("%-9s %llu tensors, %s\n", totals->dtypes[i].dtype,
               (unsigned long long)totals->dtypes[i].tensors,
               readable_bytes(totals->dtypes[i].bytes).text);
}

static enum ulp_status run(const struct cli_args *args) {
    struct ulp_model *model = NULL;
    struct totals totals;
    enum ulp_status status = input_model(args->operands[0], &model);

    if (status)
        return status;
    totals = add_up(model);
    (option_given(args, "json") ? print_json : print_text)(model, &totals,
                                                           option_given(args, "tensors"));
    ulp_model_free(model);
    return ULP_OK;
}

static const struct cli_option options[] = {
    {"tensors", 0, NULL, "Also list every tensor."},
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_info = {
    .name = "info",
    .group = CLI_MODELS,
    .summary = "what is in a model: tensors, dtypes, bytes",
    .operands = "MODEL [--tensors] [--json]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Reads the headers of MODEL and checks them strictly: every byte belongs to one\n"
        "tensor, every size follows from dtype and shape, every name occurs once. The\n"
        "weights themselves are not read.\n"
        "\n"
        "MODEL is a safetensors file, an index (model.safetensors.index.json), or a\n"
        "directory. In a directory the index decides which files count; without one\n"
        "model.safetensors; without that, all *.safetensors files together.\n",
    .examples = "  $ ulpsync info model.safetensors\n"
                "  $ ulpsync info ~/models/Qwen3-0.6B --tensors\n"
                "  $ ulpsync info model.safetensors --json | jq .dtypes\n",
    .options = options,
    .run = run,
};
