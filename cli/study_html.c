// SPDX-License-Identifier: Apache-2.0
#include "cli/figures_parts.h"
#include "cli/page.h"
#include "cli/report.h"
#include "cli/study_show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "every 4": of so many checkpoints, one is sent. */
static struct study_label every(const struct study_interval *interval) {
    struct study_label label;

    snprintf(label.text, sizeof label.text, "every %u", interval->k);
    return label;
}

static double density_of(const struct study_interval *interval) {
    return report_share((double)interval->changed, (double)interval->elements);
}

/* ---- the large numbers ---- */

static void add_facts(struct text *out, const struct study *study) {
    const struct study_interval *each = &study->intervals[0];
    const double again = report_share((double)each->recurrence.again, (double)each->recurrence.of);
    char value[64];

    page_facts_begin(out);
    page_fact(out, "Weights that change", chart_number(density_of(each), CHART_PERCENT).text,
              "from checkpoint to checkpoint");
    if (!study->quick) {
        const struct study_encoding own = study_encoding(each, each->count_after ? 1 : 0);

        page_fact(out, "A patch", chart_number(own.bytes, CHART_BYTES).text,
                  each->count_after ? "on average, with history" : "on average");
        snprintf(value, sizeof value, "%.0fx", own.dense / own.bytes);
        page_fact(out, "Smaller", value, "whole state : patch");
        snprintf(value, sizeof value, "%.2f", 8 * own.bytes / own.changed);
        page_fact(out, "Bits per change", own.changed > 0 ? value : "-", "with all headers");
    }
    snprintf(value, sizeof value, "%.2f",
             each->count_after ? study_floor_history(&each->floor)
                               : study_floor_stateless(&each->floor));
    page_fact(out, "Entropy floor", each->changed ? value : "-",
              each->count_after ? "bits per change, with history" : "bits per change");
    if (each->recurrence.of)
        page_fact(out, "Changed before, too", chart_number(again, CHART_PERCENT).text,
                  "of the changes");
    page_facts_end(out);
}

/* ---- how sparse ---- */

static void add_density(struct text *out, const struct study *study) {
    double k[STUDY_INTERVALS], y[STUDY_INTERVALS];
    const struct chart_series series = {
        .name = "changed", .x = k, .y = y, .count = study->interval_count};

    for (unsigned i = 0; i < study->interval_count; i++) {
        k[i] = study->intervals[i].k;
        y[i] = density_of(&study->intervals[i]);
    }
    page_figure_begin(out, "Weights that change, by distance");
    chart_lines(
        out, &(struct chart){.label = "Line: share of weights that change, by the number "
                                      "of checkpoints from patch to patch",
                             .x = {.title = "checkpoints from patch to patch", .unit = CHART_WHOLE},
                             .y = {.title = "weights that change", .unit = CHART_PERCENT},
                             .series = &series,
                             .series_count = 1});
    page_figure_end(out, "Who sends less often sends more at once, but less in all: many weights "
                         "change again, and some return.");
}

static void add_steps_density(struct text *out, const struct study *study) {
    const struct study_interval *each = &study->intervals[0];
    double *x = figure_numbers(out, each->count), *y = figure_numbers(out, each->count);
    const struct chart_series series = {.name = "changed", .x = x, .y = y, .count = each->count};

    for (size_t i = 0; x && y && i < each->count; i++) {
        x[i] = each->patches[i].to;
        y[i] = report_share((double)each->patches[i].changed * (double)each->count,
                            (double)each->elements);
    }
    if (x && y) {
        page_figure_begin(out, "Weights that change, step by step");
        chart_lines(out,
                    &(struct chart){.label = "Line: share of weights that change, by checkpoint",
                                    .x = {.title = "checkpoint", .unit = CHART_WHOLE},
                                    .y = {.title = "weights that change", .unit = CHART_PERCENT},
                                    .series = &series,
                                    .series_count = 1});
        page_figure_end(out, "The first steps of a run are often denser.");
    }
    free(x);
    free(y);
}

/* ---- sizes ---- */

static void add_sizes(struct text *out, const struct study *study) {
    double bytes[STUDY_ENCODINGS];
    const char *names[STUDY_ENCODINGS];
    const struct chart_series series = {.name = "bytes", .y = bytes, .count = STUDY_ENCODINGS};

    for (unsigned e = 0; e < STUDY_ENCODINGS; e++) {
        const struct study_encoding encoding = study_encoding(&study->intervals[0], e);

        bytes[e] = encoding.bytes;
        names[e] = encoding.title;
    }
    page_figure_begin(out, "What a patch takes");
    chart_rows(
        out, &(struct chart){
                 .label = "Bars: bytes of a patch from checkpoint to "
                          "checkpoint, by encoding",
                 .y = {.title = "bytes of a patch, logarithmic", .unit = CHART_BYTES, .log = true},
                 .series = &series,
                 .series_count = 1,
                 .names = names});
    page_figure_end(out, "From checkpoint to checkpoint, on average. How each was found is in the "
                         "table.");
}

static void add_bits(struct text *out, const struct study *study) {
    static const char *const titles[] = {"ulpsync", "floor", "ulpsync, with history",
                                         "floor, with history"};
    double bits[4][STUDY_INTERVALS];
    struct study_label labels[STUDY_INTERVALS];
    const char *names[STUDY_INTERVALS];
    struct chart_series series[4];
    unsigned used = 0;

    for (unsigned i = 0; i < study->interval_count; i++) {
        const struct study_interval *interval = &study->intervals[i];

        labels[i] = every(interval);
        names[i] = labels[i].text;
        bits[0][i] = report_share(8 * (double)interval->bytes, (double)interval->changed);
        bits[1][i] = study_floor_stateless(&interval->floor);
        bits[2][i] =
            report_share(8 * (double)interval->history_bytes, (double)interval->changed_after);
        bits[3][i] = study_floor_history(&interval->floor);
    }
    for (unsigned s = study->quick; s < 4; s += study->quick ? 2 : 1)
        series[used++] =
            (struct chart_series){.name = titles[s], .y = bits[s], .count = study->interval_count};
    page_figure_begin(out, "Bits per change, and their floor");
    chart_bars(out, &(struct chart){.label = "Bars: bits per change as ulpsync sends them, and the "
                                             "entropy floor",
                                    .x = {.title = "a patch for"},
                                    .y = {.title = "bits per change"},
                                    .series = series,
                                    .series_count = used,
                                    .names = names});
    page_figure_end(out, "The floor is the entropy of places and steps given the old weight's "
                         "exponent and, with history, its previous move.");
}

static void add_sizes_table(struct text *out, const struct study *study) {
    struct page_column columns[STUDY_INTERVALS + 4] = {{"Encoding", PAGE_TEXT}};
    struct study_label titles[STUDY_INTERVALS];
    size_t count = 1;

    for (unsigned i = 0; i < study->interval_count; i++) {
        titles[i] = every(&study->intervals[i]);
        columns[count++] = (struct page_column){titles[i].text, PAGE_NUMBER};
    }
    columns[count++] = (struct page_column){"Bits per change", PAGE_NUMBER};
    columns[count++] = (struct page_column){"How", PAGE_TEXT};
    columns[count++] = (struct page_column){"Used by", PAGE_TEXT};
    page_table_begin(out, "Bytes of a patch, on average, by how often one is sent", columns, count);
    for (unsigned e = 0; e < STUDY_ENCODINGS; e++) {
        const struct study_encoding first = study_encoding(&study->intervals[0], e);
        struct chart_number numbers[STUDY_INTERVALS];
        char bits[32];
        const char *cells[STUDY_INTERVALS + 4] = {first.title};
        size_t cell = 1;

        for (unsigned i = 0; i < study->interval_count; i++) {
            numbers[i] = chart_number(study_encoding(&study->intervals[i], e).bytes, CHART_BYTES);
            cells[cell++] = numbers[i].text;
        }
        snprintf(bits, sizeof bits, "%.2f", 8 * first.bytes / first.changed);
        cells[cell++] = isfinite(first.bytes) && first.changed > 0 ? bits : "-";
        cells[cell++] = wire_basis_name(first.basis);
        cells[cell++] = first.users;
        page_row(out, columns, cells, count);
    }
    page_table_end(out);
    page_paragraph(out, "Encoded: the bytes were made. Counted: the size follows from what was "
                        "counted, to the byte. Sampled: a part of the state was squeezed, and "
                        "scaled. Estimate: a formula, which leaves out headers. Bits per change "
                        "are those from checkpoint to checkpoint.");
}

/* ---- which weights ---- */

/* One kind of elements, in all intervals. Kinds are in the same order in each. */
static void add_exponents(struct text *out, const struct study *study, size_t kind) {
    const struct study_counts *counts = study->intervals[0].kinds[kind];
    const struct study_label label = study_kind_label(study, &counts->kind);
    double x[EXPONENT_CELLS], y[STUDY_INTERVALS][EXPONENT_CELLS], all[EXPONENT_CELLS];
    struct study_label titles[STUDY_INTERVALS];
    struct chart_series series[STUDY_INTERVALS];
    const struct chart_series elements = {
        .name = "weights", .x = x, .y = all, .count = EXPONENT_CELLS};
    unsigned first, last;
    char title[128];

    if (!study_cells(counts, &first, &last))
        return;
    for (unsigned cell = 0; cell < EXPONENT_CELLS; cell++) {
        const bool there = cell >= first && cell <= last;

        x[cell] = study_cell_power(study, &counts->kind, cell);
        all[cell] =
            there ? (double)counts->elements[cell] / (double)study->intervals[0].count : NAN;
        for (unsigned i = 0; i < study->interval_count; i++) {
            const struct study_counts *of = study->intervals[i].kinds[kind];

            y[i][cell] = report_share((double)study_total(of->steps[cell], STUDY_SYMBOLS),
                                      (double)of->elements[cell]);
        }
    }
    for (unsigned i = 0; i < study->interval_count; i++) {
        titles[i] = every(&study->intervals[i]);
        series[i] =
            (struct chart_series){titles[i].text, x + first, y[i] + first, last - first + 1};
    }
    snprintf(title, sizeof title, "Chance to change, by size of the weight (%s)", label.text);
    page_figure_begin(out, title);
    chart_lines(out, &(struct chart){
                         .label = title,
                         .x = {.title = "exponent of the old weight, base 2", .unit = CHART_WHOLE},
                         .y = {.title = "changed", .unit = CHART_PERCENT},
                         .series = series,
                         .series_count = study->interval_count});
    page_figure_end(out, "An update that is small beside the weight is lost in rounding, so small "
                         "weights change and large ones stay.");
    snprintf(title, sizeof title, "Weights by their size (%s)", label.text);
    page_figure_begin(out, title);
    chart_bars(out, &(struct chart){.label = title,
                                    .x = {.title = "exponent, base 2", .unit = CHART_WHOLE},
                                    .y = {.title = "weights", .unit = CHART_COUNT},
                                    .series = &(struct chart_series){elements.name, x + first,
                                                                     all + first, last - first + 1},
                                    .series_count = 1});
    page_figure_end(out, "Where the weights are: the few small ones are those that change.");
}

static void add_steps(struct text *out, const struct study *study) {
    const struct study_histogram histogram = study_histogram(&study->intervals[0]);
    const double changed = (double)study->intervals[0].changed;
    double down[STUDY_BUCKETS], up[STUDY_BUCKETS];
    struct study_label labels[STUDY_BUCKETS];
    const char *names[STUDY_BUCKETS];
    const struct chart_series series[] = {{"down", NULL, down, histogram.used},
                                          {"up", NULL, up, histogram.used}};

    for (unsigned b = 0; b < histogram.used; b++) {
        down[b] = (double)histogram.down[b] / changed;
        up[b] = (double)histogram.up[b] / changed;
        labels[b] = study_bucket_label(b);
        names[b] = labels[b].text;
    }
    page_figure_begin(out, "By how many ulps");
    chart_bars(out, &(struct chart){.label = "Bars: share of changes by the size of their step in "
                                             "units in the last place, down and up",
                                    .x = {.title = "step of the bit pattern, in ulps"},
                                    .y = {.title = "share of the changes", .unit = CHART_PERCENT},
                                    .series = series,
                                    .series_count = 2,
                                    .names = names});
    page_figure_end(out, "From checkpoint to checkpoint. The largest steps are those of weights "
                         "that change their sign.");
}

/* ---- where ---- */

static void add_groups(struct text *out, const char *title, const struct group *groups,
                       size_t count) {
    double *y = figure_numbers(out, count);
    const char **names = figure_memory(out, count, sizeof *names);
    const struct chart_series series = {.name = "changed", .y = y, .count = count};

    for (size_t i = 0; y && names && i < count; i++) {
        y[i] = report_share((double)groups[i].total.changed, (double)groups[i].total.elements);
        names[i] = strndup(groups[i].name, groups[i].length);
        out->out_of_memory = out->out_of_memory || !names[i];
    }
    if (!out->out_of_memory) {
        page_figure_begin(out, title);
        chart_rows(out,
                   &(struct chart){.label = title,
                                   .y = {.title = "weights that change", .unit = CHART_PERCENT},
                                   .series = &series,
                                   .series_count = 1,
                                   .names = names});
        page_figure_end(out, "From checkpoint to checkpoint.");
    }
    for (size_t i = 0; names && i < count; i++)
        free((void *)(uintptr_t)names[i]);
    free(names);
    free(y);
}

/* ---- the page ---- */

static void add_body(struct text *out, const struct study *study) {
    const struct study_interval *each = &study->intervals[0];

    add_facts(out, study);
    page_section(out, "How sparse");
    page_figures_begin(out);
    add_density(out, study);
    add_steps_density(out, study);
    page_figures_end(out);
    page_section(out, "What it takes");
    page_figures_begin(out);
    if (!study->quick)
        add_sizes(out, study);
    if (each->changed)
        add_bits(out, study);
    page_figures_end(out);
    if (!study->quick)
        add_sizes_table(out, study);
    page_section(out, "Which weights");
    page_figures_begin(out);
    for (size_t k = 0; k < each->kind_count; k++)
        add_exponents(out, study, k);
    if (each->changed)
        add_steps(out, study);
    page_figures_end(out);
    page_section(out, "Where");
    page_figures_begin(out);
    add_groups(out, "By layer", each->layers, each->layer_count);
    add_groups(out, "By kind of tensor", each->parts, each->part_count);
    page_figures_end(out);
}

enum ulp_status study_write_html(const struct study *study, const char *path) {
    const struct study_interval *each = &study->intervals[0];
    struct text page = {0};
    char subtitle[160];
    enum ulp_status status;

    snprintf(subtitle, sizeof subtitle, "%u checkpoints of %s elements in %zu tensors, %s each",
             study->count, readable_count(each->elements / each->count).text,
             ulp_model_count(study->first), readable_bytes(ulp_model_bytes(study->first)).text);
    page_begin(&page, &(struct page_head){.title = "How sparse this run is", .subtitle = subtitle});
    add_body(&page, study);
    page_end(&page);
    status = page_write(&page, path);
    text_release(&page);
    return status;
}
