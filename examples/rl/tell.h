// SPDX-License-Identifier: Apache-2.0
/*
 * What trainer and workers tell of themselves, for `ulpsync top` and `ulpsync report`: the events of
 * docs/runs.md. Nothing depends on it, so nothing here fails.
 */
#ifndef RL_TELL_H
#define RL_TELL_H

#include "sync.h"

struct telling {
    struct ulp_teller *teller; /* NULL: nobody is told */
    bool complained;
};

/* Only a run has somewhere to tell: with full weights there is none. */
void telling_open(struct telling *telling, enum sync_mode mode, struct ulp_store *store,
                  const char *run, const char *name);
void telling_close(struct telling *telling);

/* A number with a name; one that is no number is not told. */
struct note {
    const char *name;
    double value;
};

/* The trainer published a version; `notes` end with a NULL name. */
void tell_published(struct telling *telling, const struct sent *sent, const struct note *notes);

/* A worker holds a version from now on. */
void tell_followed(struct telling *telling, uint64_t version, const struct received *received,
                   uint64_t now_ms);

#endif
