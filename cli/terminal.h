// SPDX-License-Identifier: Apache-2.0
/* Progress on a terminal, and what happens on Ctrl-C. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <ulpsync/ulpsync.h>

/* From here on SIGINT and SIGTERM end long work cleanly, through its progress report, and a file
 * that shrinks under a mapping ends the program with a message and ULP_E_FILE_CHANGED. */
void terminal_prepare(void);

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

#endif
