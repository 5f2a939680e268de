// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_runs.h"

#include "cli/figures.h"
#include "cli/limits.h"
#include "cli/run_names.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nobody sees what is newer than this; whoever asks a thousand times a second costs no more. */
#define LOOK_NS 200000000u
#define LIST_NS 1000000000u

/* After a listing there is none for so many times as long as it took. */
#define LIST_REST_TIMES 8u

static bool is_fresh(uint64_t at_ns, uint64_t for_ns) {
    return at_ns && now_ns() - at_ns < for_ns;
}

static void run_free(struct serve_run *run) {
    if (!run)
        return;
    if (run->opened)
        story_close(&run->story);
    text_release(&run->figures);
    free(run);
}

/* ---- which there are ---- */

struct listing {
    const struct serve_objects *objects;
    struct serve_runs *old;
    struct serve_run *found[LIMIT_SERVE_RUNS];
    size_t count;
    bool more;
};

/* The one that is known already, which then is the listing's, or a new one. */
static struct serve_run *take(struct serve_runs *old, const char *name) {
    struct serve_run *run;

    for (size_t i = 0; i < old->count; i++) {
        if (old->list[i] && !strcmp(old->list[i]->name, name)) {
            run = old->list[i];
            old->list[i] = NULL;
            return run;
        }
    }
    run = calloc(1, sizeof *run);
    if (run)
        snprintf(run->name, sizeof run->name, "%s", name);
    return run;
}

static enum ulp_status hear_name(void *user, const char *name) {
    struct listing *listing = user;

    if (!serve_run_name(listing->objects, name))
        return ULP_OK;
    if (listing->count == LIMIT_SERVE_RUNS) {
        listing->more = true;
        return ULP_E_CANCELLED; /* nobody asks how many more there are */
    }
    listing->found[listing->count] = take(listing->old, name);
    if (!listing->found[listing->count])
        return ulp_fail(ULP_E_NOMEM, "out of memory for a run");
    listing->count++;
    return ULP_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct serve_run *const *)a)->name, (*(struct serve_run *const *)b)->name);
}

/* After a failure those that were known and not found may still be there. */
static void keep_unfound(struct listing *listing) {
    for (size_t i = 0; i < listing->old->count && listing->count < LIMIT_SERVE_RUNS; i++) {
        if (listing->old->list[i])
            listing->found[listing->count++] = listing->old->list[i];
        listing->old->list[i] = NULL;
    }
}

/* What was found takes the place of what was known. */
static enum ulp_status keep(struct serve_runs *runs, const struct listing *listing) {
    struct serve_run **list = calloc(listing->count + 1, sizeof *list);

    serve_runs_release(runs);
    *runs = (struct serve_runs){.list = list, .more = listing->more, .listed_ns = now_ns()};
    if (!list) {
        for (size_t i = 0; i < listing->count; i++)
            run_free(listing->found[i]);
        return ulp_fail(ULP_E_NOMEM, "out of memory for runs");
    }
    memcpy(list, listing->found, listing->count * sizeof *list);
    qsort(list, listing->count, sizeof *list, by_name); /* stores have "rl-2" before "rl" */
    runs->count = listing->count;
    return ULP_OK;
}

enum ulp_status serve_runs_list(struct serve_runs *runs, const struct serve_objects *objects) {
    struct listing listing = {.objects = objects, .old = runs};
    const uint64_t began_ns = now_ns();
    enum ulp_status status, kept;

    if (is_fresh(runs->listed_ns, runs->rest_ns))
        return ULP_OK;
    status = objects->run ? hear_name(&listing, objects->run)
                          : run_names(objects->store, hear_name, &listing);
    if (listing.more)
        status = ULP_OK;
    if (status)
        keep_unfound(&listing);
    kept = keep(runs, &listing);
    runs->rest_ns = LIST_NS + LIST_REST_TIMES * (now_ns() - began_ns);
    return status ? status : kept;
}

struct serve_run *serve_runs_find(struct serve_runs *runs, const struct serve_objects *objects,
                                  const char *name) {
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < runs->count; i++) {
            if (!strcmp(runs->list[i]->name, name))
                return runs->list[i];
        }
        if (serve_runs_list(runs, objects))
            return NULL;
    }
    return NULL;
}

/* ---- how they go ---- */

void serve_run_look(struct serve_run *run, const struct serve_objects *objects) {
    if (is_fresh(run->looked_ns, LOOK_NS))
        return;
    run->status = ULP_OK;
    if (!run->opened)
        run->status = story_open(objects->store, run->name, 0, &run->story);
    run->opened |= !run->status;
    if (!run->status)
        run->status = story_refresh(&run->story);
    snprintf(run->message, sizeof run->message, "%s", run->status ? ulp_last_error() : "");
    if (run->opened && run->story.changed)
        run->drawn = false;
    run->looked_ns = now_ns();
}

/* FNV-1a, and the length: it tells figures apart, nobody is kept out by it. */
static void make_tag(const struct text *text, char ret_tag[SERVE_TAG_BYTES]) {
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < text->length; i++)
        hash = (hash ^ (unsigned char)text->data[i]) * 0x100000001b3;
    snprintf(ret_tag, SERVE_TAG_BYTES, "%zx-%016llx", text->length, (unsigned long long)hash);
}

enum ulp_status serve_run_draw(struct serve_run *run) {
    if (run->drawn)
        return ULP_OK;
    text_release(&run->figures);
    figures_of_story(&run->figures, &run->story, NULL);
    make_tag(&run->figures, run->tag);
    run->drawn = true;
    return text_status(&run->figures);
}

void serve_runs_release(struct serve_runs *runs) {
    for (size_t i = 0; i < runs->count; i++)
        run_free(runs->list[i]);
    free(runs->list);
    *runs = (struct serve_runs){0};
}
