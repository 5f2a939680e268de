// SPDX-License-Identifier: Apache-2.0
#include "cli/figures_parts.h"

#include <math.h>
#include <stdio.h>

#define CELLS_MAX 10u
#define CELL_BYTES 72u

/* A row that is being filled. */
struct cells {
    char words[CELLS_MAX][CELL_BYTES];
    const char *list[CELLS_MAX];
    size_t count;
};

static void cell(struct cells *cells, const char *words) {
    snprintf(cells->words[cells->count], CELL_BYTES, "%s", words);
    cells->list[cells->count] = cells->words[cells->count];
    cells->count++;
}

static void cell_u64(struct cells *cells, uint64_t value) {
    char words[24];

    snprintf(words, sizeof words, "%llu", (unsigned long long)value);
    cell(cells, words);
}

static void cell_real(struct cells *cells, const char *format, double value) {
    char words[40];

    snprintf(words, sizeof words, format, value);
    cell(cells, isfinite(value) ? words : "-");
}

/* ---- followers ---- */

static const struct page_column follower_columns[] = {
    {"follower", PAGE_TEXT},  {"version", PAGE_NUMBER},        {"step", PAGE_NUMBER},
    {"behind", PAGE_NUMBER},  {"active, median", PAGE_NUMBER}, {"active, last", PAGE_NUMBER},
    {"updates", PAGE_NUMBER}, {"fetched", PAGE_NUMBER},        {"told last (UTC)", PAGE_TEXT}};

#define FOLLOWER_COLUMNS (sizeof follower_columns / sizeof *follower_columns)

static void follower_row(struct text *out, const struct story *story,
                         const struct story_follower *follower) {
    struct cells cells = {.count = 0};

    cell(&cells, follower->name);
    cell_u64(&cells, follower->version);
    cell_u64(&cells, follower->step);
    cell_u64(&cells, story_lag(story, follower));
    cell(&cells, chart_number(story_active_median(follower) / 1e3, CHART_SECONDS).text);
    cell(&cells, chart_number(story_active_last(follower) / 1e3, CHART_SECONDS).text);
    cell_u64(&cells, follower->activation_count);
    cell(&cells, readable_bytes(follower->fetched_bytes).text);
    cell(&cells, figure_time(follower->told_ms).text);
    page_row(out, follower_columns, cells.list, FOLLOWER_COLUMNS);
}

void figures_followers_table(struct text *out, const struct story *story) {
    const size_t shown = story->follower_count < FIGURES_FOLLOWERS_SHOWN ? story->follower_count
                                                                         : FIGURES_FOLLOWERS_SHOWN;
    char caption[192];

    if (!shown)
        return;
    snprintf(caption, sizeof caption,
             "%zu of %zu followers: versions behind the newest, and the time from publishing to "
             "active",
             shown, story->follower_count);
    page_section(out, "Followers");
    page_table_begin(out, caption, follower_columns, FOLLOWER_COLUMNS);
    for (size_t i = 0; i < shown; i++)
        follower_row(out, story, &story->followers[i]);
    page_table_end(out);
}

/* ---- steps ---- */

static const struct page_column step_columns[] = {
    {"version", PAGE_NUMBER},   {"step", PAGE_NUMBER},    {"published (UTC)", PAGE_TEXT},
    {"changed", PAGE_NUMBER},   {"density", PAGE_NUMBER}, {"patch", PAGE_NUMBER},
    {"bits each", PAGE_NUMBER}, {"ratio", PAGE_NUMBER},   {"note", PAGE_NUMBER},
    {"root", PAGE_CODE}};

#define STEP_COLUMNS (sizeof step_columns / sizeof *step_columns)

static void step_row(struct text *out, const struct page_column *columns,
                     const struct story_step *step, int note) {
    const double changed = step->changed && step->patch_bytes ? (double)step->changed : NAN;
    struct cells cells = {.count = 0};
    char root[ULP_ROOT_HEX_BYTES];

    ulp_root_hex(&step->root, root);
    cell_u64(&cells, step->version);
    cell_u64(&cells, step->step);
    cell(&cells, figure_time(step->time_ms).text);
    cell_u64(&cells, step->changed);
    cell(&cells, chart_number(step->density, CHART_PERCENT).text);
    cell(&cells, step->patch_bytes ? readable_bytes(step->patch_bytes).text : "-");
    cell_real(&cells, "%.2f", 8 * (double)step->patch_bytes / changed);
    cell_real(&cells, "%.1fx", story_ratio(step));
    cell_real(&cells, "%.6g", note >= 0 ? step->notes[note] : NAN);
    cell(&cells, root);
    page_row(out, columns, cells.list, STEP_COLUMNS);
}

void figures_steps_table(struct text *out, const struct story *story) {
    const size_t count = story->step_count;
    const size_t shown = count < FIGURES_STEPS_SHOWN ? count : FIGURES_STEPS_SHOWN;
    const int note = story_main_note(story);
    struct page_column columns[STEP_COLUMNS];
    char caption[128];

    for (size_t i = 0; i < STEP_COLUMNS; i++)
        columns[i] = step_columns[i];
    if (note >= 0)
        columns[STEP_COLUMNS - 2].title = story->note_names[note];
    snprintf(caption, sizeof caption,
             "The newest %zu of %zu versions; the root is the digest of the whole state", shown,
             count);
    page_table_begin(out, caption, columns, STEP_COLUMNS);
    for (size_t i = count; i > count - shown; i--)
        step_row(out, columns, &story->steps[i - 1], note);
    page_table_end(out);
}
