// SPDX-License-Identifier: Apache-2.0
/*
 * Failing: one call fills the thread's message and returns the code, so that a fault reads
 *     return fail(ULP_E_HOLE, "%s: ...", quote(path).text);
 * at the place that saw it. Whoever passes a status on leaves the message alone.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <ulpsync/status.h>

#define ERROR_MESSAGE_BYTES 1024

/* The public ulp_fail() under the short name that the whole source uses. */
#define fail ulp_fail

/* What an analyser cannot see: whoever fails does not return ULP_OK. */
#if defined(__clang_analyzer__) && !defined(BASE_STATUS_C)
#undef fail
#define fail(status, ...) (ulp_fail(status, __VA_ARGS__), (status))
#define fail_errno(doing, path) ((fail_errno)(doing, path), ULP_E_IO)
#endif

/* Turns errno into a status; `doing` and `path` become "cannot DOING 'PATH': REASON". */
enum ulp_status(fail_errno)(const char *doing, const char *path) __attribute__((cold));

/* Carries a message from the thread that failed to the thread that reports. */
struct error_note {
    char message[ERROR_MESSAGE_BYTES];
};
void error_save(struct error_note *note);
void error_restore(const struct error_note *note);
void error_clear(void);

#endif
