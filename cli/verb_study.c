// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"
#include "cli/study_show.h"

#include <string.h>

static enum ulp_status run(const struct cli_args *args) {
    struct study study = {.paths = args->operands,
                          .count = args->operand_count,
                          .quick = option_given(args, "quick")};
    const char *page = option_text(args, "html");
    const bool json = option_given(args, "json"), page_alone = page && !strcmp(page, "-");
    struct ulp_pool *pool = NULL;
    enum ulp_status status = option_pool(args, &pool);

    if (!status && json && page_alone)
        status = ulp_fail(ULP_E_USAGE, "standard output takes the page or JSON, not both");
    if (!status)
        status = study_run(&study, pool);
    if (!status && page)
        status = study_write_html(&study, page);
    if (!status && json)
        study_print_json(&study);
    else if (!status && !page_alone)
        study_print_text(&study);
    study_release(&study);
    ulp_pool_free(pool);
    return status;
}

static const struct cli_option options[] = {
    {"html", 0, "FILE",
     "Also write a page with charts, which needs nothing but itself; '-' is standard output, and then "
     "there is no table."},
    {"quick", 0, NULL, "Only count: make no patches, squeeze nothing, and leave out sizes."},
    CLI_OPTION_THREADS,
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_study = {
    .name = "study",
    .group = CLI_TRIALS,
    .summary = "how sparse a run is, and what its patches would take",
    .operands = "CKPT0 CKPT1 [CKPT2 ...] [--html FILE] [--quick] [--json]",
    .operands_min = 2,
    .operands_max = CLI_OPERANDS_MAX,
    .description =
        "Compares checkpoints of one run, given in order: models of the same tensors,\n"
        "each a safetensors file, an index or a directory. It answers how many weights\n"
        "change from one to the next, and over 2, 4, 8 and 16 of them, as far as they\n"
        "reach; which ones, by layer, by kind of tensor and by size; by how many ulps;\n"
        "and how many go on as they went before.\n"
        "\n"
        "The entropy floor is what no coder of its kind can beat: which weights change\n"
        "and by how much, given the size of the old weight and, with history, its last\n"
        "move. Beside it stands what ulpsync takes, from patches that are really made,\n"
        "and what others' encodings would. 'encoded' sizes are of bytes that were made,\n"
        "'counted' ones are exact, 'sampled' ones come from a part of the state, and an\n"
        "'estimate' is a formula.\n"
        "\n"
        "Memory does not grow with the model. Patches are put into a temporary file in\n"
        "TMPDIR, or /tmp, one at a time.\n",
    .examples = "  $ ulpsync study checkpoints/step-1 checkpoints/step-2\n"
                "  $ ulpsync study run/step-*.safetensors --html study.html\n"
                "  $ ulpsync study run/step-*.safetensors --json |\n"
                "        jq '.intervals[] | {k, density}'\n",
    .options = options,
    .run = run,
};
