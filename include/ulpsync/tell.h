// SPDX-License-Identifier: Apache-2.0
/*
 * Tellings: what a run's log does not hold, and whoever looks at the run wants to see. Rewards, where
 * the time went, who holds which version since when. Publishers and followers may leave lines of
 * JSON in the store, each under a name of its own:
 *
 *     struct ulp_teller *teller = NULL;
 *     ulp_teller_open(store, "run", "worker-3", &teller);
 *     ulp_teller_tell(teller, "{\"event\":\"follow\",\"version\":7}");
 *     ulp_teller_close(teller);
 *
 * Tellings are for the eye. Nobody signs them, nothing depends on them, and they may be lost, late
 * or lies: whoever reads them takes every byte for a stranger's. A telling that fails is no reason
 * to stop. docs/format/chain.md says how they are kept, docs/runs.md what is told.
 *
 * Threads: each object belongs to one caller at a time.
 */
#ifndef ULPSYNC_TELL_H
#define ULPSYNC_TELL_H

#include <stddef.h>
#include <ulpsync/store.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ULP_TELLER_NAME_BYTES_MAX 64
#define ULP_TOLD_LINE_BYTES_MAX 4096

/* ---- telling ----------------------------------------------------------------------------- */

struct ulp_teller;

/* Letters, digits, '.', '-' and '_', at most 64 of them, the first no '.': else ULP_E_NAME. The
 * store is not asked for anything yet, and must outlive the teller. Of several who tell under one name all
 * are heard, but nobody can tell them apart. */
ULP_API enum ulp_status ulp_teller_open(struct ulp_store *store, const char *run, const char *name,
                                        struct ulp_teller **ret_teller);

/*
 * For a process that tells one line and ends, as a command in a loop does: goes on with the object that
 * the last one left, if there is room, instead of beginning one for a single line. Only 64 of them
 * are kept. Not where others tell under this name at the same time: they might lose lines.
 */
ULP_API enum ulp_status ulp_teller_resume(struct ulp_teller *teller);

/*
 * One JSON object on one line, without a newline, at most 4096 bytes: else ULP_E_LIMIT, ULP_E_JSON,
 * ULP_E_SCHEMA or ULP_E_UTF8. It costs one request, now and then a few. A line that could not be told is
 * lost; the next can be tried. ULP_E_UNSUPPORTED where the store cannot be written or listed.
 */
ULP_API enum ulp_status ulp_teller_tell(struct ulp_teller *teller, const char *line);
ULP_API void ulp_teller_close(struct ulp_teller *teller);

/* ---- listening --------------------------------------------------------------------------- */

/* Hears one line: an object of well-formed JSON, with a NUL behind it, and whatever it may say. */
typedef void (*ulp_told)(void *user, const char *name, const char *line, size_t bytes);

/*
 * Every line of every teller that is still there, in each teller's order. What is not as it should
 * be is passed over. ULP_E_UNSUPPORTED where the store cannot be listed, such as a web server: go
 * on without. A run without tellings, or no run at all, has just none.
 */
ULP_API enum ulp_status ulp_run_told(struct ulp_store *store, const char *run, ulp_told heard,
                                     void *user);

/* The same for who stays: each call hears what was told since the last one, and reads no more than
 * that. What was heard before a failure is not heard again. */
struct ulp_listener;
ULP_API enum ulp_status ulp_listener_open(struct ulp_store *store, const char *run,
                                          struct ulp_listener **ret_listener);
ULP_API enum ulp_status ulp_listener_hear(struct ulp_listener *listener, ulp_told heard,
                                          void *user);
ULP_API void ulp_listener_close(struct ulp_listener *listener);

/* ---- what a line says -------------------------------------------------------------------- */

/*
 * Hears a value that is no object and no array. `path` leads to it, with dots: "step",
 * "notes.reward". A text is given without its quotes and escapes (`is_text`): it may hold anything
 * but a NUL. A number, true, false and null are given as they are written.
 */
typedef void (*ulp_told_value)(void *user, const char *path, const char *value, int is_text);

/* Arrays, and paths of more than 200 bytes, are passed over. A name may come twice. Fails as
 * ulp_teller_tell() does for what is no line. */
ULP_API enum ulp_status ulp_told_values(const char *line, ulp_told_value value, void *user);

#ifdef __cplusplus
}
#endif

#endif
