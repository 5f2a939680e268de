// SPDX-License-Identifier: Apache-2.0
#include "cli/run_names.h"

#include <stdbool.h>
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

/* Whether there is a record: usually the first, and only without that one a log is looked through. */
static enum ulp_status has_record(struct ulp_store *store, const char *name, bool *ret_has) {
    char key[ULP_KEY_BYTES_MAX + 32], found[ULP_KEY_BYTES_MAX + 1] = "?";
    uint64_t bytes;
    enum ulp_status status;

    snprintf(key, sizeof key, "%s/log/%020u", name, 1u);
    status = ulp_store_stat(store, key, &bytes);
    if (status) {
        snprintf(key, sizeof key, "%s/log/", name);
        status = first_key(store, key, "", found);
    }
    if (!status)
        *ret_has = found[0];
    return status;
}

/* From one name to the next, without listing what is below. */
enum ulp_status run_names(struct ulp_store *store, run_names_heard heard, void *user) {
    char key[ULP_KEY_BYTES_MAX + 1], after[ULP_KEY_BYTES_MAX + 8] = "";
    enum ulp_status status = first_key(store, "", after, key);

    while (!status && key[0]) {
        char *slash = strchr(key, '/');
        bool has = false;

        snprintf(after, sizeof after, "%s", key);
        if (slash) {
            *slash = 0;
            snprintf(after, sizeof after, "%s0", key); /* '0' comes next after '/' */
            status = has_record(store, key, &has);
            if (!status && has)
                status = heard(user, key);
        }
        if (!status)
            status = first_key(store, "", after, key);
    }
    return status;
}
