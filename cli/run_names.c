// SPDX-License-Identifier: Apache-2.0
#include "cli/run_names.h"

#include <stdio.h>
#include <string.h>

static int keep_first(void *user, const char *key, uint64_t bytes) {
    (void)bytes;
    snprintf(user, ULP_KEY_BYTES_MAX + 1, "%s", key);
    return 1;
}

/* The first key behind `after`; "" if there is none. */
static enum ulp_status first_key(struct ulp_store *store, const char *prefix, const char *after,
                                 char ret_key[ULP_KEY_BYTES_MAX + 1]) {
    enum ulp_status status;

    ret_key[0] = 0;
    status = ulp_store_list(store, prefix, after, keep_first, ret_key);
    return status == ULP_E_CANCELLED && ret_key[0] ? ULP_OK : status;
}

/* From one name to the next, without listing what is below. */
enum ulp_status run_names(struct ulp_store *store, run_names_heard heard, void *user) {
    char key[ULP_KEY_BYTES_MAX + 1], inside[ULP_KEY_BYTES_MAX + 1];
    char log[ULP_KEY_BYTES_MAX + 8], after[ULP_KEY_BYTES_MAX + 8] = "";
    enum ulp_status status = first_key(store, "", after, key);

    while (!status && key[0]) {
        char *slash = strchr(key, '/');

        snprintf(after, sizeof after, "%s", key);
        if (slash) {
            *slash = 0;
            snprintf(after, sizeof after, "%s0", key); /* '0' comes next after '/' */
            snprintf(log, sizeof log, "%s/log/", key);
            status = first_key(store, log, "", inside);
            if (!status && inside[0])
                status = heard(user, key);
        }
        if (!status)
            status = first_key(store, "", after, key);
    }
    return status;
}
