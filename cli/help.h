// SPDX-License-Identifier: Apache-2.0
/* Help and manual pages, both from the text that the verbs carry. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

#include <stddef.h>

/* What the program is, and what its exit codes are: paragraphs. */
extern const char help_about[], help_exit_codes[];

/* The greatest code that can end a process that was not killed, and leaves room for a shell's own. */
#define HELP_CODE_MAX 125

/* The heading above cli_verbs[verb] in a list of them; NULL where none stands there. */
const char *help_heading(size_t verb);

/* "ULP_E_LIMIT", or NULL for a number that is no exit code. */
const char *help_code_name(int code);

void help_program(void);
void help_verb(const struct cli_verb *verb);
void help_codes(void);

/* roff for man(1): the page of one verb, or of the program when `verb` is NULL. */
void manual_page(const struct cli_verb *verb);

#endif
