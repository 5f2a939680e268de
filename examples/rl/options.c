// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(const char *program, const struct option *options) {
    fprintf(stderr, "usage: %s --NAME VALUE ...\n", program);
    for (; options->name; options++)
        fprintf(stderr, "  --%-16s %s\n", options->name, options->help);
}

static const struct option *find(const struct option *options, const char *word) {
    if (strncmp(word, "--", 2) != 0)
        return NULL;
    while (options->name && strcmp(options->name, word + 2) != 0)
        options++;
    return options->name ? options : NULL;
}

static int set(const struct option *option, const char *value) {
    char *end = NULL;

    errno = 0;
    if (option->text) {
        *option->text = value;
        return 0;
    }
    if (option->count && *value >= '0' && *value <= '9')
        *option->count = strtoull(value, &end, 10);
    else if (option->number)
        *option->number = strtod(value, &end);
    return end && end != value && !*end && !errno ? 0 : -1;
}

int options_read(int argc, char **argv, const struct option *options) {
    for (int i = 1; i < argc; i += 2) {
        const struct option *option = find(options, argv[i]);

        if (!option) {
            print_help(argv[0], options);
            return -1;
        }
        if (i + 1 == argc || set(option, argv[i + 1])) {
            fprintf(stderr, "%s: %s needs %s\n", argv[0], argv[i],
                    option->text ? "a value" : "a number");
            return -1;
        }
    }
    return 0;
}
