// SPDX-License-Identifier: Apache-2.0
/* Records as somebody writes them who has the store, and perhaps a key. */
#ifndef TESTS_SYNC_FORGE_H
#define TESTS_SYNC_FORGE_H

#include "sync/run_log.h"
#include "tests/sync/trainer.h"

typedef void (*record_change)(struct record *record);

/* Record `sequence` with something else in it, signed by `key` or by nobody, and the hash that
 * fits. */
void forge(struct ulp_store *store, uint64_t sequence, const struct ulp_key *key,
           record_change change);

/* Adds a record that follows the newest one, and only differs from it by the change. */
void forge_next(struct ulp_store *store, const struct ulp_key *key, record_change change);

/* A change that is none. */
void unchanged(struct record *record);

/* Deletion is announced. */
void announce(struct record *record);

/* The newest record; to be released. */
struct log_entry newest_record(struct ulp_store *store);

/* Removes all parts that the newest record's map does not name. */
void remove_useless_parts(struct ulp_store *store);

#endif
