// SPDX-License-Identifier: Apache-2.0
/* Reading the command line of a verb. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli/cli.h"

#define CLI_OPTIONS_MAX 32u
#define CLI_OPERANDS_MAX 4096u /* as many patches as can be squashed */
#define CLI_GIVEN_MAX 64u

struct cli_args {
    const struct cli_verb *verb;
    const char *values[CLI_OPTIONS_MAX]; /* as in the verb's table; a switch that is set has "" */
    const char *operands[CLI_OPERANDS_MAX];
    unsigned operand_count;
    /* every option in the order in which they were given, for those that may come again */
    struct {
        const struct cli_option *option;
        const char *value;
    } given[CLI_GIVEN_MAX];
    unsigned given_count;
};

/* ULP_E_USAGE with a message when something is unknown, missing or too much. "--help" anywhere
 * makes operands optional. */
enum ulp_status options_parse(const struct cli_verb *verb, int count, char **words,
                              struct cli_args *ret_args);

/* NULL when the option was not given. */
const char *option_text(const struct cli_args *args, const char *name);
bool option_given(const struct cli_args *args, const char *name);

/* The values of an option that may be given again, one after the other; NULL behind the last.
 * *cursor is 0 at first. */
const char *option_next(const struct cli_args *args, const char *name, unsigned *cursor);

/* Whole numbers with an optional K, M, G, B or T (powers of a thousand): "64M", "2B", "8.03B".
 * *value is left alone when the option was not given. */
enum ulp_status option_count(const struct cli_args *args, const char *name, uint64_t min,
                             uint64_t max, uint64_t *value);

/* Bytes: "256MiB", "1.5GiB", "2g", "100MB", "4096". K, M, G and T are powers of 1024, with "B"
 * behind them of a thousand, as everywhere. */
enum ulp_status option_size(const struct cli_args *args, const char *name, uint64_t min,
                            uint64_t max, uint64_t *value);

/* A positive decimal number such as 1e-6. */
enum ulp_status option_real(const struct cli_args *args, const char *name, double min, double max,
                            double *value);

/* One of `choices` (ends with NULL); *index is left alone when the option was not given. */
enum ulp_status option_choice(const struct cli_args *args, const char *name,
                              const char *const *choices, unsigned *index);

/* A pool as --threads asks for it. */
enum ulp_status option_pool(const struct cli_args *args, struct ulp_pool **ret_pool);

#endif
