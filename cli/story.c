// SPDX-License-Identifier: Apache-2.0
#include "cli/story.h"

#include "cli/story_told.h"
#include "cli/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Records that one refresh reads at most, after the first. */
#define RECORDS_AT_ONCE 4096u

/* So often, while nothing is new, it is asked whether the run is still the same. */
#define LOOK_BACK_EVERY 8u

/* ---- opening and closing ---- */

static enum ulp_status no_memory(void) {
    return ulp_fail(ULP_E_NOMEM, "there is no memory for the story of the run");
}

enum ulp_status story_open(struct ulp_store *store, const char *run, size_t steps_max,
                           struct story *ret_story) {
    struct story story = {.store = store, .run = run};
    enum ulp_status status;

    if (steps_max > STORY_STEPS_MAX)
        return ulp_fail(ULP_E_LIMIT, "a story has at most %u steps", STORY_STEPS_MAX);
    story.inside = calloc(1, sizeof *story.inside);
    if (!story.inside)
        return no_memory();
    story.inside->steps_max = steps_max ? steps_max : STORY_STEPS_DEFAULT;
    status = ulp_listener_open(store, run, &story.inside->listener);
    if (status)
        free(story.inside);
    else
        *ret_story = story;
    return status;
}

void story_close(struct story *story) {
    if (!story->inside)
        return;
    for (size_t i = 0; i < story->follower_count; i++)
        free(story->followers[i].activations);
    free(story->followers);
    free(story->steps);
    free(story->inside->published);
    ulp_listener_close(story->inside->listener);
    free(story->inside);
    *story = (struct story){0};
}

static enum ulp_status begin_anew(struct story *story) {
    struct ulp_store *store = story->store;
    const char *run = story->run;
    const size_t steps_max = story->inside->steps_max;
    struct story fresh = {0};
    enum ulp_status status = story_open(store, run, steps_max, &fresh);

    if (status)
        return status;
    story_close(story);
    *story = fresh;
    return ULP_OK;
}

/* ---- records ---- */

/* An anchor by reference has no weights: it is smaller than any state. */
static bool is_full(const struct ulp_run_record *record) {
    return record->anchor_bytes && record->anchor_bytes >= record->elements / 2;
}

static void note_full(struct story *story, const struct ulp_run_record *record) {
    if (!is_full(record))
        return;
    if (!story->inside->full_bytes) {
        for (size_t i = 0; i < story->step_count; i++)
            story->steps[i].full_bytes = record->anchor_bytes;
    }
    story->full_bytes = story->inside->full_bytes = record->anchor_bytes;
}

static enum ulp_status step_room(struct story *story, struct story_step **ret_step) {
    struct story_inside *inside = story->inside;

    if (story->step_count == inside->steps_max) {
        memmove(story->steps, story->steps + 1, (story->step_count - 1) * sizeof *story->steps);
        story->step_count--;
    } else if (story->step_count == inside->step_room) {
        const size_t room = inside->step_room ? 2 * inside->step_room : 64;
        struct story_step *grown = realloc(story->steps, room * sizeof *grown);

        if (!grown)
            return no_memory();
        story->steps = grown;
        inside->step_room = room;
    }
    *ret_step = &story->steps[story->step_count++];
    return ULP_OK;
}

static enum ulp_status add_step(struct story *story, const struct ulp_run_record *record) {
    struct story_step *step = NULL;
    enum ulp_status status = step_room(story, &step);

    if (status || !step)
        return status;
    *step = (struct story_step){
        .version = record->version,
        .step = record->step,
        .epoch = record->epoch,
        .sequence = record->sequence,
        .time_ms = record->time_ms,
        .elements = record->elements,
        .changed = record->changed,
        .density = record->version && record->elements
                       ? (double)record->changed / (double)record->elements
                       : NAN,
        .patch_bytes = record->patch_bytes,
        .anchor_bytes = record->anchor_bytes,
        .full_bytes = story->inside->full_bytes,
        .root = record->root,
    };
    for (unsigned i = 0; i < RUN_PHASES; i++)
        step->phases_ms[i] = NAN;
    for (unsigned i = 0; i < STORY_NOTES_MAX; i++)
        step->notes[i] = NAN;
    return ULP_OK;
}

/* One that only changes the map may have brought an anchor. */
static void add_to_step(struct story *story, const struct ulp_run_record *record) {
    struct story_step *step = story->step_count ? &story->steps[story->step_count - 1] : NULL;

    if (!step || step->version != record->version || !record->anchor_bytes)
        return;
    step->anchor_bytes = record->anchor_bytes;
    if (is_full(record))
        step->full_bytes = record->anchor_bytes;
}

static enum ulp_status take_record(struct story *story, const struct ulp_run_record *record) {
    const bool publishes = !story->head.sequence || record->version != story->head.version;
    enum ulp_status status = ULP_OK;

    note_full(story, record);
    if (publishes)
        status = add_step(story, record);
    else
        add_to_step(story, record);
    if (status)
        return status;
    story->head = *record;
    story->inside->next = record->sequence + 1;
    story->changed = true;
    return ULP_OK;
}

/* The newest record says where to begin. The one in front of it says what the first one did, and the
 * run's first one how large a full state is. */
static enum ulp_status find_beginning(struct story *story) {
    struct story_inside *inside = story->inside;
    struct ulp_run_record head = {0}, before = {0};
    enum ulp_status status = ulp_run_head(story->store, story->run, &head);
    uint64_t first;

    if (status)
        return status;
    first = head.sequence > inside->steps_max ? head.sequence - inside->steps_max + 1 : 1;
    if (first > 1)
        status = ulp_run_read(story->store, story->run, 1, &before);
    if (!status && first > 1) {
        note_full(story, &before);
        status = ulp_run_read(story->store, story->run, first - 1, &before);
    }
    if (status)
        return status;
    story->head = before;
    inside->next = first;
    return ULP_OK;
}

static enum ulp_status read_records(struct story *story) {
    struct story_inside *inside = story->inside;
    enum ulp_status status = inside->next ? ULP_OK : find_beginning(story);
    size_t most = inside->steps_max > RECORDS_AT_ONCE ? inside->steps_max : RECORDS_AT_ONCE;

    for (; !status && most; most--) {
        struct ulp_run_record record = {0};

        if (terminal_stopping())
            return ulp_fail(ULP_E_CANCELLED, "reading the run was stopped");
        status = ulp_run_read(story->store, story->run, inside->next, &record);
        if (!status)
            status = take_record(story, &record);
    }
    return status == ULP_E_NOT_FOUND ? ULP_OK : status;
}

/* Somebody may have deleted the run and begun another under its name. */
static enum ulp_status look_back(struct story *story) {
    const struct ulp_run_record *head = &story->head;
    struct ulp_run_record there = {0};
    enum ulp_status status = ulp_run_read(story->store, story->run, head->sequence, &there);

    if (status == ULP_E_NOT_FOUND ||
        (!status && (there.time_ms != head->time_ms ||
                     memcmp(&there.root, &head->root, sizeof there.root) != 0)))
        return begin_anew(story);
    return status;
}

enum ulp_status story_refresh(struct story *story) {
    const uint64_t before = story->head.sequence;
    enum ulp_status status;

    story->changed = false;
    story_listen(story); /* first: what is told of is in the log by then */
    status = read_records(story);
    story_attach(story);
    story->inside->idle = story->head.sequence == before ? story->inside->idle + 1 : 0;
    if (status || !before || story->inside->idle % LOOK_BACK_EVERY != LOOK_BACK_EVERY - 1)
        return status;
    status = look_back(story);
    if (status || story->inside->next)
        return status;
    status = story_refresh(story);
    story->changed = true; /* also if there is no run any more */
    return status;
}

/* ---- questions ---- */

int story_main_note(const struct story *story) {
    for (unsigned i = 0; i < story->note_count; i++) {
        if (!strcmp(story->note_names[i], "reward"))
            return (int)i;
    }
    return story->note_count ? 0 : -1;
}

const struct story_step *story_newest(const struct story *story) {
    return story->step_count ? &story->steps[story->step_count - 1] : NULL;
}

const struct story_step *story_find(const struct story *story, uint64_t version) {
    const struct story_step *steps = story->steps;

    for (size_t low = 0, high = story->step_count; low < high;) {
        const size_t middle = low + (high - low) / 2;

        if (steps[middle].version == version)
            return &steps[middle];
        if (steps[middle].version < version)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

double story_ratio(const struct story_step *step) {
    return step->full_bytes && step->patch_bytes
               ? (double)step->full_bytes / (double)step->patch_bytes
               : NAN;
}

uint64_t story_lag(const struct story *story, const struct story_follower *follower) {
    return story->head.version > follower->version ? story->head.version - follower->version : 0;
}

double story_active_last(const struct story_follower *follower) {
    for (size_t i = follower->activation_count; i-- > 0;) {
        if (!isnan(follower->activations[i].publish_to_active_ms))
            return follower->activations[i].publish_to_active_ms;
    }
    return NAN;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double story_median(double *numbers, size_t count) {
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        if (isfinite(numbers[i]))
            numbers[known++] = numbers[i];
    }
    if (!known)
        return NAN;
    qsort(numbers, known, sizeof *numbers, by_size);
    return known % 2 ? numbers[known / 2] : numbers[known / 2 - 1] / 2 + numbers[known / 2] / 2;
}

double story_active_median(const struct story_follower *follower) {
    double times[STORY_ACTIVATIONS_MAX];

    for (size_t i = 0; i < follower->activation_count; i++)
        times[i] = follower->activations[i].publish_to_active_ms;
    return story_median(times, follower->activation_count);
}
