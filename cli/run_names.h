// SPDX-License-Identifier: Apache-2.0
/* Which runs a store has. */
#ifndef CLI_RUN_NAMES_H
#define CLI_RUN_NAMES_H

#include <ulpsync/ulpsync.h>

/* Hears of one; a failure ends the search. */
typedef enum ulp_status (*run_names_heard)(void *user, const char *run);

/* All that have any record, in byte order. Needs a store that lists. */
enum ulp_status run_names(struct ulp_store *store, run_names_heard heard, void *user);

#endif
