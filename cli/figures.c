// SPDX-License-Identifier: Apache-2.0
#include "cli/figures_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the large numbers ---- */

struct totals {
    double full, patch, changed, elements, bits;
};

/* Of the steps that have a patch. */
static struct totals totals_of(const struct story *story) {
    struct totals sum = {0};

    for (size_t i = 0; i < story->step_count; i++) {
        const struct story_step *step = &story->steps[i];

        if (!step->patch_bytes)
            continue;
        sum.patch += (double)step->patch_bytes;
        sum.changed += (double)step->changed;
        sum.elements += (double)step->elements;
        sum.full += (double)step->full_bytes;
    }
    return sum;
}

static void size_facts(struct text *out, const struct story *story) {
    const struct totals sum = totals_of(story);
    char value[64], more[96];

    if (story->full_bytes) {
        snprintf(more, sizeof more, "%s weights", readable_count(story->head.elements).text);
        page_fact(out, "Full state", readable_bytes(story->full_bytes).text, more);
    }
    if (sum.elements > 0) {
        snprintf(more, sizeof more, "of the weights change in a step");
        page_fact(out, "Density", chart_number(sum.changed / sum.elements, CHART_PERCENT).text,
                  more);
    }
    if (sum.changed > 0) {
        snprintf(more, sizeof more, "%.2f bits for each change", 8 * sum.patch / sum.changed);
        page_fact(out, "All patches", chart_number(sum.patch, CHART_BYTES).text, more);
    }
    if (sum.patch > 0 && sum.full > 0) {
        snprintf(value, sizeof value, "%.1fx", sum.full / sum.patch);
        page_fact(out, "Smaller than full", value, "all full states : all patches");
    }
}

static void note_fact(struct text *out, const struct story *story) {
    const int note = story_main_note(story);
    double first = NAN, last = NAN;
    char value[96];

    for (size_t i = 0; note >= 0 && i < story->step_count; i++) {
        const double told = story->steps[i].notes[note];

        first = isfinite(first) ? first : told;
        last = isfinite(told) ? told : last;
    }
    if (!isfinite(last))
        return;
    snprintf(value, sizeof value, "%.4g \xe2\x86\x92 %.4g", first, last);
    page_fact(out, story->note_names[note], value, "first and last that was told");
}

static void follower_facts(struct text *out, const struct story *story) {
    size_t current = 0;
    double *medians = figure_numbers(out, story->follower_count);
    char value[64], more[64];

    for (size_t i = 0; i < story->follower_count; i++)
        current += !story_lag(story, &story->followers[i]);
    for (size_t i = 0; medians && i < story->follower_count; i++)
        medians[i] = story_active_median(&story->followers[i]) / 1e3;
    if (story->follower_count && medians) {
        const double median = story_median(medians, story->follower_count);

        snprintf(value, sizeof value, "%zu", story->follower_count);
        snprintf(more, sizeof more, "%zu hold the newest version", current);
        page_fact(out, "Followers", value, more);
        if (isfinite(median))
            page_fact(out, "Publish to active", chart_number(median, CHART_SECONDS).text,
                      "median of the followers' medians");
    }
    free(medians);
}

void figures_headline(struct text *out, const struct story *story) {
    const struct story_step *newest = story_newest(story);
    char value[64], more[96];

    if (!newest)
        return;
    page_facts_begin(out);
    snprintf(value, sizeof value, "%llu", (unsigned long long)newest->version);
    snprintf(more, sizeof more, "step %llu, %s UTC", (unsigned long long)newest->step,
             figure_time(newest->time_ms).text);
    page_fact(out, "Newest version", value, more);
    note_fact(out, story);
    size_facts(out, story);
    follower_facts(out, story);
    page_facts_end(out);
}

/* ---- notes ---- */

static void note_figure(struct text *out, const struct story *story, unsigned note) {
    const char *name = story->note_names[note];
    double *x = figure_steps(out, story), *y = figure_numbers(out, story->step_count);
    const struct chart_series series = {.name = name, .x = x, .y = y, .count = story->step_count};
    char title[96], label[192];
    size_t told = 0;

    snprintf(title, sizeof title, "%s by step", name);
    for (size_t i = 0; y && i < story->step_count; i++) {
        y[i] = story->steps[i].notes[note];
        told += isfinite(y[i]) != 0;
    }
    snprintf(label, sizeof label, "Line: %s by step, told for %zu of %zu versions", name, told,
             story->step_count);
    if (x && y && told) {
        page_figure_begin(out, title);
        chart_lines(out, &(struct chart){.label = label,
                                         .x = figure_x_axis(story),
                                         .y = {.title = name, .anywhere = true},
                                         .series = &series,
                                         .series_count = 1});
        page_figure_end(out, "As the trainer told it with each version.");
    }
    free(x);
    free(y);
}

void figures_notes(struct text *out, const struct story *story) {
    const int first = story_main_note(story);

    if (first >= 0)
        note_figure(out, story, (unsigned)first);
    for (unsigned i = 0; i < story->note_count; i++) {
        if ((int)i != first)
            note_figure(out, story, i);
    }
}

/* ---- what changes ---- */

void figures_density(struct text *out, const struct story *story) {
    double *x = figure_steps(out, story), *y = figure_numbers(out, story->step_count);
    const struct chart_series series = {
        .name = "density", .x = x, .y = y, .count = story->step_count};
    char label[160];
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; y && i < story->step_count; i++) {
        y[i] = story->steps[i].density;
        low = isfinite(y[i]) ? fmin(low, y[i]) : low;
        high = isfinite(y[i]) ? fmax(high, y[i]) : high;
    }
    if (x && y && low <= high) {
        snprintf(label, sizeof label, "Line: share of the weights that change, from %s to %s",
                 chart_number(low, CHART_PERCENT).text, chart_number(high, CHART_PERCENT).text);
        page_figure_begin(out, "Density by step");
        chart_lines(out,
                    &(struct chart){.label = label,
                                    .x = figure_x_axis(story),
                                    .y = {.title = "weights that change", .unit = CHART_PERCENT},
                                    .series = &series,
                                    .series_count = 1});
        page_figure_end(out, "The share of all weights that differ from the version before.");
    }
    free(x);
    free(y);
}

static const char bytes_caption[] = "Each step's patch beside the full state that it stands for.";
static const char floor_caption[] =
    "Each step's patch beside the full state that it stands for. The entropy floor is the in-sample "
    "conditional entropy of the step: which weights change, given the exponent of the old weight, "
    "plus by how many units in the last place, given the same exponent, with the step's own "
    "statistics known for nothing. Patches that use the version before as history can be below it.";

/* Fills the series that there are; returns their number. */
static size_t bytes_series(const struct story *story, const struct replay *replay, double *y,
                           const double *x, struct chart_series series[3]) {
    const size_t count = story->step_count;
    double *patch = y, *full = y + count, *floor = y + 2 * count;
    size_t floors = 0;

    for (size_t i = 0; i < count; i++) {
        const struct story_step *step = &story->steps[i];
        const struct replay_step *seen = replay ? replay_find(replay, step->version) : NULL;

        patch[i] = step->patch_bytes ? (double)step->patch_bytes : NAN;
        full[i] = step->full_bytes ? (double)step->full_bytes : NAN;
        floor[i] = seen ? seen->floor_bytes : NAN;
        floors += floor[i] > 0;
    }
    series[0] = (struct chart_series){"full state", x, full, count};
    series[1] = (struct chart_series){"patch", x, patch, count};
    series[2] = (struct chart_series){"entropy floor", x, floor, count};
    return floors ? 3 : 2;
}

void figures_bytes(struct text *out, const struct story *story, const struct replay *replay) {
    double *x = figure_steps(out, story), *y = figure_numbers(out, 3 * story->step_count);
    struct chart_series series[3];
    const size_t count = x && y ? bytes_series(story, replay, y, x, series) : 0;
    const struct totals sum = totals_of(story);

    if (count && sum.patch > 0) {
        page_figure_begin(out, "Bytes of each step");
        chart_lines(out,
                    &(struct chart){
                        .label = count == 3 ? "Lines: bytes of the full state, of each patch, "
                                              "and of the entropy floor"
                                            : "Lines: bytes of the full state and of each patch",
                        .x = figure_x_axis(story),
                        .y = {.title = "bytes of a step (log)", .unit = CHART_BYTES, .log = true},
                        .series = series,
                        .series_count = count});
        page_figure_end(out, count == 3 ? floor_caption : bytes_caption);
    }
    free(x);
    free(y);
}

/* On a log axis beside a full state, patch and floor are hard to tell apart; for each change they
 * are not. */
void figures_bits(struct text *out, const struct story *story, const struct replay *replay) {
    const size_t count = story->step_count;
    double *x = figure_steps(out, story), *y = figure_numbers(out, 2 * count);
    bool any = false, floors = false;

    for (size_t i = 0; y && i < count; i++) {
        const struct story_step *step = &story->steps[i];
        const struct replay_step *seen = replay ? replay_find(replay, step->version) : NULL;
        const double changes = step->changed ? (double)step->changed : NAN;

        y[i] = step->patch_bytes ? 8 * (double)step->patch_bytes / changes : NAN;
        y[count + i] = seen && seen->changed ? 8 * seen->floor_bytes / (double)seen->changed : NAN;
        any = any || isfinite(y[i]);
        floors = floors || isfinite(y[count + i]);
    }
    if (x && y && any) {
        const struct chart_series series[] = {{"patch", x, y, count},
                                              {"entropy floor", x, y + count, count}};
        static const unsigned looks[] = {1, 2}; /* as in the figure of bytes */

        page_figure_begin(out, "Bits of each change");
        chart_lines(out, &(struct chart){.label = "Lines: bits for each weight that changes, of "
                                                  "the patch and of the entropy floor",
                                         .x = figure_x_axis(story),
                                         .y = {.title = "bits for each change"},
                                         .series = series,
                                         .series_count = floors ? 2 : 1,
                                         .looks = looks});
        page_figure_end(out, "A patch has headers, tables and checksums too, which weigh less the "
                             "more weights change.");
    }
    free(x);
    free(y);
}

/* A column for each step that was replayed, a row for each layer. */
static void draw_layers(struct text *out, const struct story *story, const struct replay *replay) {
    const size_t rows = replay->layer_count, columns = replay->step_count;
    struct chart_series *series = figure_memory(out, rows, sizeof *series);
    double *x = figure_numbers(out, columns), *y = figure_numbers(out, rows * columns);
    char caption[256];

    snprintf(
        caption, sizeof caption,
        "%zu of %zu rows: a row is a block of the model, or a tensor that is in none. Found by "
        "replaying %zu versions that the run still keeps.",
        rows, replay->layer_total, columns);
    for (size_t i = 0; x && i < columns; i++)
        x[i] = figure_x(story, replay->steps[i].version, replay->steps[i].step);
    for (size_t row = 0; series && x && y && row < rows; row++) {
        for (size_t i = 0; i < columns; i++)
            y[row * columns + i] = replay->steps[i].layer_density[row];
        series[row] = (struct chart_series){replay->layers[row], x, y + row * columns, columns};
    }
    if (series && x && y) {
        page_figure_begin(out, "Density by layer and step");
        chart_heat(out,
                   &(struct chart){.label = "Map of shades: the share of each layer's weights "
                                            "that change in each step",
                                   .x = figure_x_axis(story),
                                   .y = {.title = "weights that change", .unit = CHART_PERCENT},
                                   .series = series,
                                   .series_count = rows});
        page_figure_end(out, caption);
    }
    free(series);
    free(x);
    free(y);
}

void figures_layers(struct text *out, const struct story *story, const struct replay *replay) {
    if (replay->step_count && replay->layer_count)
        draw_layers(out, story, replay);
}

/* ---- all of it ---- */

static void missing_figures(struct text *out, const struct story *story,
                            const struct replay *replay) {
    if (story->step_count && totals_of(story).patch <= 0)
        page_note(out, "Density and bytes by step: the run has no patch yet. The next version that "
                       "is published shows what changes.");
    if (replay && *replay->missing)
        page_note(out, replay->missing);
    if (figure_told(out, story, "Reward, timings and followers")) {
        if (!story->note_count)
            page_note(out, "Reward: the trainer told none. Give one with each version: "
                           "publish --tell NAME --note reward=0.5.");
        if (!story->follower_count)
            page_note(out, "Followers: none has told of itself. Follow with --tell NAME to see "
                           "them here.");
    }
}

void figures_of_story(struct text *out, const struct story *story, const struct replay *replay) {
    if (!story->step_count) {
        page_note(out, "The run has no version yet.");
        return;
    }
    figures_headline(out, story);
    missing_figures(out, story, replay);
    if (story->note_count || totals_of(story).patch > 0) {
        page_section(out, "Learning and size");
        page_figures_begin(out);
        figures_notes(out, story);
        figures_bytes(out, story, replay);
        figures_density(out, story);
        figures_bits(out, story, replay);
        if (replay)
            figures_layers(out, story, replay);
        page_figures_end(out);
    }
    if (story->told) {
        page_section(out, "Time");
        page_figures_begin(out);
        figures_publish_times(out, story);
        figures_activation(out, story);
        figures_follow_times(out, story);
        page_figures_end(out);
        figures_followers_table(out, story);
    }
    page_section(out, "Last steps");
    figures_steps_table(out, story);
}
