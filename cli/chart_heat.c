// SPDX-License-Identifier: Apache-2.0
#include "cli/chart_plot.h"

#include <math.h>

#define SHADES 9u
#define CELLS_MAX 4096u
#define COLUMNS_MAX 128u
#define COLUMNS_MIN 16u
#define ROW_HEIGHT_MAX 20.0
#define ROW_HEIGHT_MIN 3.0
#define HEAT_HEIGHT 320.0
#define NAME_MAX 200.0 /* "model.embed_tokens.weight" has space */
#define NAME_LINE 13.0

struct heat {
    struct plot plot;
    size_t rows, columns; /* as drawn */
    size_t every;         /* columns of what was given become one */
    double row_height, column_width;
};

static double given_x(const struct chart *chart, size_t i) {
    return chart->series[0].x ? chart->series[0].x[i] : (double)i;
}

/* The mean of what is there; NaN if nothing is. */
static double cell_value(const struct heat *heat, size_t row, size_t column) {
    const struct chart_series *series = &heat->plot.chart->series[row];
    double sum = 0;
    size_t count = 0;

    for (size_t i = column * heat->every; i < (column + 1) * heat->every && i < series->count;
         i++) {
        if (!scale_shows(&heat->plot.y, series->y[i]) || !scale_adds(series->y[i]))
            continue;
        sum += series->y[i];
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static unsigned shade_of(const struct scale *scale, double value) {
    const double share = scale_share(scale, value);

    return share <= 0 ? 0 : share >= 1 ? SHADES - 1 : (unsigned)(share * SHADES);
}

static void add_columns(const struct heat *heat, size_t column) {
    const struct chart *chart = heat->plot.chart;
    const size_t first = column * heat->every, next = first + heat->every;
    const size_t last = (next < chart->series[0].count ? next : chart->series[0].count) - 1;
    struct text *out = heat->plot.out;

    if (chart->x.title) {
        text_add_escaped(out, chart->x.title);
        text_add(out, " ");
    }
    text_add(out, chart_number(given_x(chart, first), chart->x.unit).text);
    if (last > first)
        text_addf(out, " to %s, mean", chart_number(given_x(chart, last), chart->x.unit).text);
}

static void draw_cell(const struct heat *heat, size_t row, size_t column) {
    const struct plot *plot = &heat->plot;
    const double value = cell_value(heat, row, column);
    const double x = plot->left + (double)column * heat->column_width;
    const double y = plot->top + (double)row * heat->row_height;

    if (isfinite(value))
        text_addf(plot->out, "<path class=\"q%u\"", shade_of(&plot->y, value));
    else
        text_add(plot->out, "<path class=\"none\"");
    /* a little over their borders, which would shine through otherwise */
    text_addf(plot->out, " d=\"M%.1f %.1fh%.2fv%.2fh%.2fz\"><title>", x, y,
              heat->column_width + 0.15, heat->row_height + 0.15, -heat->column_width - 0.15);
    text_add_escaped(plot->out, plot->chart->series[row].name);
    text_add(plot->out, ", ");
    add_columns(heat, column);
    text_addf(plot->out, ": %s</title></path>\n",
              isfinite(value) ? chart_number(value, plot->chart->y.unit).text : "no data");
}

static void draw_names(const struct heat *heat) {
    const struct plot *plot = &heat->plot;
    double free_from = -INFINITY;

    for (size_t i = 0; i < heat->rows; i++) {
        const char *name = plot->chart->series[i].name;
        const double y = plot->top + ((double)i + 0.5) * heat->row_height;

        if (y - NAME_LINE / 2 < free_from)
            continue;
        free_from = y + NAME_LINE / 2;
        text_addf(plot->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", plot->left - 6,
                  y + 4);
        plot_add_fitting(plot->out, name, plot->left - 10);
        text_add(plot->out, "<title>");
        text_add_escaped(plot->out, name);
        text_add(plot->out, "</title></text>\n");
    }
}

static struct chart_number column_number(const struct heat *heat, size_t column) {
    const struct chart *chart = heat->plot.chart;

    return chart_number(given_x(chart, column * heat->every), chart->x.unit);
}

static void draw_numbers(const struct heat *heat) {
    const struct plot *plot = &heat->plot;
    double widest = 0;
    size_t apart;

    for (size_t i = 0; i < heat->columns; i++)
        widest = fmax(widest, plot_text_width(column_number(heat, i).text));
    apart = plot_labels_apart(heat->columns, heat->column_width, widest + 14);
    for (size_t i = 0; i < heat->columns; i += apart)
        plot_x_label(plot, plot->left + ((double)i + 0.5) * heat->column_width,
                     column_number(heat, i).text);
    plot_x_title(plot);
}

/* The shades with the numbers at their ends, right of the title. */
static void draw_shades(const struct heat *heat) {
    const struct plot *plot = &heat->plot;
    const struct chart_number high = scale_tick_text(&plot->y, plot->y.tick_count - 1);
    const struct chart_number low = scale_tick_text(&plot->y, 0);
    const double y = plot->top - 20;
    double x = PLOT_WIDTH - 6 - plot_text_width(high.text) - 6 - SHADES * 12;

    text_addf(plot->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>", x - 5, y + 10,
              low.text);
    for (unsigned i = 0; i < SHADES; i++, x += 12)
        text_addf(plot->out, "<path class=\"q%u\" d=\"M%.1f %.1fh12v11h-12z\"/>", i, x, y);
    text_addf(plot->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 5, y + 10, high.text);
}

static bool find_scale(struct heat *heat) {
    const struct chart *chart = heat->plot.chart;
    struct range range = range_empty;

    heat->plot.y.log = chart->y.log;
    for (size_t row = 0; row < heat->rows; row++) {
        for (size_t i = 0; i < heat->columns; i++)
            range_add(&range, &heat->plot.y, cell_value(heat, row, i));
    }
    heat->plot.y = scale_make(&chart->y, range.low, range.high, 4, false);
    return range.low <= range.high;
}

static void lay_out(struct heat *heat) {
    const struct chart *chart = heat->plot.chart;
    const size_t given = chart->series_count ? chart->series[0].count : 0;
    size_t most;

    heat->rows = chart->series_count < CHART_ROWS_MAX ? chart->series_count : CHART_ROWS_MAX;
    most = heat->rows ? CELLS_MAX / heat->rows : 0;
    most = most < COLUMNS_MIN ? COLUMNS_MIN : most > COLUMNS_MAX ? COLUMNS_MAX : most;
    heat->every = given > most ? (given + most - 1) / most : 1;
    heat->columns = (given + heat->every - 1) / heat->every;
    for (size_t i = 0; i < heat->rows; i++)
        heat->plot.left = fmax(heat->plot.left, 12 + plot_text_width(chart->series[i].name));
    heat->plot.left = fmin(heat->plot.left, NAME_MAX);
    heat->row_height = fmin(ROW_HEIGHT_MAX, HEAT_HEIGHT / fmax(1, (double)heat->rows));
    heat->row_height = fmax(heat->row_height, ROW_HEIGHT_MIN);
    heat->column_width = (heat->plot.right - heat->plot.left) / fmax(1, (double)heat->columns);
}

void chart_heat(struct text *out, const struct chart *chart) {
    /* the rows' names are no legend */
    const struct chart titles = {.label = chart->label, .x = chart->x, .y = chart->y};
    struct heat heat = {.plot = {.out = out, .chart = chart, .left = 34, .right = PLOT_WIDTH - 6}};

    lay_out(&heat);
    if (!heat.columns || !find_scale(&heat)) {
        plot_nothing(out, chart);
        return;
    }
    heat.plot.chart = &titles;
    plot_begin(&heat.plot, heat.row_height * (double)heat.rows, false);
    heat.plot.chart = chart;
    draw_shades(&heat);
    text_add(out, "<g shape-rendering=\"crispEdges\">\n");
    for (size_t row = 0; row < heat.rows; row++) {
        for (size_t i = 0; i < heat.columns; i++)
            draw_cell(&heat, row, i);
    }
    text_add(out, "</g>\n");
    draw_names(&heat);
    draw_numbers(&heat);
    if (heat.rows < chart->series_count)
        text_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">and %zu more rows</text>\n",
                  PLOT_WIDTH - 6, heat.plot.bottom + 35, chart->series_count - heat.rows);
    plot_close(out);
}
