// SPDX-License-Identifier: Apache-2.0
#include "cli/replay.h"

#include "cli/chart.h"
#include "cli/groups.h"
#include "cli/terminal.h"
#include "cli/workshop.h"
#include "study/pair.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_DEFAULT 64u
#define LAST_MAX 4096u
#define BYTES_DEFAULT ((uint64_t)4 << 30)
#define BYTES_MAX ((uint64_t)1 << 46)

static const char what[] = "Density by layer and entropy floor";

/* A run that is being replayed. */
struct replaying {
    const struct story *story;
    const struct run_place *place;
    struct ulp_run_options options;
    uint64_t last, bytes_max;
    uint64_t start, end; /* versions: an anchor, and the newest */

    struct workshop workshop;
    struct ulp_model *model; /* the anchor, on disk */
    size_t count;
    struct ulp_tensor *now, *before; /* copies in memory */
    void *memory[2];
    struct ulp_follower *follower;
    struct replay *replay;
};

static void missing(struct replay *replay, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void missing(struct replay *replay, const char *format, ...) {
    const int length = snprintf(replay->missing, sizeof replay->missing, "%s: ", what);
    va_list words;

    va_start(words, format);
    vsnprintf(replay->missing + length, sizeof replay->missing - (size_t)length, format, words);
    va_end(words);
}

/* ---- where to start ---- */

/* The newest anchor from which the steps that are wanted can be seen, or else the oldest. */
static uint64_t choose_start(const struct replaying *r) {
    const struct story *story = r->story;
    uint64_t start = story->head.oldest;

    for (size_t i = 0; i < story->step_count; i++) {
        const struct story_step *step = &story->steps[i];

        if (step->anchor_bytes && step->version >= start && r->end >= r->last &&
            step->version <= r->end - r->last)
            start = step->version;
    }
    return start;
}

/* False, with a sentence where there is one to say, if there is nothing to replay. */
static bool worth_it(struct replaying *r) {
    const struct story_step *newest = story_newest(r->story);

    if (!newest || !newest->version)
        return false;
    r->end = newest->version;
    r->start = choose_start(r);
    if (r->start >= r->end) {
        missing(r->replay,
                "the run keeps nothing that leads to version %llu but that version itself.",
                (unsigned long long)r->end);
        return false;
    }
    if (r->story->full_bytes > r->bytes_max) {
        missing(r->replay, "the state has %s, more than the %s that --replay-bytes allows.",
                chart_number((double)r->story->full_bytes, CHART_BYTES).text,
                chart_number((double)r->bytes_max, CHART_BYTES).text);
        return false;
    }
    return true;
}

/* ---- the state that it starts from ---- */

static enum ulp_status copy_state(struct replaying *r, unsigned copy,
                                  struct ulp_tensor **ret_copy) {
    const struct ulp_tensor *tensors = ulp_model_tensors(r->model);
    struct ulp_tensor *copies = calloc(r->count + 1, sizeof *copies);
    uint64_t bytes = 0;
    char *at;

    *ret_copy = copies; /* freed at the end, whatever comes */
    for (size_t i = 0; i < r->count; i++)
        bytes += (tensors[i].bytes + 63) / 64 * 64;
    r->memory[copy] = malloc((size_t)bytes + 1);
    if (!copies || !r->memory[copy])
        return ulp_fail(ULP_E_NOMEM, "out of memory for a copy of the state of %llu bytes",
                        (unsigned long long)bytes);
    at = r->memory[copy];
    for (size_t i = 0; i < r->count; i++) {
        copies[i] = tensors[i];
        copies[i].data = at;
        memcpy(at, tensors[i].data, tensors[i].bytes);
        at += (tensors[i].bytes + 63) / 64 * 64;
    }
    return ULP_OK;
}

static enum ulp_status check_size(struct replaying *r) {
    const struct ulp_tensor *tensors = ulp_model_tensors(r->model);
    uint64_t bytes = 0;

    r->count = ulp_model_count(r->model);
    for (size_t i = 0; i < r->count; i++)
        bytes += tensors[i].bytes;
    return bytes <= r->bytes_max
               ? ULP_OK
               : ulp_fail(ULP_E_LIMIT, "the state is larger than --replay-bytes allows");
}

static enum ulp_status fetch_start(struct replaying *r, const char *beside) {
    struct ulp_run_options options = r->options;
    char path[PATH_MAX + 16];
    enum ulp_status status = workshop_open(beside, "replay", &r->workshop);

    options.stop_at_version = 1;
    options.version = r->start;
    if (!status)
        status = ulp_follow(r->place->store, r->place->run, r->workshop.path, &options, NULL);
    snprintf(path, sizeof path, "%s/current", r->workshop.path);
    if (!status)
        status = ulp_model_open(path, &r->model);
    if (!status)
        status = check_size(r);
    if (!status)
        status = copy_state(r, 0, &r->now);
    if (!status)
        status = copy_state(r, 1, &r->before);
    return status;
}

/* ---- one step ---- */

static enum ulp_status keep_names(struct replay *replay, const struct group *groups, size_t count) {
    const size_t kept = count < CHART_ROWS_MAX ? count : CHART_ROWS_MAX;

    replay->layers = calloc(kept + 1, sizeof *replay->layers);
    for (size_t i = 0; replay->layers && i < kept; i++) {
        replay->layers[i] = strndup(groups[i].name, groups[i].length);
        if (!replay->layers[i])
            return ulp_fail(ULP_E_NOMEM, "out of memory for the names of layers");
        replay->layer_count++;
    }
    replay->layer_total = count;
    return replay->layers ? ULP_OK : ulp_fail(ULP_E_NOMEM, "out of memory for layers");
}

/* The changes of each tensor, gathered by layers. */
static enum ulp_status layer_densities(struct replaying *r, const struct study_pair *pair,
                                       struct replay_step *step) {
    struct replay *replay = r->replay;
    struct ulp_tensor_report *reports = calloc(r->count + 1, sizeof *reports);
    struct group *groups = NULL;
    size_t count = 0;
    enum ulp_status status =
        reports ? ULP_OK : ulp_fail(ULP_E_NOMEM, "out of memory for the counters of tensors");

    for (size_t i = 0; !status && reports && i < r->count; i++) {
        reports[i].elements = study_elements(&r->now[i]);
        reports[i].changed = pair->tensor_changed[i];
    }
    if (!status)
        status = groups_make(r->now, reports, r->count, &groups, &count);
    if (!status && !replay->layers)
        status = keep_names(replay, groups, count);
    if (!status)
        step->layer_density = calloc(replay->layer_count + 1, sizeof *step->layer_density);
    if (!status && !step->layer_density)
        status = ulp_fail(ULP_E_NOMEM, "out of memory for densities of layers");
    for (size_t i = 0; !status && step->layer_density && i < replay->layer_count; i++)
        step->layer_density[i] = groups[i].total.elements ? (double)groups[i].total.changed /
                                                                (double)groups[i].total.elements
                                                          : NAN;
    free(groups);
    free(reports);
    return status;
}

static enum ulp_status look(struct replaying *r, uint64_t version) {
    const struct study_states states = {.old = r->before, .new = r->now, .count = r->count};
    const struct story_step *told = story_find(r->story, version);
    struct replay_step *step = &r->replay->steps[r->replay->step_count];
    struct study_pair pair = {0};
    enum ulp_status status =
        study_pair_measure(&states, STUDY_WITHOUT_SIZES, r->options.pool, NULL, &pair);

    if (!status) {
        *step = (struct replay_step){.version = version,
                                     .step = told ? told->step : version,
                                     .elements = pair.elements,
                                     .changed = pair.changed};
        step->floor_bytes = (pair.floor.place_bits + pair.floor.step_bits) / 8;
        status = layer_densities(r, &pair, step);
        r->replay->step_count += !status;
    }
    study_pair_release(&pair);
    return status;
}

/* ---- all of them ---- */

static bool is_wanted(const struct replaying *r, uint64_t version) {
    return version + r->last > r->end && r->replay->step_count < r->last;
}

static void keep_before(struct replaying *r) {
    for (size_t i = 0; i < r->count; i++)
        memcpy(r->before[i].data, r->now[i].data, r->now[i].bytes);
}

static enum ulp_status go_on(struct replaying *r) {
    struct ulp_run_report report = {0};
    enum ulp_status status = ulp_follower_poll(r->follower, &report);

    while (!status && report.ready) {
        const uint64_t next = report.version + 1;

        if (is_wanted(r, next))
            keep_before(r);
        status = ulp_follower_apply(r->follower, &report);
        if (!status && is_wanted(r, next))
            status = look(r, next);
        if (!status && terminal_stopping())
            status = ulp_fail(ULP_E_CANCELLED, "stopped; no report was written");
        if (!status)
            status = ulp_follower_poll(r->follower, &report);
    }
    return status;
}

static enum ulp_status replay_from(struct replaying *r, const char *beside) {
    struct progress_line line;
    struct ulp_progress progress = progress_begin(&line, "replay", 0);
    enum ulp_status status;

    r->options.progress = &progress;
    r->replay->steps = calloc((size_t)r->last + 1, sizeof *r->replay->steps);
    status = r->replay->steps ? fetch_start(r, beside)
                              : ulp_fail(ULP_E_NOMEM, "out of memory for a replay");
    if (!status) {
        r->options.each_version = 1;
        r->options.stop_at_version = 1;
        r->options.version = r->end;
        r->options.base = NULL;
        status = ulp_follower_open_memory(r->place->store, r->place->run, r->now, r->count,
                                          &r->options, &r->follower);
    }
    if (!status)
        status = go_on(r);
    progress_end(&line);
    r->options.progress = NULL; /* it ends here */
    return status;
}

static void replaying_release(struct replaying *r) {
    ulp_follower_close(r->follower);
    ulp_model_free(r->model);
    for (unsigned i = 0; i < 2; i++)
        free(r->memory[i]);
    free(r->now);
    free(r->before);
    workshop_release(&r->workshop);
}

/* What is the reader's own affair stays a failure: memory, and being stopped. */
static enum ulp_status explain(struct replaying *r, enum ulp_status status) {
    struct replay *replay = r->replay;

    if (status == ULP_E_NOMEM || status == ULP_E_CANCELLED || status == ULP_E_INTERNAL)
        return status;
    if (status && replay->step_count)
        missing(replay, "only %zu steps could be replayed (%s).", replay->step_count,
                ulp_last_error());
    else if (status)
        missing(replay, "the versions could not be replayed (%s).", ulp_last_error());
    else if (replay->step_count < r->last && replay->step_count < r->end)
        missing(replay,
                "seen for the last %zu steps; the run does not keep what leads to older versions.",
                replay->step_count);
    return ULP_OK;
}

enum ulp_status replay_run(const struct cli_args *args, const struct run_place *place,
                           const struct story *story, const char *beside,
                           struct replay *ret_replay) {
    struct replay replay = {0};
    struct replaying r = {.story = story, .place = place, .last = LAST_DEFAULT, .replay = &replay};
    enum ulp_status status = option_count(args, "last", 1, LAST_MAX, &r.last);

    r.bytes_max = BYTES_DEFAULT;
    if (!status)
        status = option_size(args, "replay-bytes", 1, BYTES_MAX, &r.bytes_max);
    if (!status)
        status = run_options(args, place, &r.options);
    if (!status && option_given(args, "no-replay"))
        missing(&replay, "not looked for, because of --no-replay.");
    else if (!status && worth_it(&r))
        status = explain(&r, replay_from(&r, beside));
    replaying_release(&r);
    if (status)
        replay_release(&replay);
    else
        *ret_replay = replay;
    return status;
}

void replay_release(struct replay *replay) {
    for (size_t i = 0; i < replay->layer_count; i++)
        free(replay->layers[i]);
    for (size_t i = 0; i < replay->step_count; i++)
        free(replay->steps[i].layer_density);
    free(replay->layers);
    free(replay->steps);
    *replay = (struct replay){0};
}

const struct replay_step *replay_find(const struct replay *replay, uint64_t version) {
    size_t low = 0, high = replay->step_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (replay->steps[middle].version < version)
            low = middle + 1;
        else
            high = middle;
    }
    return low < replay->step_count && replay->steps[low].version == version ? &replay->steps[low]
                                                                             : NULL;
}
