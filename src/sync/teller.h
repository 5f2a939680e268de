// SPDX-License-Identifier: Apache-2.0
/* Leaving lines in a store: <ulpsync/tell.h>. */
#ifndef SYNC_TELLER_H
#define SYNC_TELLER_H

#include "sync/telling.h"

enum ulp_status teller_new(struct ulp_store *store, const char *run, const char *name,
                           struct ulp_teller **ret_teller);
enum ulp_status teller_resume(struct ulp_teller *teller);
enum ulp_status teller_tell(struct ulp_teller *teller, const char *line);
void teller_free(struct ulp_teller *teller);

#endif
