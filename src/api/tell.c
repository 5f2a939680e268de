// SPDX-License-Identifier: Apache-2.0
/* Public entry points on tellings. */
#include "sync/listener.h"
#include "sync/teller.h"

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_teller_open(struct ulp_store *store, const char *run, const char *name,
                                struct ulp_teller **ret_teller) {
    return store && run && name && ret_teller ? teller_new(store, run, name, ret_teller)
                                              : missing(__func__);
}

enum ulp_status ulp_teller_resume(struct ulp_teller *teller) {
    return teller ? teller_resume(teller) : missing(__func__);
}

enum ulp_status ulp_teller_tell(struct ulp_teller *teller, const char *line) {
    return teller && line ? teller_tell(teller, line) : missing(__func__);
}

void ulp_teller_close(struct ulp_teller *teller) {
    teller_free(teller);
}

enum ulp_status ulp_listener_open(struct ulp_store *store, const char *run,
                                  struct ulp_listener **ret_listener) {
    return store && run && ret_listener ? listener_new(store, run, ret_listener)
                                        : missing(__func__);
}

enum ulp_status ulp_listener_hear(struct ulp_listener *listener, ulp_told heard, void *user) {
    return listener && heard ? listener_hear(listener, heard, user) : missing(__func__);
}

void ulp_listener_close(struct ulp_listener *listener) {
    listener_free(listener);
}

enum ulp_status ulp_run_told(struct ulp_store *store, const char *run, ulp_told heard, void *user) {
    struct ulp_listener *listener = NULL;
    enum ulp_status status;

    if (!store || !run || !heard)
        return missing(__func__);
    status = listener_new(store, run, &listener);
    if (!status)
        status = listener_hear(listener, heard, user);
    listener_free(listener);
    return status;
}

enum ulp_status ulp_told_values(const char *line, ulp_told_value value, void *user) {
    return line && value ? told_line_values(line, value, user) : missing(__func__);
}
