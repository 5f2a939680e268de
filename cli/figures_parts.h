// SPDX-License-Identifier: Apache-2.0
/* What the files that draw figures of a story share. */
#ifndef CLI_FIGURES_PARTS_H
#define CLI_FIGURES_PARTS_H

#include "cli/figures.h"

/* Zeroed numbers, to be freed with free(); without memory the page fails in the end, and the answer
 * is NULL. */
double *figure_numbers(struct text *out, size_t count);
void *figure_memory(struct text *out, size_t count, size_t bytes);

/* The x of a version: its step, or where steps go back the version itself, so that it ascends. */
bool figure_by_version(const struct story *story);
struct chart_axis figure_x_axis(const struct story *story);
double figure_x(const struct story *story, uint64_t version, uint64_t step);
double *figure_steps(struct text *out, const struct story *story);

/* A time since 1970 in UTC, "2026-03-01 12:00:00". */
struct figure_time {
    char text[32];
};
struct figure_time figure_time(uint64_t time_ms);

/* page_note() with words made like printf()'s. */
void figure_notef(struct text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether anything was told; says what is missing if not. */
bool figure_told(struct text *out, const struct story *story, const char *missing);

#endif
