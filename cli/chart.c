// SPDX-License-Identifier: Apache-2.0
#include "cli/chart.h"

#include "cli/chart_frame.h"

#include <math.h>

/* More markers than this in a line would be a smear. */
#define MARKERS_MAX 80u
#define MARKERS_LARGE_MAX 40u
#define MARKERS_POINTS_MAX 2000u
#define X_TICKS 6u
#define Y_TICKS 5u

/* ---- lines and points ---- */

static double x_of(const struct chart_series *series, size_t i) {
    return series->x ? series->x[i] : (double)i;
}

static bool shows(const struct frame *frame, const struct chart_series *series, size_t i) {
    return i < series->count && scale_shows(&frame->x, x_of(series, i)) &&
           scale_shows(&frame->y, series->y[i]);
}

static double x_at(const struct frame *frame, double value) {
    return frame->left + scale_share(&frame->x, value) * (frame->right - frame->left);
}

static double y_at(const struct frame *frame, double value) {
    return frame->bottom - scale_share(&frame->y, value) * (frame->bottom - frame->top);
}

/* Neighbours in one column of pixels: their lowest and highest are all that can be seen. */
struct column {
    bool any;
    double x;
    size_t low, high;
};

static void column_draw(const struct frame *frame, const struct chart_series *series,
                        struct column *column, bool *pen_down) {
    const size_t first = column->low < column->high ? column->low : column->high;
    const size_t last = column->low < column->high ? column->high : column->low;

    if (!column->any)
        return;
    for (size_t i = first;; i = last) {
        text_addf(frame->out, "%c%.1f %.1f", *pen_down ? 'L' : 'M', x_at(frame, x_of(series, i)),
                  y_at(frame, series->y[i]));
        *pen_down = true;
        if (i == last)
            break;
    }
    column->any = false;
}

static void draw_line(const struct frame *frame, size_t number) {
    const struct chart_series *series = &frame->chart->series[number];
    const unsigned look = frame_look(frame->chart, number);
    struct column column = {0};
    bool pen_down = false;

    text_addf(frame->out, "<path class=\"line c%u d%u\" d=\"", look % FRAME_COLOURS,
              look % FRAME_DASHES);
    for (size_t i = 0; i < series->count; i++) {
        const bool shown = shows(frame, series, i);
        const double x = shown ? floor(x_at(frame, x_of(series, i))) : 0;

        if (!shown || (column.any && x != column.x))
            column_draw(frame, series, &column, &pen_down);
        if (!shown) {
            pen_down = false;
            continue;
        }
        if (!column.any)
            column = (struct column){.any = true, .x = x, .low = i, .high = i};
        if (series->y[i] < series->y[column.low])
            column.low = i;
        if (series->y[i] > series->y[column.high])
            column.high = i;
    }
    column_draw(frame, series, &column, &pen_down);
    text_add(frame->out, "\"/>\n");
}

static void draw_marker(const struct frame *frame, size_t number, size_t i, double size) {
    const struct chart *chart = frame->chart;
    const struct chart_series *series = &chart->series[number];
    struct text *out = frame->out;

    frame_marker(out, frame_look(chart, number), x_at(frame, x_of(series, i)),
                 y_at(frame, series->y[i]), size);
    text_add(out, "><title>");
    if (series->name) {
        text_add_escaped(out, series->name);
        text_add(out, ": ");
    }
    text_addf(out, "%s (", chart_number(series->y[i], chart->y.unit).text);
    text_add_escaped(out, chart->x.title ? chart->x.title : "");
    text_addf(out, " %s)</title></path>\n", chart_number(x_of(series, i), chart->x.unit).text);
}

/* Of a dense line every so manieth has a marker; all of those that no line leads to do. */
static void draw_markers(const struct frame *frame, size_t number, size_t most) {
    const struct chart_series *series = &frame->chart->series[number];
    const size_t every = series->count > most ? (series->count + most - 1) / most : 1;
    const double size = series->count > MARKERS_LARGE_MAX ? 2.2 : 3;

    for (size_t i = 0; i < series->count; i++) {
        const bool lonely = (!i || !shows(frame, series, i - 1)) && !shows(frame, series, i + 1);

        if (shows(frame, series, i) && (lonely || i % every == 0 || i + 1 == series->count))
            draw_marker(frame, number, i, size);
    }
}

static void draw_x_axis(const struct frame *frame) {
    double free_from = -INFINITY;

    for (unsigned i = 0; i < frame->x.tick_count; i++) {
        const struct chart_number words = scale_tick_text(&frame->x, i);
        const double x = x_at(frame, frame->x.ticks[i]);
        const double half = frame_text_width(words.text) / 2;

        text_addf(frame->out, "<path class=\"grid\" d=\"M%.1f %.1fv4\"/>", x, frame->bottom);
        if (x - half < free_from)
            continue;
        frame_x_label(frame, x, words.text);
        free_from = x + half + 8;
    }
    frame_x_title(frame);
}

/* False if there is nothing to see. */
static bool find_scales(struct frame *frame) {
    const struct chart *chart = frame->chart;
    struct range x = range_empty, y = range_empty;

    frame->x.log = chart->x.log;
    frame->y.log = chart->y.log;
    for (size_t k = 0; k < chart->series_count; k++) {
        for (size_t i = 0; i < chart->series[k].count; i++) {
            /* also where y is missing: so charts of the same steps have the same axis */
            if (range_add(&x, &frame->x, x_of(&chart->series[k], i)))
                range_add(&y, &frame->y, chart->series[k].y[i]);
        }
    }
    if (y.low > y.high)
        return false;
    frame->x = scale_make(&chart->x, x.low, x.high, X_TICKS, true);
    frame->y = scale_make(&chart->y, y.low, y.high, Y_TICKS, false);
    return true;
}

static void draw(struct text *out, const struct chart *chart, bool lines) {
    struct frame frame = {.out = out, .chart = chart, .left = 34, .right = FRAME_WIDTH - 14};

    if (!find_scales(&frame)) {
        frame_nothing(out, chart);
        return;
    }
    frame_begin(&frame, FRAME_PLOT, false);
    frame_y_axis(&frame);
    draw_x_axis(&frame);
    for (size_t i = 0; i < chart->series_count; i++) {
        if (lines)
            draw_line(&frame, i);
        draw_markers(&frame, i, lines ? MARKERS_MAX : MARKERS_POINTS_MAX);
    }
    frame_close(out);
}

void chart_lines(struct text *out, const struct chart *chart) {
    draw(out, chart, true);
}

void chart_points(struct text *out, const struct chart *chart) {
    draw(out, chart, false);
}
