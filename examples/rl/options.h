// SPDX-License-Identifier: Apache-2.0
/* `--name value` on the command line. */
#ifndef RL_OPTIONS_H
#define RL_OPTIONS_H

#include <stdint.h>

struct option {
    const char *name; /* without the dashes; NULL ends the list */
    const char **text;
    uint64_t *count;
    double *number;
    const char *help;
};

/* 0, or -1 when it has printed what is wrong, or the help that was asked for. */
int options_read(int argc, char **argv, const struct option *options);

#endif
