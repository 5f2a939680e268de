// SPDX-License-Identifier: Apache-2.0
#include "cli/figures_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The end of the year 9999: whose clock says more is not asked for the time. */
#define FIGURE_TIME_MS_MAX UINT64_C(253402300799999)

void *figure_memory(struct text *out, size_t count, size_t bytes) {
    void *memory = calloc(count + 1, bytes);

    out->out_of_memory = out->out_of_memory || !memory;
    return memory;
}

double *figure_numbers(struct text *out, size_t count) {
    return figure_memory(out, count, sizeof(double));
}

bool figure_by_version(const struct story *story) {
    for (size_t i = 1; i < story->step_count; i++) {
        if (story->steps[i].step <= story->steps[i - 1].step)
            return true;
    }
    return false;
}

struct chart_axis figure_x_axis(const struct story *story) {
    return (struct chart_axis){.title = figure_by_version(story) ? "version" : "step",
                               .unit = CHART_WHOLE};
}

double figure_x(const struct story *story, uint64_t version, uint64_t step) {
    return (double)(figure_by_version(story) ? version : step);
}

double *figure_steps(struct text *out, const struct story *story) {
    const bool by_version = figure_by_version(story);
    double *x = figure_numbers(out, story->step_count);

    for (size_t i = 0; x && i < story->step_count; i++)
        x[i] = (double)(by_version ? story->steps[i].version : story->steps[i].step);
    return x;
}

struct figure_time figure_time(uint64_t time_ms) {
    const time_t seconds = (time_t)(time_ms / 1000);
    struct figure_time out = {"-"};
    struct tm parts;

    if (time_ms <= FIGURE_TIME_MS_MAX && gmtime_r(&seconds, &parts))
        strftime(out.text, sizeof out.text, "%Y-%m-%d %H:%M:%S", &parts);
    return out;
}

void figure_notef(struct text *out, const char *format, ...) {
    char words[640];
    va_list more;

    va_start(more, format);
    vsnprintf(words, sizeof words, format, more);
    va_end(more);
    page_note(out, words);
}

bool figure_told(struct text *out, const struct story *story, const char *missing) {
    if (story->told)
        return true;
    if (story->told_status)
        figure_notef(out, "%s: what was told of this run could not be read (%s).", missing,
                     story->told_message);
    else
        figure_notef(out, "%s: nobody told of it. Publish and follow with --tell to see it here.",
                     missing);
    return false;
}
