// SPDX-License-Identifier: Apache-2.0
/* Lines of strangers become numbers: what is no number, or of no use, is passed over. */
#include "cli/story_told.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PUBLISHED_MAX 65536u

/* A version that is told of before its record was read is waited for, if it is not far ahead. */
#define AHEAD_MAX 4096u

static const char note_characters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/ ";

/* ---- a line ---- */

struct line {
    struct story *story;
    char event[16];
    uint64_t version, step, held_version, held_step, told_ms, stored_bytes, fetched_bytes;
    bool fresh;
    double publish_to_active_ms;
    double phases_ms[RUN_PHASES];
    double notes[STORY_NOTES_MAX];
};

static const struct {
    const char *path;
    size_t offset;
} counts[] = {{"version", offsetof(struct line, version)},
              {"step", offsetof(struct line, step)},
              {"held_version", offsetof(struct line, held_version)},
              {"held_step", offsetof(struct line, held_step)},
              {"told_ms", offsetof(struct line, told_ms)},
              {"stored_bytes", offsetof(struct line, stored_bytes)},
              {"fetched_bytes", offsetof(struct line, fetched_bytes)}};

static void forget(double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = NAN;
}

/* NaN for true, false and null too. */
static double number_of(const char *text) {
    const double number = *text == '-' || (*text >= '0' && *text <= '9') ? strtod(text, NULL) : NAN;

    return isfinite(number) ? number : NAN;
}

static double time_of(const char *text) {
    const double number = number_of(text);

    return number >= 0 ? number : NAN;
}

static bool take_count(struct line *line, const char *path, const char *value) {
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t number;

        if (strcmp(path, counts[i].path) != 0)
            continue;
        errno = 0;
        number = strtoull(value, NULL, 10);
        if (strspn(value, "0123456789") == strlen(value) && !errno)
            memcpy((char *)line + counts[i].offset, &number, sizeof number);
        return true;
    }
    return false;
}

static void take_phase(struct line *line, const char *name, const char *value) {
    for (unsigned i = 0; i < RUN_PHASES; i++) {
        const size_t length = strlen(run_phase_names[i]);

        if (!strncmp(name, run_phase_names[i], length) && !strcmp(name + length, "_ms"))
            line->phases_ms[i] = time_of(value);
    }
}

/* Which column a note has; STORY_NOTES_MAX if it has none. */
static unsigned note_column(struct story *story, const char *name) {
    const size_t length = strlen(name);
    unsigned i = 0;

    while (i < story->note_count && strcmp(story->note_names[i], name) != 0)
        i++;
    if (i < story->note_count || i == STORY_NOTES_MAX)
        return i;
    if (!length || length >= STORY_NOTE_NAME_BYTES || strspn(name, note_characters) != length)
        return STORY_NOTES_MAX;
    memcpy(story->note_names[story->note_count], name, length + 1);
    return story->note_count++;
}

static void take_note(struct line *line, const char *name, const char *value) {
    const double number = number_of(value);
    const unsigned column = isnan(number) ? STORY_NOTES_MAX : note_column(line->story, name);

    if (column < STORY_NOTES_MAX)
        line->notes[column] = number;
}

static void take_value(void *user, const char *path, const char *value, int is_text) {
    struct line *line = user;

    if (is_text) {
        if (!strcmp(path, "event") && strlen(value) < sizeof line->event)
            memcpy(line->event, value, strlen(value) + 1);
    } else if (!strcmp(path, "fresh")) {
        line->fresh = !strcmp(value, "true");
    } else if (!strcmp(path, "publish_to_active_ms")) {
        line->publish_to_active_ms = time_of(value);
    } else if (!strncmp(path, "phases.", 7)) {
        take_phase(line, path + 7, value);
    } else if (!strncmp(path, "notes.", 6)) {
        take_note(line, path + 6, value);
    } else {
        take_count(line, path, value);
    }
}

/* ---- publishers ---- */

/* `array` is the address of a pointer to elements of `size` bytes. */
static bool grow(void *array, size_t count, size_t size, size_t *room) {
    const size_t more = *room ? 2 * *room : 8;
    void *elements;

    if (count < *room)
        return true;
    memcpy(&elements, array, sizeof elements);
    elements = realloc(elements, more * size);
    if (!elements)
        return false;
    memcpy(array, &elements, sizeof elements);
    *room = more;
    return true;
}

static void take_published(struct story *story, const struct line *line) {
    struct story_inside *inside = story->inside;
    struct story_published *published;

    if (inside->published_count == PUBLISHED_MAX)
        return;
    if (!grow(&inside->published, inside->published_count, sizeof *inside->published,
              &inside->published_room)) {
        inside->failed = true;
        return;
    }
    published = &inside->published[inside->published_count++];
    published->version = line->version;
    published->stored_bytes = line->stored_bytes;
    published->fresh = line->fresh;
    memcpy(published->phases_ms, line->phases_ms, sizeof published->phases_ms);
    memcpy(published->notes, line->notes, sizeof published->notes);
}

static void attach(struct story_step *step, const struct story_published *published) {
    step->told = true;
    for (unsigned i = 0; i < STORY_NOTES_MAX; i++) {
        if (!isnan(published->notes[i]))
            step->notes[i] = published->notes[i];
    }
    if (!published->fresh)
        return; /* it was there already: how long that took says nothing */
    step->stored_bytes = published->stored_bytes;
    memcpy(step->phases_ms, published->phases_ms, sizeof step->phases_ms);
}

void story_attach(struct story *story) {
    struct story_inside *inside = story->inside;
    const struct story_step *newest = story_newest(story);
    size_t left = 0;

    for (size_t i = 0; newest && i < inside->published_count; i++) {
        const struct story_published *published = &inside->published[i];
        const struct story_step *step = story_find(story, published->version);

        if (step)
            attach(&story->steps[step - story->steps], published);
        else if (published->version > newest->version &&
                 published->version - newest->version <= AHEAD_MAX)
            inside->published[left++] = *published;
    }
    if (newest)
        inside->published_count = left;
}

/* ---- followers ---- */

/* Where it is, or would be. */
static size_t follower_place(const struct story *story, const char *name) {
    size_t low = 0, high = story->follower_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(story->followers[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Names may come and go for as long as somebody looks on. */
static void forget_longest_silent(struct story *story) {
    struct story_follower *silent = story->followers;

    for (size_t i = 1; i < story->follower_count; i++) {
        if (story->followers[i].told_ms < silent->told_ms)
            silent = &story->followers[i];
    }
    story->inside->activation_count -= silent->activation_count;
    free(silent->activations);
    story->follower_count--;
    memmove(silent, silent + 1,
            (story->follower_count - (size_t)(silent - story->followers)) * sizeof *silent);
}

/* NULL when there is no memory for it. */
static struct story_follower *follower_of(struct story *story, const char *name) {
    size_t at = follower_place(story, name);
    struct story_follower *place;

    if (at < story->follower_count && !strcmp(story->followers[at].name, name))
        return &story->followers[at];
    if (story->follower_count == STORY_FOLLOWERS_MAX) {
        forget_longest_silent(story);
        at = follower_place(story, name);
    }
    if (!grow(&story->followers, story->follower_count, sizeof *story->followers,
              &story->inside->follower_room))
        return NULL;
    place = &story->followers[at];
    memmove(place + 1, place, (story->follower_count - at) * sizeof *place);
    story->follower_count++;
    *place = (struct story_follower){0};
    strncpy(place->name, name, sizeof place->name - 1);
    return place;
}

/* Room for one more, if need be in place of the oldest; NULL if there is none. */
static struct story_activation *activation_room(struct story *story,
                                                struct story_follower *follower) {
    struct story_activation *list = follower->activations;

    if (follower->activation_count == STORY_ACTIVATIONS_MAX ||
        (story->inside->activation_count == STORY_ALL_ACTIVATIONS && follower->activation_count)) {
        memmove(list, list + 1, (follower->activation_count - 1) * sizeof *list);
        return &list[follower->activation_count - 1];
    }
    if (story->inside->activation_count == STORY_ALL_ACTIVATIONS ||
        !grow(&follower->activations, follower->activation_count, sizeof *list, &follower->room))
        return NULL;
    story->inside->activation_count++;
    return &follower->activations[follower->activation_count++];
}

static void take_followed(struct story *story, const char *name, const struct line *line) {
    struct story_follower *follower = follower_of(story, name);
    struct story_activation *activation;

    if (!follower) {
        story->inside->failed = true;
        return;
    }
    follower->version = line->held_version;
    follower->step = line->held_step;
    follower->told_ms = line->told_ms;
    follower->fetched_bytes += line->fetched_bytes;
    if (!line->fresh)
        return;
    activation = activation_room(story, follower);
    if (!activation)
        return;
    *activation = (struct story_activation){.version = line->held_version,
                                            .step = line->held_step,
                                            .time_ms = line->told_ms,
                                            .publish_to_active_ms = line->publish_to_active_ms,
                                            .fetched_bytes = line->fetched_bytes};
    memcpy(activation->phases_ms, line->phases_ms, sizeof activation->phases_ms);
}

/* ---- all of them ---- */

static void hear(void *user, const char *name, const char *text, size_t bytes) {
    struct line line = {.story = user, .publish_to_active_ms = NAN};
    struct story *story = user;

    (void)bytes;
    forget(line.phases_ms, RUN_PHASES);
    forget(line.notes, STORY_NOTES_MAX);
    if (ulp_told_values(text, take_value, &line))
        return;
    story->told = story->changed = true;
    if (!strcmp(line.event, "publish"))
        take_published(story, &line);
    else if (!strcmp(line.event, "follow"))
        take_followed(story, name, &line);
}

void story_listen(struct story *story) {
    enum ulp_status status = ulp_listener_hear(story->inside->listener, hear, story);

    if (!status && story->inside->failed)
        status = ulp_fail(ULP_E_NOMEM, "there is no memory for all that was told");
    story->told_status = status;
    snprintf(story->told_message, sizeof story->told_message, "%s", status ? ulp_last_error() : "");
}
