// SPDX-License-Identifier: Apache-2.0
/*
 * A hidden directory beside what is being made, for one process at a time. What one that was killed
 * left there is cleaned up by the next with the same goal.
 */
#ifndef CLI_WORKSHOP_H
#define CLI_WORKSHOP_H

#include <limits.h>
#include <ulpsync/ulpsync.h>

struct workshop {
    char parent[PATH_MAX];
    char path[PATH_MAX]; /* "" until it is ours */
    int lock;            /* descriptor + 1 */
};

/* Zeroed before. Beside `goal`, as ".GOAL.ENDING", and empty; ULP_E_BUSY if another process uses
 * it. */
enum ulp_status workshop_open(const char *goal, const char *ending, struct workshop *w);
void workshop_release(struct workshop *w);

#endif
