// SPDX-License-Identifier: Apache-2.0
/* --tell NAME: verbs that change something leave the event in the store, for whoever looks on. */
#ifndef CLI_TELLING_H
#define CLI_TELLING_H

#include "cli/runs.h"

#define TELL_OPTION(what)                                                                          \
    {                                                                                              \
        "tell", 0, "NAME",                                                                         \
            "Leave " what " in the store, under this name, for 'top' and 'report' to show."        \
    }

/* Zeroed means that nothing is told. */
struct telling {
    struct ulp_store *store; /* of its own, which does not wait for long */
    struct ulp_teller *teller;
    bool one_line; /* is all that this process tells: it goes on with what the last one left */
    bool complained;
    uint64_t rest_until_ns; /* a store that fails is not asked again at once */
    FILE *file;             /* the line that is being written, */
    char *text;             /* and what it is then */
    size_t bytes;
};

/* As --tell says; `stays`: there will be many lines. ULP_E_NAME for what is no name. */
enum ulp_status telling_open(const struct cli_args *args, const struct run_place *place, bool stays,
                             struct telling *telling);
void telling_close(struct telling *telling);

/* Begins an object with "event" and "told_ms", which telling_end() tells; false where nobody is to
 * be told. */
bool telling_begin(struct telling *telling, const char *event, struct json_out *ret_out);

/* A failure is said once, and then nothing is told for ten times as long as it took: telling must
 * not be in the way of what it tells of. The message of an earlier failure is lost. */
void telling_end(struct telling *telling, struct json_out *out);

#endif
