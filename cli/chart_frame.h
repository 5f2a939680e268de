// SPDX-License-Identifier: Apache-2.0
/* What all kinds of charts share: the picture's frame, axes, legend, and how marks are written. */
#ifndef CLI_CHART_FRAME_H
#define CLI_CHART_FRAME_H

#include "cli/scale.h"

/*
 * Pictures are as wide as half a page or a whole phone; a reader's browser scales them. So lengths
 * are in units that are about a pixel, and letters stay readable on both.
 */
#define FRAME_WIDTH 440.0
#define FRAME_PLOT 190.0 /* height of a plot */
#define FRAME_BELOW 42.0 /* of it: the numbers and title of x */
#define FRAME_COLOURS 11u
#define FRAME_DASHES 4u

struct frame {
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
unsigned frame_look(const struct chart *chart, size_t series);

/* About how wide these words are. */
double frame_text_width(const char *words);

/* Escaped words in at most `width`, cut short if they must be. */
void frame_add_fitting(struct text *out, const char *words, double width);

/* <svg ...> for a picture of this height. */
void frame_open(struct text *out, const struct chart *chart, double height);
void frame_close(struct text *out);

/* Opens a picture with a plot of this height: legend (of more than one series) and the title of y
 * above it; sets top and bottom. Bars show their filling in the legend, others line and marker. */
void frame_begin(struct frame *frame, double plot_height, bool bars);

/* Lines and numbers of the y axis; moves frame->left to the right of the widest number first. */
void frame_y_axis(struct frame *frame);

void frame_x_title(const struct frame *frame);

/* One number or name below the plot. */
void frame_x_label(const struct frame *frame, double x, const char *words);

/* The beginning of a <path> that is the series' marker, without its end: "/>", or a tooltip. */
void frame_marker(struct text *out, unsigned look, double x, double y, double size);

/* Of `count` labels, `band` from each other and up to `widest` wide, every so manieth has space: a
 * round number. */
size_t frame_labels_apart(size_t count, double band, double widest);

/* A picture with a sentence in it, where there is nothing to draw. */
void frame_nothing(struct text *out, const struct chart *chart);

#endif
