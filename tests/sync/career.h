// SPDX-License-Identifier: Apache-2.0
/* A trainer that stays in memory and publishes many versions quickly. */
#ifndef TESTS_SYNC_CAREER_H
#define TESTS_SYNC_CAREER_H

#include "tests/patch/disk.h"

#define CAREER_VERSIONS_MAX 256u

struct career {
    char *top;
    struct ulp_store *store;
    struct state state;
    struct ulp_publisher *publisher;
    uint64_t versions;
    struct ulp_root roots[CAREER_VERSIONS_MAX];
    uint64_t bytes[CAREER_VERSIONS_MAX]; /* of the patch to each version */
};

struct career career_make(const struct ulp_run_options *options);
void career_free(struct career *career);

/* So many more versions, with anchors where they are due. */
void career_publish(struct career *career, unsigned count);

/* Follows from a store into top/NAME and checks that it arrives at the newest version. */
struct ulp_run_report career_follow(const struct career *career, struct ulp_store *store,
                                    const char *name);

#endif
