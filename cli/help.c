// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

static const char about[] =
    "ulpsync sends new model weights to every worker by sending only the bits that\n"
    "moved. Models are safetensors files or directories of them.\n";

static const char exit_codes[] =
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

static bool starts_group(size_t verb) {
    return !verb || cli_verbs[verb]->group != cli_verbs[verb - 1]->group;
}

void help_program(void) {
    printf("Usage: ulpsync VERB ...\n\n%s", about);
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (starts_group(i))
            printf("\n%s:\n", group_names[cli_verbs[i]->group]);
        printf("  %-10s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    }
    printf("\n'ulpsync VERB --help' teaches a verb; 'ulpsync --version' names this version.\n");
    printf("\nExit codes:\n%s", exit_codes);
}

/* One character of text. A dot or quote could be a roff request, a dash could become a hyphen. */
static void print_roff_character(char c) {
    if (c == '.' || c == '\'')
        printf("\\&%c", c);
    else if (c == '-')
        fputs("\\-", stdout);
    else if (c == '\\')
        fputs("\\e", stdout);
    else
        putchar(c);
}

static void print_roff(const char *text) {
    while (*text)
        print_roff_character(*text++);
}

static void print_roff_section(const char *title, const char *text, bool verbatim) {
    printf(".SH %s\n%s", title, verbatim ? ".nf\n" : "");
    for (; *text; text++) {
        if (!verbatim && text[0] == '\n' && text[1] == '\n')
            fputs("\n.PP", stdout); /* empty lines are paragraphs */
        else
            print_roff_character(*text);
    }
    fputs(verbatim ? ".fi\n" : "", stdout);
}

static void manual_page_of_program(void) {
    printf(".TH ULPSYNC 1 \"\" \"ulpsync %s\"\n.SH NAME\nulpsync \\- ", ulp_version());
    print_roff("send new model weights by sending only the bits that moved");
    printf("\n.SH SYNOPSIS\n.B ulpsync\nVERB ...\n");
    print_roff_section("DESCRIPTION", about, false);
    puts(".SH VERBS");
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (starts_group(i))
            printf(".SS %s\n", group_names[cli_verbs[i]->group]);
        printf(".TP\n.BR ulpsync\\-%s (1)\n%s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    }
    print_roff_section("EXIT STATUS", exit_codes, false);
}

void manual_page(const struct cli_verb *verb) {
    if (!verb) {
        manual_page_of_program();
        return;
    }
    printf(".TH ULPSYNC\\-%s 1 \"\" \"ulpsync %s\"\n.SH NAME\n", verb->name, ulp_version());
    printf("ulpsync\\-%s \\- %s\n.SH SYNOPSIS\n.B ulpsync %s\n", verb->name, verb->summary,
           verb->name);
    print_roff(verb->operands);
    putchar('\n');
    print_roff_section("DESCRIPTION", verb->description, false);
    puts(".SH OPTIONS");
    for (const struct cli_option *o = verb->options; o->name; o++) {
        fputs(".TP\n.B ", stdout);
        if (o->letter)
            printf("\\-%c, ", o->letter);
        printf("\\-\\-%s", o->name);
        printf(o->value ? " %s\n" : "\n", o->value);
        print_roff(o->meaning);
        putchar('\n');
    }
    print_roff_section("EXAMPLES", verb->examples, true);
    print_roff_section("EXIT STATUS", exit_codes, false);
    puts(".SH SEE ALSO\n.BR ulpsync (1)");
}
