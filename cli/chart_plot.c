// SPDX-License-Identifier: Apache-2.0
#include "cli/chart_plot.h"

#include "cli/output.h"

#include <math.h>
#include <string.h>

/* Mean width of one at the size that chart_style has, in DejaVu Sans, which is wider than what most
 * readers have; wide scripts have twice it. */
#define LETTER 7.4
#define LEGEND_LINE 19.0
#define SWATCH 26.0
#define NAME_WIDTH_MAX 230.0
#define TITLE_LINE 20.0

const struct range range_empty = {INFINITY, -INFINITY};

bool range_add(struct range *range, const struct scale *scale, double value) {
    if (!scale_shows(scale, value))
        return false;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
    return true;
}

unsigned plot_look(const struct chart *chart, size_t series) {
    return chart->looks ? chart->looks[series] : (unsigned)series;
}

/* ---- words ---- */

static double character_width(const char *words, size_t length) {
    if (!length)
        return 4 * LETTER; /* as "\x1b" */
    return (unsigned char)*words >= 0xe1 ? 2 * LETTER : LETTER;
}

double plot_text_width(const char *words) {
    double width = 0;

    while (*words) {
        const size_t length = safe_character(words);

        width += character_width(words, length);
        words += length ? length : 1;
    }
    return width;
}

/* Names differ at their ends ("...mlp.up", "...mlp.down"), so of a long one the middle goes. */
void plot_add_fitting(struct text *out, const char *words, double width) {
    const char *head = words, *tail = words;
    double left = plot_text_width(words), taken = 0;

    if (left <= width) {
        text_add_escaped(out, words);
        return;
    }
    while (*tail && left > width / 2) {
        const size_t length = safe_character(tail);

        left -= character_width(tail, length);
        tail += length ? length : 1;
    }
    for (;;) {
        const size_t length = safe_character(head);

        taken += character_width(head, length);
        if (head >= tail || taken + left + 2 * LETTER > width)
            break;
        head += length ? length : 1;
    }
    text_add_escaped_part(out, words, (size_t)(head - words));
    text_add(out, "\xe2\x80\xa6");
    text_add_escaped(out, tail);
}

/* ---- the picture ---- */

void plot_open(struct text *out, const struct chart *chart, double height) {
    text_addf(out, "<svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
              PLOT_WIDTH, height);
    text_add_escaped(out, chart->label ? chart->label : "");
    text_add(out, "\">\n");
}

void plot_close(struct text *out) {
    text_add(out, "</svg>\n");
}

void plot_nothing(struct text *out, const struct chart *chart) {
    plot_open(out, chart, 60);
    text_addf(out, "<text x=\"%.0f\" y=\"34\" text-anchor=\"middle\">no data</text>\n",
              PLOT_WIDTH / 2);
    plot_close(out);
}

static void add_swatch(struct text *out, unsigned look, double x, double y, bool bars) {
    const unsigned colour = look % PLOT_COLOURS;

    if (bars) {
        text_addf(out, "<path class=\"h%u\" d=\"M%.1f %.1fh14v10h-14z\"/>", colour, x + 6, y - 9);
        return;
    }
    text_addf(out, "<path class=\"line c%u d%u\" d=\"M%.1f %.1fh20\"/>", colour, look % PLOT_DASHES,
              x, y - 4);
    plot_marker(out, look, x + 10, y - 4, 3);
    text_add(out, "/>");
}

/* Where the names stand; draws nothing without `out`. Returns where it ends. */
static double legend(struct text *out, const struct chart *chart, bool bars) {
    double x = 4, y = LEGEND_LINE - 5;

    if (chart->series_count < 2)
        return 0;
    for (size_t i = 0; i < chart->series_count; i++) {
        const char *name = chart->series[i].name ? chart->series[i].name : "";
        const double words = fmin(plot_text_width(name), NAME_WIDTH_MAX);

        if (x > 4 && x + SWATCH + words > PLOT_WIDTH) {
            x = 4;
            y += LEGEND_LINE;
        }
        if (out) {
            text_add(out, "<g>");
            add_swatch(out, plot_look(chart, i), x, y, bars);
            text_addf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + SWATCH, y);
            plot_add_fitting(out, name, NAME_WIDTH_MAX);
            text_add(out, "</text><title>");
            text_add_escaped(out, name);
            text_add(out, "</title></g>\n");
        }
        x += SWATCH + words + 14;
    }
    return y + 8;
}

void plot_begin(struct plot *plot, double plot_height, bool bars) {
    const double names = legend(NULL, plot->chart, bars);
    const double title = plot->chart->y.title ? TITLE_LINE + 10 : 8;

    plot->top = names + title;
    plot->bottom = plot->top + plot_height;
    plot_open(plot->out, plot->chart, plot->bottom + PLOT_BELOW);
    legend(plot->out, plot->chart, bars);
    if (!plot->chart->y.title)
        return;
    text_addf(plot->out, "<text class=\"axis\" x=\"2\" y=\"%.1f\">", names + 13);
    plot_add_fitting(plot->out, plot->chart->y.title, PLOT_WIDTH - 4);
    text_add(plot->out, "</text>\n");
}

/* ---- axes ---- */

void plot_y_axis(struct plot *plot) {
    struct text *out = plot->out;
    double widest = 0;

    for (unsigned i = 0; i < plot->y.tick_count; i++)
        widest = fmax(widest, plot_text_width(scale_tick_text(&plot->y, i).text));
    plot->left = fmax(plot->left, widest + 10);
    for (unsigned i = 0; i < plot->y.tick_count; i++) {
        const double y =
            plot->bottom - scale_share(&plot->y, plot->y.ticks[i]) * (plot->bottom - plot->top);

        text_addf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", plot->left, y, plot->right);
        text_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                  plot->left - 6, y + 4, scale_tick_text(&plot->y, i).text);
    }
}

void plot_x_title(const struct plot *plot) {
    if (!plot->chart->x.title)
        return;
    text_addf(plot->out, "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
              (plot->left + plot->right) / 2, plot->bottom + 35);
    plot_add_fitting(plot->out, plot->chart->x.title, PLOT_WIDTH - 20);
    text_add(plot->out, "</text>\n");
}

/* Kept inside the picture, where its ends would stand out of it. */
void plot_x_label(const struct plot *plot, double x, const char *words) {
    const double half = fmin(plot_text_width(words), PLOT_WIDTH) / 2;
    const double within = fmin(fmax(x, half), PLOT_WIDTH - half);

    text_addf(plot->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", within,
              plot->bottom + 17);
    plot_add_fitting(plot->out, words, PLOT_WIDTH);
    text_add(plot->out, "</text>\n");
}

size_t plot_labels_apart(size_t count, double band, double widest) {
    size_t power = 1;

    for (;; power *= 10) {
        static const unsigned digits[] = {1, 2, 5};

        for (unsigned i = 0; i < 3; i++) {
            const size_t apart = digits[i] * power;

            if ((double)apart * band >= widest || apart >= count)
                return apart;
        }
    }
}
