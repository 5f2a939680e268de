// SPDX-License-Identifier: Apache-2.0
/*
 * Runs: a trainer publishes each step to a store; any number of workers follow, each at its own
 * pace.
 *
 *     ulp_publish(store, "run", "state", "checkpoint", step, NULL, NULL);   the trainer, after each step
 *     ulp_follow(store, "run", "replica", NULL, NULL);                      a worker, now and then
 *
 * Both keep a directory with a complete model in `DIRECTORY/current`, a link that is switched in
 * one go, so whoever loads it sees one version or the next. A process may be killed at any moment;
 * the next call goes on from there. docs/format/chain.md describes what is in the store.
 */
#ifndef ULPSYNC_RUN_H
#define ULPSYNC_RUN_H

#include <stdint.h>
#include <ulpsync/patch.h>
#include <ulpsync/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a record of a run's log says. */
struct ulp_run_record {
    uint64_t sequence; /* from 1 */
    uint64_t version;  /* of the run's states, from 0 */
    uint64_t epoch;    /* one more whenever the step goes back */
    uint64_t step;     /* the trainer's own number */
    uint64_t time_ms;  /* since 1970, as the publisher's clock had it */
    struct ulp_root root;
    uint64_t changed;      /* elements, since the version before; 0 for the first */
    uint64_t patch_bytes;  /* of the patch from there; 0 when the record has none */
    uint64_t anchor_bytes; /* of an anchor of this version; 0 when it has none */
    int history;
};

/* The newest record, or number `sequence`. ULP_E_NO_RUN, ULP_E_NOT_FOUND. */
ULP_API enum ulp_status ulp_run_head(struct ulp_store *store, const char *run,
                                     struct ulp_run_record *ret_record);
ULP_API enum ulp_status ulp_run_read(struct ulp_store *store, const char *run, uint64_t sequence,
                                     struct ulp_run_record *ret_record);

/* All zero is fine, and so is NULL. */
struct ulp_run_options {
    struct ulp_pool *pool;
    const struct ulp_progress *progress;

    /* Every so many versions (0: 8) a patch is made without history, so that who comes late can go
     * on from there. */
    unsigned history_reset;

    /* At least so many versions (0: 64) lie between two anchors. */
    unsigned anchor_every;

    /* For ulp_follow(): go no further than `version`, which must be among those that the newest
     * record still leads to (ULP_E_UNREACHABLE), and no older than what the directory holds
     * (ULP_E_USAGE). */
    int stop_at_version;
    uint64_t version;
};

struct ulp_run_report {
    struct ulp_run_record head;
    uint64_t version;       /* that the directory holds */
    uint64_t fetched_bytes; /* by this call */
    unsigned fetched_patches, fetched_anchors;
    uint64_t stored_bytes; /* by this call */
    int fresh;             /* something new was published or fetched */
};

/*
 * Publishes the model at `path` as the run's next version: compares it with the last one, which
 * `directory` holds or is brought to first, stores the patch, checks it, and only then adds the
 * record that makes it known. The first version of a run, and some later ones, are stored whole:
 * the model's files with what lies beside them.
 *
 * Of several publishers of one run one is first; the others fail with ULP_E_FENCED and have changed
 * nothing. The directory belongs to this run alone: ULP_E_BUSY while another process uses it.
 */
ULP_API enum ulp_status ulp_publish(struct ulp_store *store, const char *run, const char *directory,
                                    const char *path, uint64_t step,
                                    const struct ulp_run_options *options,
                                    struct ulp_run_report *ret_report);

/*
 * Brings `directory` to the run's newest version, by the cheapest way from what it holds. Every
 * byte that is fetched is verified before it is used, and every version's root before `current`
 * leads to it. A directory that holds nothing yet is made and starts from an anchor.
 */
ULP_API enum ulp_status ulp_follow(struct ulp_store *store, const char *run, const char *directory,
                                   const struct ulp_run_options *options,
                                   struct ulp_run_report *ret_report);

/* ---- is it whole? ------------------------------------------------------------------------ */

/* Hears of an object that is missing or damaged. */
typedef void (*ulp_run_damage)(void *user, const char *key, enum ulp_status status,
                               const char *message);

struct ulp_run_health {
    uint64_t records, parts, bytes; /* that were looked at */
    uint64_t damaged;
    int reachable; /* who starts with nothing can get to the newest version */
};

/* Reads the whole log and everything that its newest record names. `damage` may be NULL. */
ULP_API enum ulp_status ulp_run_check(struct ulp_store *store, const char *run,
                                      ulp_run_damage damage, void *user,
                                      struct ulp_run_health *ret_health);

#ifdef __cplusplus
}
#endif

#endif
