// SPDX-License-Identifier: Apache-2.0
/* Bars made of characters. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stdbool.h>

/*
 * Prints a bar of `width` columns of which `share` (0 to 1) is filled; something that is not
 * nothing shows. On a terminal that takes UTF-8 it is drawn in eighths of a column; elsewhere with
 * '#', so that what goes into a pipe or file is the same everywhere.
 */
void print_bar(double share, unsigned width);

/* Whether the environment says that text is UTF-8. */
bool takes_utf8(void);

#endif
