// SPDX-License-Identifier: Apache-2.0
/* Reading and extending the log of a run in a store. */
#ifndef SYNC_RUN_LOG_H
#define SYNC_RUN_LOG_H

#include "base/arena.h"
#include "chain/record.h"
#include "store/store.h"

/* A record that was read, with its own hash. Zeroed means none. */
struct log_entry {
    struct arena arena;
    struct record record;
    struct hash hash;
};

void log_entry_release(struct log_entry *entry);

/* ULP_E_NAME unless a run may be called that. */
enum ulp_status run_name_check(const char *run);

/* ULP_E_NOT_FOUND if there is no such record. */
enum ulp_status log_read(struct ulp_store *store, const char *run, uint64_t sequence,
                         struct log_entry *ret_entry);

/*
 * The newest record. `seen` is NULL or what was the newest when it was last looked: the log must
 * not be shorter (ULP_E_ROLLBACK), nor another at that place (ULP_E_CHAIN). ULP_E_NO_RUN if there
 * is no record at all.
 */
struct log_mark {
    uint64_t sequence;
    struct hash hash;
};
enum ulp_status log_head(struct ulp_store *store, const char *run, const struct log_mark *seen,
                         struct log_entry *ret_head);

/* The sequence of the newest record. ULP_E_NO_RUN if there is none. */
enum ulp_status log_last(struct ulp_store *store, const char *run, uint64_t *ret_sequence);

/* Adds a record behind `before` (NULL: the first). ULP_E_FENCED if somebody else has added another
 * there; if the same bytes are there, it was ours. */
enum ulp_status log_append(struct ulp_store *store, const char *run, const struct record *record,
                           struct log_mark *ret_mark);

#endif
