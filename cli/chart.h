// SPDX-License-Identifier: Apache-2.0
/*
 * Charts as inline SVG, for pages that need nothing but themselves (cli/page.h). Fill a struct
 * chart, and one of the functions below draws it:
 *
 *     const double steps[] = {1, 2, 3}, reward[] = {0.2, NAN, 0.4};
 *     const struct chart_series series = {.name = "reward", .x = steps, .y = reward, .count = 3};
 *     chart_lines(&page, &(struct chart){.label = "Reward by step, from 0.2 to 0.4",
 *                                        .x = {.title = "step", .unit = CHART_WHOLE},
 *                                        .y = {.title = "mean reward"},
 *                                        .series = &series, .series_count = 1});
 *
 * A value that is not finite is missing: lines have a gap there, bars are not drawn; on a log axis
 * the same holds for what is not positive, and everywhere for what is beyond 1e200. Numbers of bytes, seconds and so on are given in the
 * plain unit; axes and tooltips find the readable one. Series are told apart by colour, and without
 * it by dashes, markers and hatching. All text is escaped here.
 *
 * Sizes stay bounded whatever is given: dense lines are thinned to what a pixel can show, and of
 * many bars or columns neighbours are averaged, which their tooltips say. What there is no space to
 * write is cut short, and whole in a tooltip.
 */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include "cli/text.h"

enum chart_unit {
    CHART_PLAIN,   /* 0.25 */
    CHART_WHOLE,   /* 17: steps, versions; has no ticks between whole numbers */
    CHART_COUNT,   /* 1.20 M */
    CHART_BYTES,   /* 1.50 MiB */
    CHART_SECONDS, /* 12.0 ms */
    CHART_PERCENT, /* a share: 0.25 is 25 % */
};

struct chart_axis {
    const char *title; /* what it shows, with the unit if the numbers do not have it */
    enum chart_unit unit;
    bool log;
    bool anywhere; /* the axis need not begin at 0; x axes of lines and points never have to */
};

struct chart_series {
    const char *name;
    const double *x; /* ascending for lines; NULL: 0, 1, 2, ... */
    const double *y;
    size_t count;
};

struct chart {
    const char *label; /* the chart in a sentence, for whoever cannot see it */
    struct chart_axis x, y;
    const struct chart_series *series;
    size_t series_count;
    const char *const *names; /* bars and rows: of each one; NULL: the numbers in series[0].x */
    const unsigned *looks; /* colour, dashes and hatching of each series, from 0; NULL: its place */
};

/* Lines with markers; series may have different x. */
void chart_lines(struct text *out, const struct chart *chart);

/* Markers alone. */
void chart_points(struct text *out, const struct chart *chart);

/*
 * Upright bars, those of several series beside each other or on top of each other. All series have
 * the count of the first. Stacks have no log axis.
 */
void chart_bars(struct text *out, const struct chart *chart);
void chart_stacked(struct text *out, const struct chart *chart);

/* Bars that lie, one below the other, names on their left; several series make one long bar of
 * parts. The `y` axis is the one along the bars. For names that are long or many: a chart is as
 * high as it must be, up to CHART_ROWS_MAX rows, and says how many it leaves out. */
void chart_rows(struct text *out, const struct chart *chart);

/* A map of shades: a row for each series, a column for each x of the first; `y` is the shade's. */
void chart_heat(struct text *out, const struct chart *chart);

#define CHART_ROWS_MAX 200u

/* A number as tooltips have it: "1.50 MiB", "12.3 ms", "0.913 %", and "-" for a missing one. Lives
 * until the end of the full expression. */
struct chart_number {
    char text[40];
};
struct chart_number chart_number(double value, enum chart_unit unit);

/* What a page needs once for all of its charts: rules for its style sheet, and hatchings. */
extern const char chart_style[];
void chart_add_hatchings(struct text *out);

#endif
