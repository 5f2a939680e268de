// SPDX-License-Identifier: Apache-2.0
#include "cli/chart_frame.h"

#include "cli/output.h"

#include <math.h>
#include <string.h>

#define LETTER                                                                                     \
    6.7 /* mean width of one at the size that chart_style has; wide scripts have twice it */
#define LEGEND_LINE 19.0
#define SWATCH 26.0
#define NAME_WIDTH_MAX 200.0
#define TITLE_LINE 20.0

const struct range range_empty = {INFINITY, -INFINITY};

bool range_add(struct range *range, const struct scale *scale, double value) {
    if (!scale_shows(scale, value))
        return false;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
    return true;
}

unsigned frame_look(const struct chart *chart, size_t series) {
    return chart->looks ? chart->looks[series] : (unsigned)series;
}

/* ---- words ---- */

static double character_width(const char *words, size_t length) {
    if (!length)
        return 4 * LETTER; /* as "\x1b" */
    return (unsigned char)*words >= 0xe1 ? 2 * LETTER : LETTER;
}

double frame_text_width(const char *words) {
    double width = 0;

    while (*words) {
        const size_t length = safe_character(words);

        width += character_width(words, length);
        words += length ? length : 1;
    }
    return width;
}

/* Names differ at their ends ("...mlp.up", "...mlp.down"), so of a long one the middle goes. */
void frame_add_fitting(struct text *out, const char *words, double width) {
    const char *head = words, *tail = words;
    double left = frame_text_width(words), taken = 0;

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

void frame_open(struct text *out, const struct chart *chart, double height) {
    text_addf(out, "<svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
              FRAME_WIDTH, height);
    text_add_escaped(out, chart->label ? chart->label : "");
    text_add(out, "\">\n");
}

void frame_close(struct text *out) {
    text_add(out, "</svg>\n");
}

void frame_nothing(struct text *out, const struct chart *chart) {
    frame_open(out, chart, 60);
    text_addf(out, "<text x=\"%.0f\" y=\"34\" text-anchor=\"middle\">no data</text>\n",
              FRAME_WIDTH / 2);
    frame_close(out);
}

static void add_swatch(struct text *out, unsigned look, double x, double y, bool bars) {
    const unsigned colour = look % FRAME_COLOURS;

    if (bars) {
        text_addf(out, "<path class=\"h%u\" d=\"M%.1f %.1fh14v10h-14z\"/>", colour, x + 6, y - 9);
        return;
    }
    text_addf(out, "<path class=\"line c%u d%u\" d=\"M%.1f %.1fh20\"/>", colour,
              look % FRAME_DASHES, x, y - 4);
    frame_marker(out, look, x + 10, y - 4, 3);
    text_add(out, "/>");
}

/* Where the names stand; draws nothing without `out`. Returns where it ends. */
static double legend(struct text *out, const struct chart *chart, bool bars) {
    double x = 4, y = LEGEND_LINE - 5;

    if (chart->series_count < 2)
        return 0;
    for (size_t i = 0; i < chart->series_count; i++) {
        const char *name = chart->series[i].name ? chart->series[i].name : "";
        const double words = fmin(frame_text_width(name), NAME_WIDTH_MAX);

        if (x > 4 && x + SWATCH + words > FRAME_WIDTH) {
            x = 4;
            y += LEGEND_LINE;
        }
        if (out) {
            text_add(out, "<g>");
            add_swatch(out, frame_look(chart, i), x, y, bars);
            text_addf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + SWATCH, y);
            frame_add_fitting(out, name, NAME_WIDTH_MAX);
            text_add(out, "</text><title>");
            text_add_escaped(out, name);
            text_add(out, "</title></g>\n");
        }
        x += SWATCH + words + 14;
    }
    return y + 8;
}

void frame_begin(struct frame *frame, double plot_height, bool bars) {
    const double names = legend(NULL, frame->chart, bars);
    const double title = frame->chart->y.title ? TITLE_LINE + 10 : 8;

    frame->top = names + title;
    frame->bottom = frame->top + plot_height;
    frame_open(frame->out, frame->chart, frame->bottom + FRAME_BELOW);
    legend(frame->out, frame->chart, bars);
    if (!frame->chart->y.title)
        return;
    text_addf(frame->out, "<text class=\"axis\" x=\"2\" y=\"%.1f\">", names + 13);
    frame_add_fitting(frame->out, frame->chart->y.title, FRAME_WIDTH - 4);
    text_add(frame->out, "</text>\n");
}

/* ---- axes ---- */

void frame_y_axis(struct frame *frame) {
    struct text *out = frame->out;
    double widest = 0;

    for (unsigned i = 0; i < frame->y.tick_count; i++)
        widest = fmax(widest, frame_text_width(scale_tick_text(&frame->y, i).text));
    frame->left = fmax(frame->left, widest + 10);
    for (unsigned i = 0; i < frame->y.tick_count; i++) {
        const double y = frame->bottom -
                         scale_share(&frame->y, frame->y.ticks[i]) * (frame->bottom - frame->top);

        text_addf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", frame->left, y,
                  frame->right);
        text_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                  frame->left - 6, y + 4, scale_tick_text(&frame->y, i).text);
    }
}

void frame_x_title(const struct frame *frame) {
    if (!frame->chart->x.title)
        return;
    text_addf(frame->out, "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
              (frame->left + frame->right) / 2, frame->bottom + 35);
    frame_add_fitting(frame->out, frame->chart->x.title, FRAME_WIDTH - 20);
    text_add(frame->out, "</text>\n");
}

/* Kept inside the picture, where its ends would stand out of it. */
void frame_x_label(const struct frame *frame, double x, const char *words) {
    const double half = fmin(frame_text_width(words), FRAME_WIDTH) / 2;
    const double within = fmin(fmax(x, half), FRAME_WIDTH - half);

    text_addf(frame->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", within,
              frame->bottom + 17);
    frame_add_fitting(frame->out, words, FRAME_WIDTH);
    text_add(frame->out, "</text>\n");
}

size_t frame_labels_apart(size_t count, double band, double widest) {
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
