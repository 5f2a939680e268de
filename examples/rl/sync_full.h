// SPDX-License-Identifier: Apache-2.0
/* All weights after each step: RUN-full/VERSION holds the time in milliseconds (8 bytes, little-endian),
 * the root, and the bits of every weight. */
#ifndef RL_SYNC_FULL_H
#define RL_SYNC_FULL_H

#include "state.h"

enum ulp_status full_refuse_old_run(struct ulp_store *store, const char *run);
enum ulp_status full_put(struct ulp_store *store, const char *run, uint64_t version,
                         const struct state *state, uint64_t *ret_bytes);

/* ULP_E_NOT_FOUND; ULP_E_WRONG_RESULT if what came has another root. Adds to `bytes`. */
enum ulp_status full_get(struct ulp_store *store, const char *run, uint64_t version,
                         const struct state *state, uint64_t *bytes, uint64_t *ret_time_ms);

#endif
