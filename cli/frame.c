// SPDX-License-Identifier: Apache-2.0
#include "cli/frame.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024u
#define LEVELS 8u

bool frame_begin(struct frame *frame, unsigned width, bool utf8, bool colour) {
    *frame = (struct frame){.width = width, .utf8 = utf8, .colour = colour};
    frame->to = open_memstream(&frame->text, &frame->bytes);
    return frame->to != NULL;
}

void frame_end(struct frame *frame) {
    fclose(frame->to);
    frame->to = NULL;
}

void frame_release(struct frame *frame) {
    if (frame->to)
        fclose(frame->to);
    free(frame->text);
    *frame = (struct frame){0};
}

/* ---- text ---- */

static void put_safely(struct frame *frame, const char *text) {
    for (; *text && frame->column < frame->width; text++, frame->column++)
        fputc(*text >= 0x20 && *text < 0x7f ? *text : '?', frame->to);
}

static void put_list(struct frame *frame, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));
static void put_list(struct frame *frame, const char *format, va_list list) {
    char text[LINE_BYTES];

    vsnprintf(text, sizeof text, format, list);
    put_safely(frame, text);
}

void frame_text(struct frame *frame, const char *format, ...) {
    va_list list;

    va_start(list, format);
    put_list(frame, format, list);
    va_end(list);
}

void frame_styled(struct frame *frame, enum frame_style style, const char *format, ...) {
    static const char *const codes[] = {
        [FRAME_PLAIN] = "0", [FRAME_STRONG] = "1", [FRAME_FAINT] = "2",
        [FRAME_GOOD] = "32", [FRAME_FAIR] = "33",  [FRAME_BAD] = "31"};
    va_list list;

    if (frame->colour && style != FRAME_PLAIN)
        fprintf(frame->to, "\033[%sm", codes[style]);
    va_start(list, format);
    put_list(frame, format, list);
    va_end(list);
    if (frame->colour && style != FRAME_PLAIN)
        fputs("\033[0m", frame->to);
}

void frame_cell(struct frame *frame, enum frame_style style, int width, const char *text) {
    const unsigned columns = (unsigned)(width < 0 ? -width : width);
    const int room = width < 0 ? -width : width - 1; /* a number does not touch the one before it */
    const bool cut = strlen(text) > (size_t)room;
    char cell[LINE_BYTES];

    snprintf(cell, sizeof cell, "%.*s%s", cut ? room - 1 : room, text, cut ? "~" : "");
    frame->full = frame->full || frame->column + columns > frame->width;
    if (!frame->full)
        frame_styled(frame, style, "%*s", width, cell);
}

void frame_go_to(struct frame *frame, unsigned column) {
    for (; frame->column < column && frame->column < frame->width; frame->column++)
        fputc(' ', frame->to);
}

void frame_newline(struct frame *frame) {
    fputc('\n', frame->to);
    frame->column = 0;
    frame->full = false;
    frame->lines++;
}

/* ---- curves ---- */

static void put_level(struct frame *frame, unsigned level) {
    static const char ascii[LEVELS + 1] = "_.-=+*%#";

    if (frame->column >= frame->width)
        return;
    if (frame->utf8)
        fprintf(frame->to, "\xe2\x96%c", 0x81 + (int)level); /* U+2581 is an eighth of a block */
    else
        fputc(ascii[level], frame->to);
    frame->column++;
}

/* Of halves, since the difference of two numbers may be none. */
static unsigned level_of(double value, double least, double greatest) {
    const double share =
        greatest > least ? (value / 2 - least / 2) / (greatest / 2 - least / 2) : 0.5;

    return share >= 1 ? LEVELS - 1 : (unsigned)(share * LEVELS);
}

void frame_curve(struct frame *frame, const double *values, size_t count, unsigned columns) {
    const size_t first = count > columns ? count - columns : 0;
    double least = INFINITY, greatest = -INFINITY;

    for (size_t i = first; i < count; i++) {
        least = fmin(least, values[i]);
        greatest = fmax(greatest, values[i]);
    }
    for (size_t i = first; i < count; i++) {
        if (isnan(values[i]))
            frame_go_to(frame, frame->column + 1);
        else
            put_level(frame, level_of(values[i], least, greatest));
    }
}
