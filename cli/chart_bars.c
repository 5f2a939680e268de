// SPDX-License-Identifier: Apache-2.0
#include "cli/chart_plot.h"

#include <math.h>

#define BARS_MAX 96u
#define Y_TICKS 5u
#define ROW_HEIGHT 21.0
#define ROW_NAME_MAX 200.0

/* Bars as they are drawn: of very many, `every` neighbours become one. */
struct bars {
    const struct chart *chart;
    size_t given, every, count;
};

static struct bars bars_of(const struct chart *chart) {
    struct bars bars = {.chart = chart, .every = 1};

    bars.given = chart->series_count ? chart->series[0].count : 0;
    if (bars.given > BARS_MAX)
        bars.every = (bars.given + BARS_MAX - 1) / BARS_MAX;
    bars.count = (bars.given + bars.every - 1) / bars.every;
    return bars;
}

/* The mean of what is there; NaN if nothing is. */
static double bar_value(const struct bars *bars, size_t series, size_t bar) {
    const struct chart_series *of = &bars->chart->series[series];
    double sum = 0;
    size_t count = 0;

    for (size_t i = bar * bars->every; i < (bar + 1) * bars->every && i < of->count; i++) {
        if (!scale_adds(of->y[i]))
            continue;
        sum += of->y[i];
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static struct chart_number number_of(const struct chart *chart, size_t i) {
    const double *x = chart->series[0].x;

    return chart_number(x ? x[i] : (double)i, chart->x.unit);
}

static const char *bar_name(const struct chart *chart, size_t i, struct chart_number *number) {
    *number = number_of(chart, i);
    return chart->names ? chart->names[i] : number->text;
}

/* "fetch: 12 ms (step 8 to 15, mean)" */
static void add_tooltip(struct text *out, const struct bars *bars, size_t series, size_t bar) {
    const struct chart *chart = bars->chart;
    const size_t first = bar * bars->every, next = first + bars->every;
    const size_t last = (next < bars->given ? next : bars->given) - 1;
    struct chart_number number;

    text_add(out, "<title>");
    if (chart->series[series].name) {
        text_add_escaped(out, chart->series[series].name);
        text_add(out, ": ");
    }
    text_addf(out, "%s (", chart_number(bar_value(bars, series, bar), chart->y.unit).text);
    if (chart->x.title) {
        text_add_escaped(out, chart->x.title);
        text_add(out, " ");
    }
    text_add_escaped(out, bar_name(chart, first, &number));
    if (last > first) {
        text_add(out, " to ");
        text_add_escaped(out, bar_name(chart, last, &number));
        text_add(out, ", mean");
    }
    text_add(out, ")</title>");
}

/* ---- upright ---- */

static bool find_scale(const struct bars *bars, bool stacked, struct scale *scale) {
    struct chart_axis axis = bars->chart->y;
    struct range range = range_empty;

    axis.log = axis.log && !stacked;
    axis.anywhere = false;
    scale->log = axis.log;
    for (size_t i = 0; i < bars->count; i++) {
        double above = 0, below = 0;

        for (size_t k = 0; k < bars->chart->series_count; k++) {
            const double value = bar_value(bars, k, i);

            if (!scale_shows(scale, value))
                continue;
            above += value > 0 ? value : 0;
            below += value < 0 ? value : 0;
            range_add(&range, scale, stacked ? above : value);
            range_add(&range, scale, stacked ? below : value);
        }
    }
    *scale = scale_make(&axis, range.low, range.high, Y_TICKS, false);
    return range.low <= range.high;
}

static double height_at(const struct plot *plot, double value) {
    return plot->bottom - scale_share(&plot->y, value) * (plot->bottom - plot->top);
}

static void draw_bar(const struct plot *plot, const struct bars *bars, size_t series, size_t bar,
                     const double at[4]) {
    const double x = at[0], width = at[1], from = height_at(plot, at[2]),
                 to = height_at(plot, at[3]);

    text_addf(plot->out, "<path class=\"h%u\" d=\"M%.2f %.2fh%.2fV%.2fh%.2fz\">",
              plot_look(bars->chart, series) % PLOT_COLOURS, x, from, width, to, -width);
    add_tooltip(plot->out, bars, series, bar);
    text_add(plot->out, "</path>\n");
}

/* The bars of one place on the x axis, which is `band` wide. */
static void draw_place(const struct plot *plot, const struct bars *bars, size_t bar, double band,
                       bool stacked) {
    const size_t count = bars->chart->series_count;
    const double gap = band > 4 ? band * 0.16 : 0;
    const double width = (band - gap) / (stacked ? 1 : (double)count);
    double x = plot->left + (double)bar * band + gap / 2, above = 0, below = 0;

    for (size_t k = 0; k < count; k++) {
        const double value = bar_value(bars, k, bar);
        double from = plot->y.log ? plot->y.low : 0;

        if (scale_shows(&plot->y, value)) {
            double *pile = value < 0 ? &below : &above;

            from = stacked ? *pile : from;
            draw_bar(plot, bars, k, bar,
                     (const double[]){x, width, from, stacked ? from + value : value});
            *pile += value;
        }
        x += stacked ? 0 : width;
    }
}

static double widest_name(const struct bars *bars) {
    double widest = 0;

    for (size_t i = 0; i < bars->count; i++) {
        struct chart_number number;

        widest = fmax(widest, plot_text_width(bar_name(bars->chart, i * bars->every, &number)));
    }
    return fmin(widest, ROW_NAME_MAX);
}

static void draw_names(const struct plot *plot, const struct bars *bars, double band) {
    const size_t apart = plot_labels_apart(bars->count, band, widest_name(bars) + 8);

    for (size_t i = 0; i < bars->count; i += apart) {
        struct chart_number number;

        plot_x_label(plot, plot->left + ((double)i + 0.5) * band,
                     bar_name(bars->chart, i * bars->every, &number));
    }
    plot_x_title(plot);
}

static void draw_bars(struct text *out, const struct chart *chart, bool stacked) {
    const struct bars bars = bars_of(chart);
    struct plot plot = {.out = out, .chart = chart, .left = 34, .right = PLOT_WIDTH - 6};
    double band;

    if (!find_scale(&bars, stacked, &plot.y)) {
        plot_nothing(out, chart);
        return;
    }
    plot_begin(&plot, PLOT_HEIGHT, true);
    plot_y_axis(&plot);
    band = (plot.right - plot.left) / (double)bars.count;
    for (size_t i = 0; i < bars.count; i++)
        draw_place(&plot, &bars, i, band, stacked);
    draw_names(&plot, &bars, band);
    plot_close(out);
}

void chart_bars(struct text *out, const struct chart *chart) {
    draw_bars(out, chart, false);
}

void chart_stacked(struct text *out, const struct chart *chart) {
    draw_bars(out, chart, true);
}

/* ---- lying ---- */

static double row_total(const struct chart *chart, size_t row) {
    double sum = 0;

    for (size_t k = 0; k < chart->series_count; k++)
        sum += scale_adds(chart->series[k].y[row]) ? fmax(0, chart->series[k].y[row]) : 0;
    return sum;
}

static void draw_row_parts(const struct plot *plot, const struct bars *bars, size_t row, double y) {
    const double width = plot->right - plot->left;
    double from = plot->y.log ? plot->y.low : 0;

    for (size_t k = 0; k < bars->chart->series_count; k++) {
        const double value = bars->chart->series[k].y[row];
        double x, part;

        if (!scale_shows(&plot->y, value) || !scale_adds(value) || value <= 0)
            continue;
        x = plot->left + width * scale_share(&plot->y, from);
        from = plot->y.log ? value : from + value;
        part = plot->left + width * scale_share(&plot->y, from) - x;
        text_addf(plot->out, "<path class=\"h%u\" d=\"M%.1f %.1fh%.2fv%.1fh%.2fz\">",
                  plot_look(bars->chart, k) % PLOT_COLOURS, x, y + 3, part, ROW_HEIGHT - 6, -part);
        add_tooltip(plot->out, bars, k, row);
        text_add(plot->out, "</path>");
    }
}

static void draw_row(const struct plot *plot, const struct bars *bars, size_t row) {
    const struct chart *chart = bars->chart;
    const double y = plot->top + (double)row * ROW_HEIGHT, total = row_total(chart, row);
    double end = plot->left;
    struct chart_number number;
    const char *name = bar_name(chart, row, &number);

    text_addf(plot->out, "<g><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", plot->left - 6,
              y + ROW_HEIGHT / 2 + 4);
    plot_add_fitting(plot->out, name, plot->left - 10);
    text_add(plot->out, "<title>");
    text_add_escaped(plot->out, name);
    text_add(plot->out, "</title></text>");
    draw_row_parts(plot, bars, row, y);
    if (scale_shows(&plot->y, total))
        end += (plot->right - plot->left) * fmax(0, scale_share(&plot->y, total));
    text_addf(plot->out, "<text class=\"value\" x=\"%.1f\" y=\"%.1f\">%s</text></g>\n", end + 5,
              y + ROW_HEIGHT / 2 + 4, chart_number(total, chart->y.unit).text);
}

/* Several series make one bar, whose parts add up: no log axis for those. */
static bool find_row_scale(struct plot *plot, size_t rows) {
    struct chart_axis axis = plot->chart->y;
    struct range range = range_empty;

    axis.log = axis.log && plot->chart->series_count == 1;
    axis.anywhere = false;
    plot->y.log = axis.log;
    for (size_t i = 0; i < rows; i++)
        range_add(&range, &plot->y, row_total(plot->chart, i));
    plot->y = scale_make(&axis, axis.log ? range.low : 0, range.high, Y_TICKS, !axis.log);
    return range.low <= range.high;
}

void chart_rows(struct text *out, const struct chart *chart) {
    const struct bars bars = {
        .chart = chart, .given = chart->series_count ? chart->series[0].count : 0, .every = 1};
    const size_t rows = bars.given < CHART_ROWS_MAX ? bars.given : CHART_ROWS_MAX;
    struct plot plot = {.out = out, .chart = chart, .left = 40, .right = PLOT_WIDTH - 76};
    struct chart_number number;

    if (!rows || !find_row_scale(&plot, rows)) {
        plot_nothing(out, chart);
        return;
    }
    for (size_t i = 0; i < rows; i++)
        plot.left = fmax(plot.left, 12 + plot_text_width(bar_name(chart, i, &number)));
    plot.left = fmin(plot.left, ROW_NAME_MAX);
    plot_begin(&plot, ROW_HEIGHT * (double)rows - PLOT_BELOW + (rows < bars.given ? 30 : 8), true);
    for (size_t i = 0; i < rows; i++)
        draw_row(&plot, &bars, i);
    if (rows < bars.given)
        text_addf(out, "<text x=\"%.1f\" y=\"%.1f\">and %zu more</text>\n", plot.left,
                  plot.top + ROW_HEIGHT * (double)rows + 16, bars.given - rows);
    plot_close(out);
}
