// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <ctype.h>
#include <stdio.h>

static const char environment[] =
    "Stores in S3 are found and opened by the usual AWS_... variables: AWS_ACCESS_KEY_ID,\n"
    "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_S3,\n"
    "AWS_CA_BUNDLE and others, which docs/stores.md lists.\n\n"
    "ULPSYNC_S3_ANONYMOUS=1 sends requests without a signature; ULPSYNC_STALL_SECONDS and\n"
    "ULPSYNC_OPERATION_SECONDS say how long a server may be silent, and how long a request is\n"
    "tried again. TMPDIR is where what does not fit into memory goes.\n";

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

/* Words are not torn: what is to be typed must be found by who searches for it. */
static void print_roff_title(const char *verb) {
    fputs(verb ? ".TH ULPSYNC\\-" : ".TH ULPSYNC", stdout);
    for (; verb && *verb; verb++)
        putchar(toupper((unsigned char)*verb));
    printf(" 1 \"\" \"ulpsync %s\" \"ulpsync\"\n.nh\n.ad l\n", ulp_version());
}

static void print_roff_verbs(void) {
    puts(".SH VERBS");
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (help_heading(i))
            printf(".SS %s\n", help_heading(i));
        printf(".TP\n.BR ulpsync\\-%s (1)\n", cli_verbs[i]->name);
        print_roff(cli_verbs[i]->summary);
        putchar('\n');
    }
}

static void print_roff_codes(void) {
    for (int code = 0; code <= HELP_CODE_MAX; code++) {
        if (!help_code_name(code))
            continue;
        printf(".TP\n.B %d %s\n", code, help_code_name(code));
        print_roff(ulp_status_advice((enum ulp_status)code));
        putchar('\n');
    }
}

static void manual_page_of_program(void) {
    print_roff_title(NULL);
    fputs(".SH NAME\nulpsync \\- ", stdout);
    print_roff("send new model weights by sending only the bits that moved");
    puts("\n.SH SYNOPSIS\n.B ulpsync\n.I VERB\n\\&...\n.br\n.B ulpsync help\n[\\fIVERB\\fR | "
         "\\fBcodes\\fR]");
    print_roff_section("DESCRIPTION", help_about, false);
    print_roff_verbs();
    print_roff_section("ENVIRONMENT", environment, false);
    print_roff_section("EXIT STATUS", help_exit_codes, false);
    print_roff_codes();
}

static void print_roff_option(const struct cli_option *option) {
    fputs(".TP\n.BR ", stdout);
    if (option->letter)
        printf("\\-%c \", \" ", option->letter);
    printf("\\-\\-");
    print_roff(option->name);
    if (option->value)
        printf(" \" \\fI%s\\fR\"", option->value);
    putchar('\n');
    print_roff(option->meaning);
    putchar('\n');
}

/* The program, and the verbs of the same group. */
static void print_roff_see_also(const struct cli_verb *verb) {
    fputs(".SH SEE ALSO\n.BR ulpsync (1)", stdout);
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (cli_verbs[i]->group == verb->group && cli_verbs[i] != verb)
            printf(",\n.BR ulpsync\\-%s (1)", cli_verbs[i]->name);
    }
    putchar('\n');
}

void manual_page(const struct cli_verb *verb) {
    if (!verb) {
        manual_page_of_program();
        return;
    }
    print_roff_title(verb->name);
    printf(".SH NAME\nulpsync\\-%s \\- ", verb->name);
    print_roff(verb->summary);
    printf("\n.SH SYNOPSIS\n.B ulpsync %s\n", verb->name);
    print_roff(verb->operands);
    putchar('\n');
    print_roff_section("DESCRIPTION", verb->description, false);
    puts(".SH OPTIONS");
    for (const struct cli_option *o = verb->options; o->name; o++)
        print_roff_option(o);
    print_roff_section("EXAMPLES", verb->examples, true);
    print_roff_section("EXIT STATUS", help_exit_codes, false);
    print_roff_see_also(verb);
}
