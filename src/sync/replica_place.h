// SPDX-License-Identifier: Apache-2.0
/* The directory of a replica: which versions lie in it and which one is current. */
#ifndef SYNC_REPLICA_PLACE_H
#define SYNC_REPLICA_PLACE_H

#include "chain/plan.h"

struct replica_place {
    char *path;
    int lock; /* descriptor + 1 */
};

/* Makes the directory if it is missing, locks it, cleans up, and says what it holds. */
enum ulp_status replica_place_open(const char *path, struct replica_place *place,
                                   struct held *ret_held);
void replica_place_release(struct replica_place *place);

/* PATH/REST; the text has room for PATH_MAX. */
enum ulp_status replica_path(const struct replica_place *place, const char *rest, char *text);

/* PATH/versions/VERSION. */
enum ulp_status replica_version_path(const struct replica_place *place, uint64_t version,
                                     char *text);
bool replica_has_version(const struct replica_place *place, uint64_t version);

/* Where a version is put together before it is complete; empty. */
enum ulp_status replica_unfinished(const struct replica_place *place, uint64_t version, char *text);

/* It is complete and gets its name. */
enum ulp_status replica_finish(const struct replica_place *place, uint64_t version);

/* A version that is complete becomes the current one. */
enum ulp_status replica_switch(const struct replica_place *place, uint64_t version);

/* Removes all versions but the one that is held, another, the one that `current` leads to, and those
 * in front of these. */
enum ulp_status replica_clean(const struct replica_place *place, const struct held *held,
                              uint64_t also);

#endif
