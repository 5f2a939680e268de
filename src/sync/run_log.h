// SPDX-License-Identifier: Apache-2.0
/* Reading and extending the log of a run in a store. */
#ifndef SYNC_RUN_LOG_H
#define SYNC_RUN_LOG_H

#include "base/arena.h"
#include "chain/record.h"
#include "chain/trust.h"
#include "store/store.h"

/* A record that was read, with its own hash. Zeroed means none. */
struct log_entry {
    struct arena arena;
    struct record record;
    struct hash hash;
    const uint8_t *bytes; /* as they were read */
    size_t byte_count;
};

void log_entry_release(struct log_entry *entry);

/* From bytes that were kept. */
enum ulp_status log_entry_parse(const uint8_t *bytes, size_t count, struct log_entry *ret_entry);

/* ULP_E_NAME unless a run may be called that. */
enum ulp_status run_name_check(const char *run);

/* ULP_E_NOT_FOUND if there is no such record. Its signature was not looked at. */
enum ulp_status log_read(struct ulp_store *store, const char *run, uint64_t sequence,
                         struct log_entry *ret_entry);

/* How a log is looked at. */
struct log_view {
    struct ulp_store *store;
    const char *run;
    struct trust trust;
    uint64_t max_age_ms;           /* 0: any */
    bool near;                     /* nothing was behind it a moment ago: the next one will do */
    uint64_t reads, bytes;         /* records that were read: counted here */
    struct log_entry *ret_culprit; /* NULL, or where a record that forks the log is put */
};

/*
 * Brings *entry, the newest record that was seen, or none, to the newest one there is. That must
 * descend from the one that was seen, record by record. With `anew` the one that was seen is looked
 * for too, and not taken for granted.
 *
 * ULP_E_NO_RUN if there is no record at all; ULP_E_ROLLBACK if there are fewer than were seen;
 * ULP_E_FORK if another one is in the place of the one that was seen; ULP_E_OTHER_RUN; ULP_E_CHAIN
 * if records do not follow each other or one is missing; ULP_E_JUMP; ULP_E_UNSIGNED;
 * ULP_E_SIGNATURE; ULP_E_FROZEN if the newest is too old.
 */
enum ulp_status log_advance(struct log_view *view, bool anew, struct log_entry *entry);

/* The same by one record, if there is one: *entry is unchanged if not. */
enum ulp_status log_advance_one(struct log_view *view, struct log_entry *entry);

/* Reads record `sequence`, from which `head`, that was accepted, descends: each record on the way back
 * is named by one that was verified. ULP_E_CHAIN. */
enum ulp_status log_ancestor(struct log_view *view, const struct log_entry *head, uint64_t sequence,
                             struct log_entry *ret_entry);

/* Raises *highest to the highest sequence behind `after` that a listing shows; a hint. */
enum ulp_status log_listed(struct ulp_store *store, const char *run, uint64_t after,
                           uint64_t *highest);

/* The sequence of the newest record. ULP_E_NO_RUN if there is none. */
enum ulp_status log_last(struct ulp_store *store, const char *run, uint64_t *ret_sequence);

/* Adds the record. ULP_E_FENCED if somebody else has added another there; if the same bytes are
 * there, it was ours. A store that hiccups is asked again. */
enum ulp_status log_append(struct ulp_store *store, const char *run, const struct record *record,
                           const struct ulp_key *key, struct log_entry *ret_entry);

#endif
