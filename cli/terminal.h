// SPDX-License-Identifier: Apache-2.0
/* Progress on a terminal, and what happens on Ctrl-C. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <ulpsync/ulpsync.h>

/*
 * From here on SIGINT, SIGTERM and SIGHUP, unless they were ignored, end long work cleanly, through
 * its progress report, and the same one again at once; a file that shrinks under a mapping ends the
 * program with a message and ULP_E_FILE_CHANGED; and a file size limit is an error like a full
 * disk.
 */
void terminal_prepare(void);

/* Puts those signals back: for work that may be cut off at any moment, and cannot stop cleanly
 * before its end. */
void terminal_stop_at_once(void);

/* Whether a signal asked for the end. */
bool terminal_stopping(void);

/* For verbs that stay until somebody stops them: that is how they are meant to end. */
void terminal_stopped_well(void);

/* Sleeps, but not for long once a signal has asked for the end. */
void terminal_wait_ms(uint64_t ms);

/* If a signal asked for the end, ends the program by that signal, so that its parent sees it. */
void terminal_finish(void);

/* A line on standard error that is redrawn in place; nothing at all when that is not a terminal. */
struct progress_line {
    const char *doing;
    uint64_t total_bytes;
    bool shown;
    uint64_t started_ns, drawn_ns;
};

struct ulp_progress progress_begin(struct progress_line *line, const char *doing,
                                   uint64_t total_bytes);
void progress_end(struct progress_line *line);

uint64_t now_ns(void);

/* Since 1970: for labels. */
uint64_t wall_ms(void);

#endif
