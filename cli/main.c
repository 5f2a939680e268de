// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>

const struct cli_verb *const cli_verbs[] = {
    &verb_publish, &verb_follow, &verb_pull,    &verb_log,    &verb_top,    &verb_report,
    &verb_serve,   &verb_fsck,   &verb_tend,    &verb_mirror, &verb_store,  &verb_gc,
    &verb_plan,    &verb_keygen, &verb_rekey,   &verb_diff,   &verb_apply,  &verb_recover,
    &verb_squash,  &verb_verify, &verb_inspect, &verb_info,   &verb_digest, &verb_reshard,
    &verb_study,   &verb_synth,  &verb_bench,   NULL};

static const struct cli_verb *find_verb(const char *name) {
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (!strcmp(cli_verbs[i]->name, name))
            return cli_verbs[i];
    }
    return NULL;
}

static void print_failure(enum ulp_status status, bool json) {
    const char *advice = ulp_status_advice(status);

    if (json) {
        struct json_out out = {0};

        json_out_begin(&out, NULL, '{');
        json_out_begin(&out, "error", '{');
        json_out_u64(&out, "code", status);
        json_out_text(&out, "name", ulp_status_name(status));
        json_out_text(&out, "message", ulp_last_error());
        json_out_text(&out, "advice", advice);
        json_out_end(&out, '}');
        json_out_end(&out, '}');
        return;
    }
    fputs("ulpsync: ", stderr);
    print_safely(stderr, ulp_last_error());
    fputc('\n', stderr);
    if (status != ULP_E_USAGE)
        fprintf(stderr, "  %s [%s, exit code %d]\n", advice, ulp_status_name(status), (int)status);
}

static enum ulp_status unknown_verb(const char *name) {
    return ulp_fail(ULP_E_USAGE, "there is no verb '%s'; 'ulpsync --help' lists what there is",
                    name);
}

/* help, help VERB, help codes, and the form that installs manual pages: help --man [VERB] */
static enum ulp_status run_help(int count, char **words) {
    bool manual = count > 0 && !strcmp(words[0], "--man");
    const char *topic = count > manual ? words[manual] : NULL;
    const struct cli_verb *verb = topic ? find_verb(topic) : NULL;

    if (topic && !strcmp(topic, "codes")) {
        help_codes();
        return ULP_OK;
    }
    if (topic && !verb)
        return unknown_verb(topic);
    if (manual)
        manual_page(verb);
    else if (verb)
        help_verb(verb);
    else
        help_program();
    return ULP_OK;
}

static void print_log(void *user, enum ulp_log_level level, const char *message) {
    static const char *const names[] = {"", "error", "warning", "info", "debug"};

    (void)user;
    fprintf(stderr, "ulpsync: %s: ", names[level]);
    print_safely(stderr, message);
    fputc('\n', stderr);
}

static enum ulp_status run_verb(const struct cli_verb *verb, int count, char **words, bool *json) {
    struct cli_args args;
    enum ulp_status status = options_parse(verb, count, words, &args);

    /* Asked of the words, since a failure to parse is reported that way too. */
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        *json |= !strcmp(words[i], "--json");
    if (status)
        return status;
    if (option_given(&args, "help")) {
        help_verb(verb);
        return ULP_OK;
    }
    if (option_given(&args, "verbose"))
        ulp_log_set(print_log, NULL, ULP_LOG_DEBUG);
    return verb->run(&args);
}

/* Output that cannot be written is a failure like any other: think of a full disk. */
static enum ulp_status finish_output(enum ulp_status status) {
    if ((fflush(stdout) || ferror(stdout)) && !status)
        return ulp_fail(ULP_E_IO, "cannot write to standard output");
    return status;
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "--help";
    const struct cli_verb *verb = find_verb(word);
    enum ulp_status status;
    bool json = false;

    terminal_prepare();
    if (verb)
        status = run_verb(verb, argc - 2, argv + 2, &json);
    else if (!strcmp(word, "--version") || !strcmp(word, "-V") || !strcmp(word, "version"))
        status = printf("ulpsync %s (%s)\n", ulp_version(), ulp_cpu()) < 0 ? ULP_E_IO : ULP_OK;
    else if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        status = run_help(0, NULL);
    else if (!strcmp(word, "help"))
        status = run_help(argc - 2, argv + 2);
    else
        status = unknown_verb(word);
    status = finish_output(status);
    if (status)
        print_failure(status, json);
    fflush(stdout);
    terminal_finish();
    return (int)status;
}
