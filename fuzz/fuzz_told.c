// SPDX-License-Identifier: Apache-2.0
/* An object of tellings with any bytes. Each line that is heard is within its limits, and its values
 * can be walked through; who listens again hears nothing. */
#include "base/limits.h"
#include "fuzz/target.h"

#include <string.h>
#include <ulpsync/tell.h>

static void value(void *user, const char *path, const char *text, int is_text) {
    (void)user;
    MUST(strlen(path) <= 200);
    MUST(is_text || *text);
}

static void hear(void *user, const char *name, const char *line, size_t bytes) {
    MUST(!strcmp(name, "w"));
    MUST(strlen(line) == bytes && bytes <= LIMIT_TOLD_LINE_BYTES);
    MUST(!ulp_told_values(line, value, NULL));
    ++*(unsigned *)user;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ulp_store *store = NULL;
    struct ulp_listener *listener = NULL;
    struct ulp_teller *teller = NULL;
    unsigned count = 0, again = 0;

    MUST(!ulp_store_memory(&store));
    MUST(!ulp_store_put(store, "r/told/w/00000001", data, size));
    MUST(!ulp_listener_open(store, "r", &listener));
    MUST(!ulp_listener_hear(listener, hear, &count));
    MUST(count <= LIMIT_TOLD_LINES);
    MUST(!ulp_listener_hear(listener, hear, &again));
    MUST(!again);
    /* whoever goes on where somebody else was does no harm either */
    MUST(!ulp_teller_open(store, "r", "w", &teller));
    MUST(!ulp_teller_resume(teller) && !ulp_teller_tell(teller, "{}"));
    MUST(!ulp_listener_hear(listener, hear, &again));
    MUST(again >= 1);
    ulp_teller_close(teller);
    ulp_listener_close(listener);
    ulp_store_free(store);
    return 0;
}
