// SPDX-License-Identifier: Apache-2.0
/*
 * The frame that every verb stands in. A verb is one file with one struct cli_verb: the text from
 * which --help and the manual page are made, its options, and a function.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <ulpsync/ulpsync.h>

struct cli_option {
    const char *name;    /* without dashes */
    char letter;         /* short form, or 0 */
    const char *value;   /* what the value is called, or NULL for a switch */
    const char *meaning; /* one or two sentences */
};

struct cli_args;

/* What a verb is about; the list of verbs has a heading for each. */
enum cli_group { CLI_RUNS, CLI_PATCHES, CLI_MODELS, CLI_TRIALS, CLI_GROUPS };

struct cli_verb {
    const char *name;
    enum cli_group group;
    const char *summary;  /* one line, lower case, no period */
    const char *operands; /* "MODEL" */
    unsigned operands_min, operands_max;
    const char *description;          /* paragraphs that teach; lines of up to 78 characters */
    const char *examples;             /* lines of "$ command" and comments */
    const struct cli_option *options; /* ends with a NULL name */
    enum ulp_status (*run)(const struct cli_args *args);
};

/* Every verb has these; put them at the end of its table. */
#define CLI_OPTION_JSON                                                                            \
    { "json", 0, NULL, "Print one JSON object instead of text." }
#define CLI_OPTION_JSON_LINES                                                                      \
    { "json", 0, NULL, "Print JSON instead of text, one object on each line." }
#define CLI_OPTION_HELP                                                                            \
    { "help", 'h', NULL, "Show this text." }
#define CLI_OPTION_THREADS                                                                         \
    { "threads", 't', "N", "Use N threads; without it, one per CPU. Results do not depend on it." }
#define CLI_OPTION_VERBOSE                                                                         \
    { "verbose", 'v', NULL, "Say on standard error what is being done." }
#define CLI_OPTIONS_END                                                                            \
    { NULL, 0, NULL, NULL }

extern const struct cli_verb verb_publish, verb_follow, verb_pull, verb_log, verb_top, verb_report,
    verb_fsck, verb_tend, verb_mirror, verb_store, verb_gc, verb_plan, verb_serve, verb_keygen,
    verb_rekey;
extern const struct cli_verb verb_apply, verb_bench, verb_diff, verb_digest, verb_info,
    verb_inspect, verb_recover, verb_reshard, verb_squash, verb_study, verb_synth, verb_verify;

/* All verbs, in the order in which they are listed, groups together; ends with NULL. */
extern const struct cli_verb *const cli_verbs[];

#endif
