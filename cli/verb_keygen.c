// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"
#include "cli/output.h"
#include "cli/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum ulp_status public_path(const char *path, char **ret_path) {
    size_t room = strlen(path) + sizeof ".pub";
    char *name = malloc(room);

    if (!name)
        return ulp_fail(ULP_E_NOMEM, "no memory for a path");
    snprintf(name, room, "%s.pub", path);
    *ret_path = name;
    return ULP_OK;
}

/* The public file first: there is never a private key whose public one is lost. */
static enum ulp_status save_both(const struct ulp_key *key, const struct ulp_public_key *public_key,
                                 const char *path, const char *comment) {
    char *beside = NULL;
    enum ulp_status status = public_path(path, &beside);

    if (!status)
        status = ulp_public_key_save(public_key, beside, comment);
    if (!status) {
        status = ulp_key_save(key, path, comment);
        if (status)
            unlink(beside);
    }
    free(beside);
    return status;
}

static void print_key(const struct cli_args *args, const struct ulp_public_key *public_key) {
    const char *comment = option_text(args, "comment");
    char hex[ULP_PUBLIC_KEY_HEX_BYTES];
    struct json_out out = {0};

    ulp_public_key_hex(public_key, hex);
    if (option_given(args, "json")) {
        json_out_begin(&out, NULL, '{');
        json_out_text(&out, "path", args->operands[0]);
        json_out_text(&out, "public_key", hex);
        json_out_text(&out, "comment", comment ? comment : "");
        json_out_end(&out, '}');
        return;
    }
    printf("ulpsync-ed25519 %s", hex);
    if (comment && *comment) {
        putchar(' ');
        print_safely(stdout, comment);
    }
    putchar('\n');
}

static enum ulp_status run(const struct cli_args *args) {
    struct ulp_public_key public_key = {0};
    struct ulp_key *key = NULL;
    enum ulp_status status;

    secrets_keep();
    status = ulp_key_generate(&key);
    if (!status)
        status = ulp_key_public(key, &public_key);
    if (!status)
        status = save_both(key, &public_key, args->operands[0], option_text(args, "comment"));
    if (!status)
        print_key(args, &public_key);
    ulp_key_free(key);
    return status;
}

static const struct cli_option options[] = {
    {"comment", 0, "TEXT",
     "One line to tell the key from others, such as a name; it stands in both files."},
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_keygen = {
    .name = "keygen",
    .group = CLI_RUNS,
    .summary = "make a key that signs a run's log",
    .operands = "PATH [--comment TEXT] [--json]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Makes a pair of keys (Ed25519): PATH holds the private one, which only its owner\n"
        "can read and which stays with the publisher; PATH.pub holds the public one, for\n"
        "everybody. The public key is also printed, as it stands in the file. If one of\n"
        "the files exists already, nothing is written: a key is never replaced.\n\n"
        "A file of trusted keys is such lines below each other: join the .pub files of\n"
        "all who may publish. Lines that begin with # are comments.\n",
    .examples = "  $ ulpsync keygen trainer.key --comment \"trainer, 2026\"\n"
                "  $ cat trainer.key.pub spare.key.pub > trusted\n",
    .options = options,
    .run = run,
};
