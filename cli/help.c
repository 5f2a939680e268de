// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

const char help_about[] =
    "ulpsync sends new model weights to every worker by sending only the bits that\n"
    "moved. Models are safetensors files or directories of them.\n";

const char help_exit_codes[] =
    "0 is success, 2 a mistake on the command line. Every other failure has its own\n"
    "code, the number of its ULP_E_... status: 20 not found, 23 disk full, 30 a file\n"
    "cut short, 56 a patch for other weights, and so on. 'ulpsync help codes' lists\n"
    "them all.\n";

#define OPTION_COLUMN 22

static int print_option_names(const struct cli_option *option) {
    int width = 0;

    if (option->letter)
        width += printf("-%c, ", option->letter);
    else
        width += printf("    ");
    width += printf("--%s", option->name);
    if (option->value)
        width += printf(" %s", option->value);
    return width;
}

/* Wraps at 80 columns, continuing under the first line. */
static void print_wrapped(const char *text, int indent) {
    int column = indent;

    while (*text) {
        int length = (int)strcspn(text, " ");

        if (column > indent && column + 1 + length > 80) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_options(const struct cli_verb *verb) {
    puts("Options:");
    for (const struct cli_option *o = verb->options; o->name; o++) {
        int width;

        printf("  ");
        width = 2 + print_option_names(o);
        if (width >= OPTION_COLUMN - 1)
            printf("\n%*s", OPTION_COLUMN, "");
        else
            printf("%*s", OPTION_COLUMN - width, "");
        print_wrapped(o->meaning, OPTION_COLUMN);
    }
}

void help_verb(const struct cli_verb *verb) {
    printf("Usage: ulpsync %s %s\n\n", verb->name, verb->operands);
    printf("%s\n", verb->description);
    print_options(verb);
    printf("\nExamples:\n%s", verb->examples);
}

static const char *const group_names[CLI_GROUPS] = {[CLI_RUNS] = "Runs",
                                                    [CLI_PATCHES] = "Patches",
                                                    [CLI_MODELS] = "Models",
                                                    [CLI_TRIALS] = "Trying and measuring"};

const char *help_heading(size_t verb) {
    const bool first = !verb || cli_verbs[verb]->group != cli_verbs[verb - 1]->group;

    return first ? group_names[cli_verbs[verb]->group] : NULL;
}

const char *help_code_name(int code) {
    const char *name = ulp_status_name((enum ulp_status)code);

    return strcmp(name, "ULP_E_UNKNOWN") != 0 ? name : NULL;
}

void help_codes(void) {
    for (int code = 0; code <= HELP_CODE_MAX; code++) {
        if (help_code_name(code))
            printf("%3d  %-20s %s\n", code, help_code_name(code),
                   ulp_status_advice((enum ulp_status)code));
    }
}

void help_program(void) {
    printf("Usage: ulpsync VERB ...\n\n%s", help_about);
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (help_heading(i))
            printf("\n%s:\n", help_heading(i));
        printf("  %-10s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    }
    printf("\n'ulpsync VERB --help' teaches a verb; 'ulpsync --version' names this version.\n");
    printf("\nExit codes:\n%s", help_exit_codes);
}
