// SPDX-License-Identifier: Apache-2.0
/* What the verbs on patches are given: models, patches, and history in either form. */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "cli/options.h"

#define CLI_OPTIONS_HISTORY                                                                         \
    {"history", 0, "BEFORE",                                                                        \
     "The checkpoint before the base, or the patch that led from it to the base; the latter needs " \
     "--history-base."},                                                                            \
    {                                                                                               \
        "history-base", 0, "MODEL", "The checkpoint that a patch given as --history starts from."   \
    }

/* Like ulp_model_open() and ulp_patch_open(); when the file is something else, the message says
 * what. */
enum ulp_status input_model(const char *path, struct ulp_model **ret_model);
enum ulp_status input_patch(const char *path, struct ulp_patch **ret_patch);

/* ULP_E_EXISTS, for verbs with --replace that was not given: asked before any work is done. */
enum ulp_status output_is_free(const char *path);

/* For a call that opened `path` as a model by itself: adds what the file is, if that is the
 * reason. */
enum ulp_status input_explain(enum ulp_status status, const char *path, const char *wanted);

/* The state before the base. Zeroed means that none was named. */
struct history {
    struct ulp_model *before;
    struct ulp_patch *patch; /* from `before` to the base, when it was given in that form */
};

enum ulp_status history_open(const struct cli_args *args, struct history *ret_history);
void history_release(struct history *history);

/* Lets the weights remember, if history was given, once it is clear that it leads to them. */
enum ulp_status history_remember(const struct history *history, struct ulp_weights *weights,
                                 struct ulp_pool *pool);

/* For who applies `patch` to files: the same check, against what the patch says of itself. The
 * answer is NULL when the patch needs no history. */
enum ulp_status history_for(const struct history *history, const struct ulp_patch *patch,
                            const struct ulp_model **ret_before);

#endif
