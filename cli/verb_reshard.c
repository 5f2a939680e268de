// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/terminal.h"

#include <limits.h>
#include <stdio.h>

static enum ulp_status run(const struct cli_args *args) {
    const char *directory = option_text(args, "output");
    const struct ulp_text_pair *metadata = NULL;
    struct ulp_model *model = NULL;
    struct progress_line line;
    struct ulp_progress progress;
    uint64_t shards = 1;
    size_t metadata_count;
    enum ulp_status status = option_count(args, "shards", 1, UINT_MAX, &shards);

    if (!status && !directory)
        status = ulp_fail(ULP_E_USAGE, "say where to write: -o DIR");
    if (!status)
        status = input_model(args->operands[0], &model);
    if (status)
        return status;
    metadata_count = ulp_model_metadata(model, &metadata);
    progress = progress_begin(&line, "reshard", ulp_model_bytes(model));
    status = ulp_model_save(directory, ulp_model_tensors(model), ulp_model_count(model), metadata,
                            metadata_count, (unsigned)shards, &progress);
    progress_end(&line);
    if (!status && option_given(args, "json")) {
        struct json_out out = {0};

        json_out_begin(&out, NULL, '{');
        json_out_u64(&out, "tensors", ulp_model_count(model));
        json_out_u64(&out, "bytes", ulp_model_bytes(model));
        json_out_u64(&out, "files", shards);
        json_out_end(&out, '}');
    } else if (!status) {
        printf("%zu tensors, %s, in %llu file%s in %s\n", ulp_model_count(model),
               readable_bytes(ulp_model_bytes(model)).text, (unsigned long long)shards,
               shards == 1 ? "" : "s", directory);
    }
    ulp_model_free(model);
    return status;
}

static const struct cli_option options[] = {
    {"output", 'o', "DIR", "Where to write; made if missing. It must not hold a model yet."},
    {"shards", 'n', "N", "How many files; without it, one."},
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_reshard = {
    .name = "reshard",
    .group = CLI_MODELS,
    .summary = "write a model again, canonically, in any number of files",
    .operands = "MODEL -o DIR [--shards N] [--json]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Writes the tensors of MODEL into DIR, as model.safetensors or as N files of\n"
        "about equal size with an index, each with the metadata of MODEL's first file.\n"
        "The encoding is canonical: the same tensors always give the same bytes. The\n"
        "root digest stays what it was.\n"
        "\n"
        "Files appear under their names complete and synced, the index last; until then\n"
        "the model is refused as incomplete. Nothing that is there is replaced.\n",
    .examples = "  $ ulpsync reshard model.safetensors -o sharded --shards 5\n"
                "  $ ulpsync reshard sharded -o single\n",
    .options = options,
    .run = run,
};
