// SPDX-License-Identifier: Apache-2.0
/* Runs a piece of work in a child process that is stopped at every system call of each of its
 * threads, to watch it or to end it. */
#ifndef TESTS_PATCH_TRACER_H
#define TESTS_PATCH_TRACER_H

#include "tests/test.h"

#include <stdbool.h>
#include <sys/types.h>

/* What the child does; its answer is its exit status. */
typedef int (*traced_work)(const void *user);

struct traced_call {
    uint64_t number, arguments[6];
};

/* Hears of each call that the child is about to make. */
typedef void (*traced_watch)(void *user, pid_t child, const struct traced_call *call);

/* 0 where processes may not be traced. */
bool tracer_works(void);

/* Kills the child at stop number `at`, counted from 1, on entry to and on exit from every call;
 * false when it ended by itself before, with status 0 as the only one that is not an error. */
bool killed_at(unsigned long at, traced_work work, const void *user);

/* Lets it run to its end. */
void watch_calls(traced_work work, const void *user, traced_watch watch, void *watcher);

#endif
