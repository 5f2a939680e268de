// SPDX-License-Identifier: Apache-2.0
#include "cli/figures_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Lines of more followers would be a knot; then each has a bar. */
#define LINES_MAX 8u

/* What takes less than this share of the whole is "other": it could not be seen. */
#define PHASE_SHARE_MIN 0.01

/* Those of them that can be seen. */
struct phase_bars {
    struct chart_series series[RUN_PHASES + 1];
    unsigned looks[RUN_PHASES + 1];
    size_t count;
};

/* Phases of many places, a step or a follower, in seconds: [phase * count + place]. */
struct phases {
    double *seconds;
    size_t count;
};

static const char *const phase_meanings[RUN_PHASES] = {
    "poll: reading the log",     "fetch: waiting for bytes",     "verify: opening and checking",
    "decode: on all threads",    "digest: keeping roots",        "stage: writing aside",
    "apply: weights change",     "encode: comparing and coding", "store: waiting for the store",
    "commit: adding the record",
};

/* The same phase looks the same everywhere. */
static const unsigned phase_looks[RUN_PHASES] = {0, 1, 2, 3, 4, 5, 6, 8, 9, 10};
#define OTHER_LOOK 7u

static double phase_total(const struct phases *phases, unsigned phase) {
    double sum = 0;

    for (size_t i = 0; i < phases->count; i++) {
        const double seconds = phases->seconds[phase * phases->count + i];

        sum += isfinite(seconds) ? seconds : 0;
    }
    return sum;
}

static void add_bar(struct phase_bars *bars, const char *name, unsigned look, const double *x,
                    const double *seconds, size_t count) {
    bars->series[bars->count] = (struct chart_series){name, x, seconds, count};
    bars->looks[bars->count++] = look;
}

/* Those that can be seen, and the rest as one. */
static struct phase_bars phase_bars(const struct phases *phases, const double *x, double *other) {
    struct phase_bars bars = {.count = 0};
    double all = 0, small = 0;

    for (unsigned i = 0; i < RUN_PHASES; i++)
        all += phase_total(phases, i);
    for (unsigned i = 0; i < RUN_PHASES; i++) {
        const double total = phase_total(phases, i);
        const double *seconds = phases->seconds + i * phases->count;

        if (total > 0 && total >= PHASE_SHARE_MIN * all) {
            add_bar(&bars, phase_meanings[i], phase_looks[i], x, seconds, phases->count);
            continue;
        }
        small += total;
        for (size_t k = 0; k < phases->count; k++)
            other[k] += isfinite(seconds[k]) ? seconds[k] : 0;
    }
    if (small > 0)
        add_bar(&bars, "other", OTHER_LOOK, x, other, phases->count);
    return bars;
}

void figures_publish_times(struct text *out, const struct story *story) {
    struct phases phases = {.count = story->step_count};
    struct phase_bars bars = {.count = 0};
    double *x = figure_steps(out, story), *other = figure_numbers(out, phases.count);

    phases.seconds = figure_numbers(out, RUN_PHASES * phases.count);
    for (size_t i = 0; phases.seconds && i < phases.count; i++) {
        for (unsigned k = 0; k < RUN_PHASES; k++)
            phases.seconds[k * phases.count + i] = story->steps[i].phases_ms[k] / 1e3;
        for (unsigned k = 0; k < RUN_PHASES && !story->steps[i].told; k++)
            phases.seconds[k * phases.count + i] = NAN;
    }
    if (phases.seconds && x && other)
        bars = phase_bars(&phases, x, other);
    if (bars.count) {
        page_figure_begin(out, "Time to publish");
        chart_stacked(out, &(struct chart){.label = "Stacked bars: phases of publishing each step",
                                           .x = figure_x_axis(story),
                                           .y = {.title = "time of a step", .unit = CHART_SECONDS},
                                           .series = bars.series,
                                           .series_count = bars.count,
                                           .looks = bars.looks});
        page_figure_end(out, "As the publisher told it. Phases can overlap, so the whole may have "
                             "taken less than the bar is high.");
    }
    free(phases.seconds);
    free(other);
    free(x);
}

/* The mean of a phase over what a follower told; NaN if it told nothing. */
static double mean_phase(const struct story_follower *follower, unsigned phase) {
    double sum = 0;
    size_t count = 0;

    for (size_t i = 0; i < follower->activation_count; i++) {
        const double ms = follower->activations[i].phases_ms[phase];

        if (!isfinite(ms))
            continue;
        sum += ms;
        count++;
    }
    return count ? sum / (double)count / 1e3 : NAN;
}

static const char **follower_names(struct text *out, const struct story *story) {
    const char **names = figure_memory(out, story->follower_count, sizeof *names);

    for (size_t i = 0; names && i < story->follower_count; i++)
        names[i] = story->followers[i].name;
    return names;
}

void figures_follow_times(struct text *out, const struct story *story) {
    struct phases phases = {.count = story->follower_count};
    struct phase_bars bars = {.count = 0};
    double *other = figure_numbers(out, phases.count);
    const char **names = follower_names(out, story);

    phases.seconds = figure_numbers(out, RUN_PHASES * phases.count);
    for (size_t i = 0; phases.seconds && i < phases.count; i++) {
        for (unsigned k = 0; k < RUN_PHASES; k++)
            phases.seconds[k * phases.count + i] = mean_phase(&story->followers[i], k);
    }
    if (phases.seconds && other && names)
        bars = phase_bars(&phases, NULL, other);
    if (bars.count) {
        page_figure_begin(out, "Time to follow");
        chart_rows(out,
                   &(struct chart){.label = "Stacked bars: mean phases of each follower",
                                   .y = {.title = "mean time of an update", .unit = CHART_SECONDS},
                                   .series = bars.series,
                                   .series_count = bars.count,
                                   .looks = bars.looks,
                                   .names = names});
        page_figure_end(out, "As each follower told it, the mean of its updates. Phases can "
                             "overlap; decode adds up all threads.");
    }
    free(phases.seconds);
    free(other);
    free(names);
}

/* ---- publish to active ---- */

static const char activation_caption[] =
    "From the time at which the publisher's record was made to the time at which the follower held "
    "that version, each by its own clock. A follower that joins late shows how old the version was.";

static void activation_lines(struct text *out, const struct story *story) {
    struct chart_series series[LINES_MAX] = {{0}};
    double *memory[LINES_MAX] = {0};
    const bool by_version = figure_by_version(story);

    for (size_t k = 0; k < story->follower_count; k++) {
        const struct story_follower *follower = &story->followers[k];
        const size_t count = follower->activation_count;

        memory[k] = figure_numbers(out, 2 * count);
        for (size_t i = 0; memory[k] && i < count; i++) {
            const struct story_activation *at = &follower->activations[i];

            memory[k][i] = (double)(by_version ? at->version : at->step);
            memory[k][count + i] = at->publish_to_active_ms / 1e3;
        }
        if (memory[k])
            series[k] = (struct chart_series){follower->name, memory[k], memory[k] + count, count};
    }
    chart_lines(out,
                &(struct chart){
                    .label = "Lines: time from publishing to active, by step, of "
                             "each follower",
                    .x = figure_x_axis(story),
                    .y = {.title = "publish to active (log)", .unit = CHART_SECONDS, .log = true},
                    .series = series,
                    .series_count = story->follower_count});
    for (size_t k = 0; k < LINES_MAX; k++)
        free(memory[k]);
}

static void activation_rows(struct text *out, const struct story *story, double *medians) {
    const char **names = follower_names(out, story);
    const struct chart_series series = {
        .name = "median", .y = medians, .count = story->follower_count};

    if (names)
        chart_rows(out, &(struct chart){
                            .label = "Bars: median time from publishing to active, of "
                                     "each follower",
                            .y = {.title = "median of publish to active", .unit = CHART_SECONDS},
                            .series = &series,
                            .series_count = 1,
                            .names = names});
    free(names);
}

void figures_activation(struct text *out, const struct story *story) {
    double *medians = figure_numbers(out, story->follower_count);
    bool any = false;

    for (size_t i = 0; medians && i < story->follower_count; i++) {
        medians[i] = story_active_median(&story->followers[i]) / 1e3;
        any = any || isfinite(medians[i]);
    }
    if (any) {
        page_figure_begin(out, "Publish to active");
        if (story->follower_count <= LINES_MAX)
            activation_lines(out, story);
        else
            activation_rows(out, story, medians);
        page_figure_end(out, activation_caption);
    }
    free(medians);
}
