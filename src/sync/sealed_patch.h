// SPDX-License-Identifier: Apache-2.0
/*
 * A patch of which somebody else's word is the hash of what opening it reads: header, table and
 * trailer. Who joins many parts need not fetch them whole in order to know that their tables are
 * those that were meant.
 */
#ifndef SYNC_SEALED_PATCH_H
#define SYNC_SEALED_PATCH_H

#include "chain/record.h"
#include "store/store.h"

#include <ulpsync/patch.h>

/* The seal of a patch that is in memory. */
enum ulp_status patch_seal(const void *data, size_t bytes, struct hash *ret_seal);

/* A patch in the store, for its table alone: chunks cannot be read from it. ULP_E_PART if it has
 * another seal or length, ULP_E_PART_MISSING. *ret_bytes were read. */
enum ulp_status patch_open_sealed(struct ulp_store *store, const char *run,
                                  const struct stored_patch *stored, const struct hash *seal,
                                  struct ulp_patch **ret_patch, uint64_t *ret_bytes);

#endif
