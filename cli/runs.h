// SPDX-License-Identifier: Apache-2.0
/* What the verbs on runs share. */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include "cli/options.h"
#include "cli/output.h"
#include "cli/stores.h"

#define RUN_OPTIONS                                                                                \
    {"store", 0, "URL", "Where the run is kept: " STORE_URL_HELP},                                 \
        {"run", 'r', "NAME", "The run's name in the store."}, STORE_OPTIONS
#define RUN_OPTION_SIGN                                                                            \
    { "sign", 0, "KEYFILE", "The private key that signs the run's log, made by 'ulpsync keygen'." }
#define RUN_OPTION_TRUST                                                                           \
    {                                                                                              \
        "trust", 0, "FILE",                                                                        \
            "Public keys, one of which, or an heir, must have signed the log. Without it a run "   \
            "stays with the key that signed it when it was first seen."                            \
    }

/* For verbs that read a run. */
#define RUN_OPTIONS_READING                                                                        \
    RUN_OPTION_TRUST,                                                                              \
        {"max-age", 0, "SECONDS",                                                                  \
         "Refuse a newest record that is older (exit code 80): somebody may hide newer ones."},    \
        {"base", 0, "MODEL",                                                                       \
         "A model to start from instead of fetching one: what the run began with, or another "     \
         "state that it keeps whole."},                                                            \
        {"cache", 0, "DIR",                                                                        \
         "Keep what is fetched in DIR, which several followers of one machine can share."},        \
    {                                                                                              \
        "cache-bytes", 0, "SIZE", "The most that the cache may hold; 16GiB unless given."          \
    }
#define RUN_OPTIONS_VERSION                                                                        \
    {"step", 's', "N", "The newest version with this step, instead of the newest of all."}, {      \
        "version", 0, "N", "This version, instead of the newest."                                  \
    }

/* A store, the name of a run in it, and what else the options say. Zeroed means none. */
struct run_place {
    struct ulp_store *store;
    const char *run;
    struct ulp_pool *pool; /* each only of verbs that have the option */
    struct ulp_key *sign;
    struct ulp_public_key trusted[ULP_TRUSTED_KEYS_MAX];
    size_t trusted_count;
};

/* A private key; see secrets_keep(). */
enum ulp_status run_key_load(const char *path, struct ulp_key **ret_key);

/* `ret_place` is only written on success. */
enum ulp_status run_place_open(const struct cli_args *args, struct run_place *ret_place);
void run_place_close(struct run_place *place);

/* What the verb's options say; points into `place`. */
enum ulp_status run_options(const struct cli_args *args, const struct run_place *place,
                            struct ulp_run_options *ret_options);

/* --step and --version. */
enum ulp_status run_options_version(const struct cli_args *args, const struct run_place *place,
                                    struct ulp_run_options *options);

/* A record of a version that the run had before its newest one. */
enum ulp_status run_record_of_version(const struct run_place *place,
                                      const struct ulp_run_record *head, uint64_t version,
                                      struct ulp_run_record *ret_record);

/* --poll, and a wait that is up to a fifth shorter or longer, so that many do not come at once. */
#define RUN_OPTION_POLL(unless_given)                                                              \
    { "poll", 0, "MS", "Milliseconds between two looks; " unless_given " unless given." }
enum ulp_status run_option_poll(const struct cli_args *args, uint64_t *poll_ms);
void run_wait(uint64_t poll_ms);

/* For verbs that stay: what may be better next time, such as a run that is not there yet or has
 * stopped for a while, a store that hiccups, an object that has not arrived, a disk that is full.
 * Everything else needs somebody to look at it. */
bool run_may_pass(enum ulp_status status);

/* "ulpsync: still following: ..." with the last error: once, not at every look. `last` is what was
 * complained of, 0 at first. A run that is not there yet is just waited for. */
void run_complain(enum ulp_status *last, enum ulp_status status, const char *doing);

/* Adds what a call fetched, stored and took to `total`; all else becomes the call's. */
void run_report_add(struct ulp_run_report *total, const struct ulp_run_report *call);

#define RUN_PHASES 10u
extern const char *const run_phase_names[RUN_PHASES];
uint64_t run_phase_ns(const struct ulp_run_phases *phases, unsigned index);

/* The members of an open object. */
void run_record_json(struct json_out *out, const struct ulp_run_record *record);
void run_fetched_json(struct json_out *out, const struct ulp_run_report *report);
void run_stored_json(struct json_out *out, const struct ulp_run_report *report);
void run_phases_json(struct json_out *out, const struct ulp_run_phases *phases);

/* "version 7, step 70: fetched 1.20 MiB in 3 patches and 1 anchor" */
void run_fetched_text(const struct ulp_run_record *record, const struct ulp_run_report *report);

#endif
