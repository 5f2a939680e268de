// SPDX-License-Identifier: Apache-2.0
/* What all kinds of charts share: the plot in its picture, axes, legend, and how marks are written. */
#ifndef CLI_CHART_PLOT_H
#define CLI_CHART_PLOT_H

#include "cli/scale.h"

/*
 * Pictures are as wide as half a page or a whole phone; a reader's browser scales them. So lengths
 * are in units that are about a pixel, and letters stay readable on both.
 */
#define PLOT_WIDTH 440.0
#define PLOT_HEIGHT 190.0 /* unless it has rows */
#define PLOT_BELOW 42.0   /* of it: the numbers and title of x */
#define PLOT_COLOURS 11u
#define PLOT_DASHES 4u

struct plot {
    struct text *out;
    const struct chart *chart;
    struct scale x, y;
    double left, right, top, bottom; /* of the plot, in the picture */
};

/* The smallest and largest value that an axis can show; false if there is none. */
struct range {
    double low, high;
};
bool range_add(struct range *range, const struct scale *scale, double value);
extern const struct range range_empty;

/* Which colour, dashes and hatching a series has, from 0. */
unsigned plot_look(const struct chart *chart, size_t series);

/* About how wide these words are. */
double plot_text_width(const char *words);

/* Escaped words in at most `width`, cut short if they must be. */
void plot_add_fitting(struct text *out, const char *words, double width);

/* <svg ...> for a picture of this height. */
void plot_open(struct text *out, const struct chart *chart, double height);
void plot_close(struct text *out);

/* Opens a picture with a plot of this height: legend (of more than one series) and the title of y
 * above it; sets top and bottom. Bars show their filling in the legend, others line and marker. */
void plot_begin(struct plot *plot, double plot_height, bool bars);

/* Lines and numbers of the y axis; moves plot->left to the right of the widest number first. */
void plot_y_axis(struct plot *plot);

void plot_x_title(const struct plot *plot);

/* One number or name below the plot. */
void plot_x_label(const struct plot *plot, double x, const char *words);

/* The beginning of a <path> that is the series' marker, without its end: "/>", or a tooltip. */
void plot_marker(struct text *out, unsigned look, double x, double y, double size);

/* Of `count` labels, `band` from each other and up to `widest` wide, every so manieth has space: a
 * round number. */
size_t plot_labels_apart(size_t count, double band, double widest);

/* A picture with a sentence in it, where there is nothing to draw. */
void plot_nothing(struct text *out, const struct chart *chart);

#endif
