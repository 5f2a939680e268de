// SPDX-License-Identifier: Apache-2.0
/*
 * The whole terminal, for a view that stays: the other screen, no cursor, keys as they are typed.
 * However the program ends, the terminal is as it was before: by the end of the view, by a signal (which
 * ends the program at once; SIGINT, SIGTERM and SIGHUP with exit code 0, since that is how a view ends), or by a crash.
 * It can be suspended and comes back.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether standard output is a terminal that can be drawn on. */
bool screen_is_there(void);

/* Columns and rows of the terminal on standard output, now; else what COLUMNS and LINES say, else
 * 100 and 24. */
void screen_size(unsigned *ret_columns, unsigned *ret_rows);

void screen_enter(void);
void screen_leave(void);

/* Draws the first `rows` lines of `text` over what was there. */
void screen_draw(const char *text, unsigned rows);

enum screen_event { SCREEN_TIMEOUT, SCREEN_QUIT, SCREEN_RESIZED };

/* Until a key says something, the size changes, or the time is over. */
enum screen_event screen_wait(uint64_t ms);

#endif
