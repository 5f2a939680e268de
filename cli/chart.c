// SPDX-License-Identifier: Apache-2.0
#include "cli/chart.h"

#include "cli/chart_plot.h"

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

static bool shows(const struct plot *plot, const struct chart_series *series, size_t i) {
    return i < series->count && scale_shows(&plot->x, x_of(series, i)) &&
           scale_shows(&plot->y, series->y[i]);
}

static double x_at(const struct plot *plot, double value) {
    return plot->left + scale_share(&plot->x, value) * (plot->right - plot->left);
}

static double y_at(const struct plot *plot, double value) {
    return plot->bottom - scale_share(&plot->y, value) * (plot->bottom - plot->top);
}

/* Neighbours in one column of pixels: their lowest and highest are all that can be seen. */
struct column {
    bool any;
    double x;
    size_t low, high;
};

static void column_draw(const struct plot *plot, const struct chart_series *series,
                        struct column *column, bool *pen_down) {
    const size_t first = column->low < column->high ? column->low : column->high;
    const size_t last = column->low < column->high ? column->high : column->low;

    if (!column->any)
        return;
    for (size_t i = first;; i = last) {
        text_addf(plot->out, "%c%.1f %.1f", *pen_down ? 'L' : 'M', x_at(plot, x_of(series, i)),
                  y_at(plot, series->y[i]));
        *pen_down = true;
        if (i == last)
            break;
    }
    column->any = false;
}

static void draw_line(const struct plot *plot, size_t number) {
    const struct chart_series *series = &plot->chart->series[number];
    const unsigned look = plot_look(plot->chart, number);
    struct column column = {0};
    bool pen_down = false;

    text_addf(plot->out, "<path class=\"line c%u d%u\" d=\"", look % PLOT_COLOURS,
              look % PLOT_DASHES);
    for (size_t i = 0; i < series->count; i++) {
        const bool shown = shows(plot, series, i);
        const double x = shown ? floor(x_at(plot, x_of(series, i))) : 0;

        if (!shown || (column.any && x != column.x))
            column_draw(plot, series, &column, &pen_down);
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
    column_draw(plot, series, &column, &pen_down);
    text_add(plot->out, "\"/>\n");
}

static void draw_marker(const struct plot *plot, size_t number, size_t i, double size) {
    const struct chart *chart = plot->chart;
    const struct chart_series *series = &chart->series[number];
    struct text *out = plot->out;

    plot_marker(out, plot_look(chart, number), x_at(plot, x_of(series, i)),
                y_at(plot, series->y[i]), size);
    text_add(out, "><title>");
    if (series->name) {
        text_add_escaped(out, series->name);
        text_add(out, ": ");
    }
    text_addf(out, "%s (", chart_number(series->y[i], chart->y.unit).text);
    if (chart->x.title) {
        text_add_escaped(out, chart->x.title);
        text_add(out, " ");
    }
    text_addf(out, "%s)</title></path>\n", chart_number(x_of(series, i), chart->x.unit).text);
}

/* Of a dense line every so manieth has a marker; all of those that no line leads to do. */
static void draw_markers(const struct plot *plot, size_t number, size_t most) {
    const struct chart_series *series = &plot->chart->series[number];
    const size_t every = series->count > most ? (series->count + most - 1) / most : 1;
    const double size = series->count > MARKERS_LARGE_MAX ? 2.2 : 3;

    for (size_t i = 0; i < series->count; i++) {
        const bool lonely = (!i || !shows(plot, series, i - 1)) && !shows(plot, series, i + 1);

        if (shows(plot, series, i) && (lonely || i % every == 0 || i + 1 == series->count))
            draw_marker(plot, number, i, size);
    }
}

static void draw_x_axis(const struct plot *plot) {
    double free_from = -INFINITY;

    for (unsigned i = 0; i < plot->x.tick_count; i++) {
        const struct chart_number words = scale_tick_text(&plot->x, i);
        const double x = x_at(plot, plot->x.ticks[i]);
        const double half = plot_text_width(words.text) / 2;

        text_addf(plot->out, "<path class=\"grid\" d=\"M%.1f %.1fv4\"/>", x, plot->bottom);
        if (x - half < free_from)
            continue;
        plot_x_label(plot, x, words.text);
        free_from = x + half + 8;
    }
    plot_x_title(plot);
}

/* False if there is nothing to see. */
static bool find_scales(struct plot *plot) {
    const struct chart *chart = plot->chart;
    struct range x = range_empty, y = range_empty;

    plot->x.log = chart->x.log;
    plot->y.log = chart->y.log;
    for (size_t k = 0; k < chart->series_count; k++) {
        for (size_t i = 0; i < chart->series[k].count; i++) {
            /* also where y is missing: so charts of the same steps have the same axis */
            if (range_add(&x, &plot->x, x_of(&chart->series[k], i)))
                range_add(&y, &plot->y, chart->series[k].y[i]);
        }
    }
    if (y.low > y.high)
        return false;
    plot->x = scale_make(&chart->x, x.low, x.high, X_TICKS, true);
    plot->y = scale_make(&chart->y, y.low, y.high, Y_TICKS, false);
    return true;
}

static void draw(struct text *out, const struct chart *chart, bool lines) {
    struct plot plot = {.out = out, .chart = chart, .left = 34, .right = PLOT_WIDTH - 14};

    if (!find_scales(&plot)) {
        plot_nothing(out, chart);
        return;
    }
    plot_begin(&plot, PLOT_HEIGHT, false);
    plot_y_axis(&plot);
    draw_x_axis(&plot);
    for (size_t i = 0; i < chart->series_count; i++) {
        if (lines)
            draw_line(&plot, i);
        draw_markers(&plot, i, lines ? MARKERS_MAX : MARKERS_POINTS_MAX);
    }
    plot_close(out);
}

void chart_lines(struct text *out, const struct chart *chart) {
    draw(out, chart, true);
}

void chart_points(struct text *out, const struct chart *chart) {
    draw(out, chart, false);
}
