// SPDX-License-Identifier: Apache-2.0
/* Help and manual pages, both from the text that the verbs carry. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

void help_program(void);
void help_verb(const struct cli_verb *verb);

/* roff for man(1): the page of one verb, or of the program when `verb` is NULL. */
void manual_page(const struct cli_verb *verb);

#endif
