// SPDX-License-Identifier: Apache-2.0
/*
 * A page of text that is as wide as the terminal: lines are cut at the right edge, and whatever is
 * not printable ASCII becomes '?', so that nothing from outside can drive the terminal. Only the
 * frame's own styles and curves are more than that.
 */
#ifndef CLI_FRAME_H
#define CLI_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum frame_style { FRAME_PLAIN, FRAME_STRONG, FRAME_FAINT, FRAME_GOOD, FRAME_FAIR, FRAME_BAD };

struct frame {
    unsigned width, column, lines;
    bool utf8, colour;
    bool full; /* a cell did not fit: nor do those behind it */
    FILE *to;
    char *text; /* all of it, after frame_end() */
    size_t bytes;
};

/* False when there is no memory for it. */
bool frame_begin(struct frame *frame, unsigned width, bool utf8, bool colour);
void frame_end(struct frame *frame);
void frame_release(struct frame *frame);

void frame_text(struct frame *frame, const char *format, ...) __attribute__((format(printf, 2, 3)));
void frame_styled(struct frame *frame, enum frame_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A column of a table, right-aligned, or left if `width` is negative: all of it, or, where that does
 * not fit any more, nothing. Longer text is cut, with a '~' at its end. */
void frame_cell(struct frame *frame, enum frame_style style, int width, const char *text);

/* Spaces up to a column, from 0. */
void frame_go_to(struct frame *frame, unsigned column);

/* Heights of the last values, as many as there are columns, between the least and the greatest of
 * them; nothing for NaN. */
void frame_curve(struct frame *frame, const double *values, size_t count, unsigned columns);
void frame_newline(struct frame *frame);

#endif
