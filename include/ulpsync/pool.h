// SPDX-License-Identifier: Apache-2.0
/*
 * Worker threads and progress.
 *
 * A pool runs numbered tasks on a fixed set of threads. Results do not depend on the number of
 * threads as long as a task writes only what is its own, or adds to atomics with a commutative
 * operation. Which failure is reported does not depend on it either: tasks start in ascending
 * order, and the failure of the lowest-numbered task wins.
 */
#ifndef ULPSYNC_POOL_H
#define ULPSYNC_POOL_H

#include <stdint.h>
#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Wherever a pool is asked for, NULL means "the calling thread alone". One call at a time may use a
 * pool.
 */
struct ulp_pool;

/* `threads` counts the calling thread; 0 means one per CPU this process may use. */
ULP_API enum ulp_status ulp_pool_new(unsigned threads, struct ulp_pool **ret_pool);
ULP_API unsigned ulp_pool_threads(const struct ulp_pool *pool);
ULP_API void ulp_pool_free(struct ulp_pool *pool);

/*
 * Long calls report to this, always on the calling thread. A non-zero answer stops the call, which
 * then fails with ULP_E_CANCELLED. `done` and `total` are in a unit of the call's own.
 */
struct ulp_progress {
    int (*report)(void *user, uint64_t done, uint64_t total);
    void *user;
};

/* A task that fails may leave a message with ulp_fail(). */
typedef enum ulp_status (*ulp_task)(void *user, uint64_t index);

/*
 * Runs tasks 0 .. count-1 and returns when all that started have ended. After a failure no new task
 * starts. `progress`, which may be NULL, hears how many of `count` tasks are done.
 */
ULP_API enum ulp_status ulp_pool_run(struct ulp_pool *pool, uint64_t count, ulp_task task,
                                     void *user, const struct ulp_progress *progress);

#ifdef __cplusplus
}
#endif

#endif
