// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/terminal.h"

#include <stdio.h>

static enum ulp_status run(const struct cli_args *args) {
    const char *model = args->operands[0];
    struct json_out out = {0};
    int recovered = 0;
    enum ulp_status status;

    terminal_stop_at_once(); /* the journal stays until all is written, so it can be begun again */
    status = input_explain(ulp_model_recover(model, &recovered), model, "a model");
    if (status)
        return status;
    if (!option_given(args, "json")) {
        puts(recovered ? "an interrupted change was finished; the model is whole"
                       : "there was nothing to finish; the model is whole");
        return ULP_OK;
    }
    json_out_begin(&out, NULL, '{');
    json_out_bool(&out, "recovered", recovered);
    json_out_end(&out, '}');
    return ULP_OK;
}

static const struct cli_option options[] = {
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_recover = {
    .name = "recover",
    .group = CLI_PATCHES,
    .summary = "finish a change in place that was interrupted",
    .operands = "MODEL [--json]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "A crash or power cut in the middle of 'ulpsync apply --in-place' leaves a\n"
        "journal beside the files, and MODEL is refused with exit code 60 until it is\n"
        "whole again. This verb checks that the journal, written over what is there now,\n"
        "gives the state that it was made for, writes it, and removes it. It does no harm\n"
        "when there is nothing to finish, and it can itself be stopped and run again.\n",
    .examples = "  $ ulpsync recover current\n"
                "  $ ulpsync recover model.safetensors --json | jq .recovered\n",
    .options = options,
    .run = run,
};
