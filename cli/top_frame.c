// SPDX-License-Identifier: Apache-2.0
#include "cli/top_frame.h"

#include "cli/terminal.h"

#include <math.h>
#include <string.h>

#define CURVE_COLUMNS_MAX 1000u
#define CURVE_COLUMN 22u
#define RANGE_COLUMNS 26u /* behind a curve */
#define STEP_ROWS_DEFAULT 10u
#define FOLLOWER_ROWS_DEFAULT 64u

/* ---- numbers as text ---- */

static struct readable readable_ms(double ms) {
    struct readable out;

    if (isnan(ms))
        snprintf(out.text, sizeof out.text, "-");
    else if (ms < 10)
        snprintf(out.text, sizeof out.text, "%.1f ms", ms);
    else if (ms < 10000)
        snprintf(out.text, sizeof out.text, "%.0f ms", ms);
    else if (ms < 120e3)
        snprintf(out.text, sizeof out.text, "%.1f s", ms / 1e3);
    else if (ms < 7200e3)
        snprintf(out.text, sizeof out.text, "%.1f min", ms / 60e3);
    else if (ms < 48 * 3600e3)
        snprintf(out.text, sizeof out.text, "%.1f h", ms / 3600e3);
    else if (ms < 1000 * 86400e3)
        snprintf(out.text, sizeof out.text, "%.1f d", ms / 86400e3);
    else
        snprintf(out.text, sizeof out.text, ms < 1e6 * 86400e3 ? "%.0f d" : "%.0e d", ms / 86400e3);
    return out;
}

/* Clocks differ: what is told from the future has just happened. */
static struct readable age_of(uint64_t time_ms) {
    const uint64_t now = wall_ms(), age = now > time_ms ? now - time_ms : 0;
    struct readable out;

    if (age >= 10000)
        return readable_ms((double)age);
    snprintf(out.text, sizeof out.text, "%.1f s", (double)age / 1e3);
    return out;
}

enum unit { UNIT_PLAIN, UNIT_SHARE, UNIT_BYTES, UNIT_TIMES };

static struct readable readable_as(double value, enum unit unit) {
    struct readable out;

    if (isnan(value))
        snprintf(out.text, sizeof out.text, "-");
    else if (unit == UNIT_SHARE)
        snprintf(out.text, sizeof out.text, "%.3f %%", 100 * value);
    else if (unit == UNIT_BYTES)
        out = readable_bytes(value < 0x1p64 ? (uint64_t)value : UINT64_MAX);
    else if (unit == UNIT_TIMES)
        snprintf(out.text, sizeof out.text, value < 10 ? "%.1f x" : "%.0f x", value);
    else
        snprintf(out.text, sizeof out.text, "%.4g", value);
    return out;
}

/* ---- the headline ---- */

static void draw_headline(struct frame *f, const struct story *story) {
    const struct ulp_run_record *head = &story->head;
    const struct story_step *newest = story_newest(story);
    char root[ULP_ROOT_HEX_BYTES];

    frame_text(f, "run ");
    frame_styled(f, FRAME_STRONG, "%s", story->run);
    if (!newest) {
        frame_newline(f);
        return;
    }
    frame_text(f, "   version ");
    frame_styled(f, FRAME_STRONG, "%llu", (unsigned long long)newest->version);
    frame_text(f, "   step ");
    frame_styled(f, FRAME_STRONG, "%llu", (unsigned long long)newest->step);
    if (newest->epoch)
        frame_text(f, "   epoch %llu", (unsigned long long)newest->epoch);
    frame_text(f, "   published %s ago", age_of(newest->time_ms).text);
    frame_newline(f);
    ulp_root_hex(&head->root, root);
    frame_styled(f, FRAME_FAINT, "%s elements   root %.12s   %llu records",
                 readable_count(head->elements).text, root, (unsigned long long)head->sequence);
    if (story->full_bytes)
        frame_styled(f, FRAME_FAINT, "   full %s", readable_bytes(story->full_bytes).text);
    frame_styled(f, FRAME_FAINT, head->is_signed ? "   signed" : "   unsigned");
    frame_newline(f);
}

/* ---- curves ---- */

struct curve {
    enum unit unit;
    double values[CURVE_COLUMNS_MAX];
    size_t count;
};

typedef double (*pick)(const struct story_step *step, unsigned index);

static double pick_note(const struct story_step *step, unsigned index) {
    return step->notes[index];
}

static double pick_density(const struct story_step *step, unsigned index) {
    (void)index;
    return step->density;
}

static double pick_bytes(const struct story_step *step, unsigned index) {
    (void)index;
    return step->patch_bytes ? (double)step->patch_bytes : NAN;
}

static double pick_ratio(const struct story_step *step, unsigned index) {
    (void)index;
    return story_ratio(step);
}

static void draw_range(struct frame *f, const struct curve *curve) {
    double least = NAN, greatest = NAN;

    for (size_t i = 0; i < curve->count; i++) {
        least = fmin(least, curve->values[i]);
        greatest = fmax(greatest, curve->values[i]);
    }
    if (!isnan(least))
        frame_styled(f, FRAME_FAINT, "  %s .. %s", readable_as(least, curve->unit).text,
                     readable_as(greatest, curve->unit).text);
}

static void draw_curve(struct frame *f, const struct story *story, const char *name, enum unit unit,
                       pick pick, unsigned index) {
    const unsigned room = CURVE_COLUMN + RANGE_COLUMNS;
    unsigned columns = f->width > room + 8 ? f->width - room : 8;
    struct curve curve = {.unit = unit};
    size_t first;

    columns = columns < CURVE_COLUMNS_MAX ? columns : CURVE_COLUMNS_MAX;
    first = story->step_count > columns ? story->step_count - columns : 0;
    for (size_t i = first; i < story->step_count; i++)
        curve.values[curve.count++] = pick(&story->steps[i], index);
    frame_text(f, "%-10.10s", name);
    frame_styled(f, FRAME_STRONG, "%10s",
                 readable_as(curve.count ? curve.values[curve.count - 1] : NAN, unit).text);
    frame_go_to(f, CURVE_COLUMN);
    frame_curve(f, curve.values, curve.count, columns);
    draw_range(f, &curve);
    frame_newline(f);
}

static void draw_curves(struct frame *f, const struct story *story, unsigned more_notes) {
    const int main_note = story_main_note(story);

    if (main_note >= 0)
        draw_curve(f, story, story->note_names[main_note], UNIT_PLAIN, pick_note,
                   (unsigned)main_note);
    for (unsigned i = 0; i < story->note_count; i++) {
        if ((int)i != main_note && more_notes && more_notes--)
            draw_curve(f, story, story->note_names[i], UNIT_PLAIN, pick_note, i);
    }
    draw_curve(f, story, "density", UNIT_SHARE, pick_density, 0);
    draw_curve(f, story, "bytes", UNIT_BYTES, pick_bytes, 0);
    draw_curve(f, story, "smaller", UNIT_TIMES, pick_ratio, 0);
}

/* ---- tables ---- */

/* The first columns are those that are seen on a narrow terminal too. */
enum step_column { VERSION, STEP, AGE, NOTE, DENSITY, BYTES, SMALLER, CHANGED, ENCODE, STORE, ALL };

static const struct {
    const char *name;
    int width;
} step_columns[ALL] = {
    [VERSION] = {"version", 8}, [STEP] = {"step", 9},        [AGE] = {"age", 10},
    [NOTE] = {"", 11},          [DENSITY] = {"density", 10}, [BYTES] = {"bytes", 12},
    [SMALLER] = {"smaller", 9}, [CHANGED] = {"changed", 10}, [ENCODE] = {"encode", 10},
    [STORE] = {"store", 10}};

static struct readable readable_u64(uint64_t value) {
    struct readable out;

    snprintf(out.text, sizeof out.text, "%llu", (unsigned long long)value);
    return out;
}

static struct readable step_value(const struct story *story, const struct story_step *step,
                                  enum step_column column) {
    enum { ENCODE_PHASE = 7, STORE_PHASE = 8 }; /* in run_phase_names */
    static const struct readable none = {"-"}, whole = {"whole"};

    switch (column) {
    case VERSION:
        return readable_u64(step->version);
    case STEP:
        return readable_u64(step->step);
    case AGE:
        return age_of(step->time_ms);
    case NOTE:
        return readable_as(step->notes[story_main_note(story)], UNIT_PLAIN);
    case DENSITY:
        return readable_as(step->density, UNIT_SHARE);
    case BYTES:
        if (step->patch_bytes)
            return readable_bytes(step->patch_bytes);
        return step->anchor_bytes ? readable_bytes(step->anchor_bytes) : none;
    case SMALLER:
        return step->patch_bytes || !step->anchor_bytes ? readable_as(story_ratio(step), UNIT_TIMES)
                                                        : whole;
    case CHANGED:
        return step->version ? readable_count(step->changed) : none;
    case ENCODE:
        return readable_ms(step->phases_ms[ENCODE_PHASE]);
    default:
        return readable_ms(step->phases_ms[STORE_PHASE]);
    }
}

/* NULL: the heading. */
static void draw_step(struct frame *f, const struct story *story, const struct story_step *step) {
    const int note = story_main_note(story);

    for (enum step_column i = VERSION; i < ALL; i++) {
        const char *name = i == NOTE && note >= 0 ? story->note_names[note] : step_columns[i].name;

        if (i == NOTE && note < 0)
            continue;
        if (step)
            frame_cell(f, FRAME_PLAIN, step_columns[i].width, step_value(story, step, i).text);
        else
            frame_cell(f, FRAME_FAINT, step_columns[i].width, name);
    }
    frame_newline(f);
}

static void draw_steps(struct frame *f, const struct story *story, unsigned rows) {
    if (!story->step_count || !rows)
        return;
    draw_step(f, story, NULL);
    for (size_t i = story->step_count; i-- > 0 && rows; rows--)
        draw_step(f, story, &story->steps[i]);
}

static void draw_follower(struct frame *f, const struct story *story,
                          const struct story_follower *follower) {
    const uint64_t lag = story_lag(story, follower);

    frame_cell(f, FRAME_PLAIN, -18, follower->name);
    frame_cell(f, FRAME_PLAIN, 8, readable_u64(follower->version).text);
    frame_cell(f,
               lag > 8   ? FRAME_BAD
               : lag > 1 ? FRAME_FAIR
                         : FRAME_GOOD,
               6, readable_u64(lag).text);
    frame_cell(f, FRAME_PLAIN, 11, readable_ms(story_active_last(follower)).text);
    frame_cell(f, FRAME_PLAIN, 11, readable_ms(story_active_median(follower)).text);
    frame_cell(f, FRAME_PLAIN, 13, readable_bytes(follower->fetched_bytes).text);
    frame_cell(f, FRAME_PLAIN, 10, age_of(follower->told_ms).text);
    frame_cell(f, FRAME_PLAIN, 9, readable_u64(follower->step).text);
    frame_newline(f);
}

static void draw_follower_heading(struct frame *f) {
    static const struct {
        const char *name;
        int width;
    } columns[] = {{"follower", -18}, {"version", 8},  {"lag", 6},    {"active in", 11},
                   {"median", 11},    {"fetched", 13}, {"heard", 10}, {"step", 9}};

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        frame_cell(f, FRAME_FAINT, columns[i].width, columns[i].name);
    frame_newline(f);
}

static void draw_followers(struct frame *f, const struct story *story, unsigned rows) {
    const size_t shown = story->follower_count < rows ? story->follower_count : rows;

    if (!shown)
        return;
    draw_follower_heading(f);
    for (size_t i = 0; i < shown; i++)
        draw_follower(f, story, &story->followers[i]);
    if (shown < story->follower_count) {
        frame_styled(f, FRAME_FAINT, "and %zu more", story->follower_count - shown);
        frame_newline(f);
    }
}

/* ---- what there is to say ---- */

static const char *hint(const struct story *story) {
    if (story->told_status == ULP_E_UNSUPPORTED)
        return "this store cannot be listed: what publishers and followers tell is not seen";
    if (!story->told)
        return "for more: publish --tell NAME --note reward=0.5, and follow --tell NAME";
    if (!story->follower_count)
        return "for followers here: follow --tell NAME";
    if (!story->note_count)
        return "for rewards here: publish --tell NAME --note reward=0.5";
    return NULL;
}

static void draw_footer(struct frame *f, const struct story *story, const char *notice, bool keys) {
    const bool unheard = story->told_status && story->told_status != ULP_E_UNSUPPORTED;

    if (notice)
        frame_styled(f, FRAME_BAD, "%s", notice);
    else if (unheard)
        frame_styled(f, FRAME_BAD, "tellings: %s", story->told_message);
    else if (hint(story) && story_newest(story))
        frame_styled(f, FRAME_FAINT, "%s", hint(story));
    else if (keys)
        frame_styled(f, FRAME_FAINT, "q quits");
    else
        return;
    frame_newline(f);
}

/* ---- all of it ---- */

/* Two lines of headline, curves, three empty lines, two headings, one line to say "and more", and
 * the footer; what is left is for rows. Followers get up to half of it, steps the rest. */
static void share_rows(const struct story *story, unsigned rows, unsigned curves,
                       unsigned *ret_steps, unsigned *ret_followers) {
    const unsigned fixed = 2 + curves + 3 + 2 + 1 + 1;
    const unsigned left = rows > fixed + 2 ? rows - fixed : 2;
    const size_t followers = story->follower_count;

    if (!rows) {
        *ret_steps = STEP_ROWS_DEFAULT;
        *ret_followers = FOLLOWER_ROWS_DEFAULT;
        return;
    }
    *ret_followers = followers < left / 2 ? (unsigned)followers : left / 2;
    if (story->step_count < left - *ret_followers) { /* steps leave room */
        const unsigned spare = left - (unsigned)story->step_count;

        *ret_followers = followers < spare ? (unsigned)followers : spare;
    }
    *ret_steps = left - *ret_followers;
}

void top_draw(struct frame *frame, const struct story *story, unsigned rows, const char *notice,
              bool keys) {
    const unsigned notes = story->note_count ? story->note_count - 1 : 0;
    const unsigned room = !rows ? notes : rows > 26 ? (rows - 24) / 2 : 0;
    const unsigned more_notes = notes < room ? notes : room;
    unsigned step_rows, follower_rows;

    share_rows(story, rows, 3u + (story->note_count ? 1u : 0u) + more_notes, &step_rows,
               &follower_rows);
    draw_headline(frame, story);
    frame_newline(frame);
    if (story->step_count) {
        draw_curves(frame, story, more_notes);
        frame_newline(frame);
        draw_steps(frame, story, step_rows);
        frame_newline(frame);
        draw_followers(frame, story, follower_rows);
    }
    draw_footer(frame, story, notice, keys);
}
