// SPDX-License-Identifier: Apache-2.0
/*
 * ulpsync: sends new model weights by sending only the bits that moved.
 *
 * This is the one header to include. What is declared here and in the headers it includes is the
 * API; nothing else is.
 *
 *   status.h  codes and messages of failures
 *   pool.h    worker threads and progress
 *   model.h   tensors, models on disk, writing them, and the root digest of a state
 *   patch.h   making, reading, applying and squashing patches
 *   tile.h    which regions of a state each of several ranks holds
 *   store.h   named bytes, wherever they are kept
 *   key.h     keys that sign a run's log, and those that are trusted
 *   run.h     publishing a run to a store, and following it
 *   cuda.h    the verbs of patch.h where the weights are in the memory of a GPU
 *   cuda_run.h  publishers and followers of run.h there
 *   tell.h    what publishers and followers tell of themselves, for whoever looks on
 *
 * Rules that hold everywhere:
 *   - Handles are opaque, made by ulp_X_open/new/create and ended by ulp_X_free, which accepts NULL.
 *   - A fallible function returns enum ulp_status, takes its outputs last (ret_...), and writes them
 *     only on success.
 *   - Strings are UTF-8 and NUL-terminated. Weights are bit patterns, never floating-point values.
 *   - One handle may be used by one thread at a time unless its comment says more. Different
 *     handles are independent.
 *   - The library never prints, never exits, never installs a signal handler.
 */
#ifndef ULPSYNC_ULPSYNC_H
#define ULPSYNC_ULPSYNC_H

#include <ulpsync/cuda.h>
#include <ulpsync/cuda_run.h>
#include <ulpsync/key.h>
#include <ulpsync/model.h>
#include <ulpsync/patch.h>
#include <ulpsync/pool.h>
#include <ulpsync/run.h>
#include <ulpsync/status.h>
#include <ulpsync/store.h>
#include <ulpsync/tell.h>
#include <ulpsync/tile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
ULP_API const char *ulp_version(void);

/* The instruction set that this library uses on the running CPU: "avx512", "avx2", "neon" or
 * "portable". */
ULP_API const char *ulp_cpu(void);

enum ulp_log_level { ULP_LOG_ERROR = 1, ULP_LOG_WARN = 2, ULP_LOG_INFO = 3, ULP_LOG_DEBUG = 4 };

typedef void (*ulp_log_fn)(void *user, enum ulp_log_level level, const char *message);

/*
 * Without this call the library is silent. `fn` may be called from any thread, also from several
 * at once. NULL switches logging off again. Set it before other threads use the library.
 */
ULP_API void ulp_log_set(ulp_log_fn fn, void *user, enum ulp_log_level most_detail);

#ifdef __cplusplus
}
#endif

#endif
