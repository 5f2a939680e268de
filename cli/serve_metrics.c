// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_metrics.h"

#include "cli/prometheus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A figure of each run, or of each of its followers; what is not known is NaN, and left out. */
struct run_figure {
    const char *name, *help;
    double (*of)(const struct story *story);
};

struct follower_figure {
    const char *name, *help;
    double (*of)(const struct story *story, const struct story_follower *follower);
};

/* ---- runs ---- */

static double version_of(const struct story *story) {
    return (double)story->head.version;
}

static double step_of(const struct story *story) {
    return (double)story->head.step;
}

static double epoch_of(const struct story *story) {
    return (double)story->head.epoch;
}

static double time_of(const struct story *story) {
    return (double)story->head.time_ms / 1e3;
}

static double age_of(const struct story *story) {
    return prometheus_age_seconds(story->head.time_ms);
}

static double elements_of(const struct story *story) {
    return (double)story->head.elements;
}

/* Of the newest version; a record that only changes the map says nothing of it. */
static double changed_of(const struct story *story) {
    const struct story_step *newest = story_newest(story);

    return newest ? (double)newest->changed : NAN;
}

static double density_of(const struct story *story) {
    const struct story_step *newest = story_newest(story);

    return newest ? newest->density : NAN;
}

static double patch_of(const struct story *story) {
    const struct story_step *newest = story_newest(story);

    return newest && newest->patch_bytes ? (double)newest->patch_bytes : NAN;
}

static double full_of(const struct story *story) {
    return story->full_bytes ? (double)story->full_bytes : NAN;
}

static double versions_of(const struct story *story) {
    return (double)story->head.version + 1;
}

static const struct run_figure run_figures[] = {
    {"ulpsync_head_version", "Newest version of the run.", version_of},
    {"ulpsync_head_step", "Step of the newest version.", step_of},
    {"ulpsync_head_epoch", "Epoch of the newest version.", epoch_of},
    {"ulpsync_head_time_seconds", "When the newest record was made, since 1970.", time_of},
    {"ulpsync_head_age_seconds", "Time since the newest record that is known was made.", age_of},
    {"ulpsync_head_elements", "Elements of the state.", elements_of},
    {"ulpsync_head_changed", "Elements that the newest version changed.", changed_of},
    {"ulpsync_head_density", "Share of the elements that the newest version changed.", density_of},
    {"ulpsync_head_patch_bytes", "Bytes of the patch to the newest version.", patch_of},
    {"ulpsync_head_full_bytes", "Bytes of a full state.", full_of},
    {"ulpsync_versions", "Versions that were published.", versions_of},
};

/* ---- followers ---- */

static double held_version_of(const struct story *story, const struct story_follower *follower) {
    (void)story;
    return (double)follower->version;
}

static double held_step_of(const struct story *story, const struct story_follower *follower) {
    (void)story;
    return (double)follower->step;
}

static double lag_of(const struct story *story, const struct story_follower *follower) {
    return (double)story_lag(story, follower);
}

static double active_of(const struct story *story, const struct story_follower *follower) {
    (void)story;
    return story_active_last(follower) / 1e3;
}

static double fetched_of(const struct story *story, const struct story_follower *follower) {
    (void)story;
    return (double)follower->fetched_bytes;
}

static double told_age_of(const struct story *story, const struct story_follower *follower) {
    (void)story;
    return prometheus_age_seconds(follower->told_ms);
}

static const struct follower_figure follower_figures[] = {
    {"ulpsync_version", "Version of the run that is held.", held_version_of},
    {"ulpsync_step", "Step of the version that is held.", held_step_of},
    {"ulpsync_lag_versions", "Versions between the one that is held and the newest that is known.",
     lag_of},
    {"ulpsync_publish_to_active_seconds",
     "Time from the publication of the version that is held until it was active.", active_of},
    {"ulpsync_told_fetched_bytes", "Bytes of patches and anchors that it told of.", fetched_of},
    {"ulpsync_told_age_seconds", "Time since it told something.", told_age_of},
};

/* ---- pages ---- */

static void sample(FILE *file, const char *name, const char *run, const char *follower,
                   double value) {
    const struct prometheus page = {.file = file, .run = run};

    if (isfinite(value))
        prometheus_sample(&page, name, follower ? "follower" : NULL, follower, value);
}

/* Only runs that could be read have figures. */
static bool is_known(const struct serve_run *run) {
    return run->opened && run->story.head.sequence;
}

static void print_runs(const struct prometheus *page, const struct serve_runs *runs) {
    for (size_t k = 0; k < sizeof run_figures / sizeof *run_figures; k++) {
        const struct run_figure *figure = &run_figures[k];

        prometheus_head(page, figure->name, "gauge", figure->help);
        for (size_t i = 0; i < runs->count; i++) {
            const struct serve_run *run = runs->list[i];

            if (is_known(run))
                sample(page->file, figure->name, run->name, NULL, figure->of(&run->story));
        }
    }
}

static void print_followers(const struct prometheus *page, const struct serve_runs *runs) {
    for (size_t k = 0; k < sizeof follower_figures / sizeof *follower_figures; k++) {
        const struct follower_figure *figure = &follower_figures[k];

        prometheus_head(page, figure->name, "gauge", figure->help);
        for (size_t i = 0; i < runs->count; i++) {
            const struct story *story = &runs->list[i]->story;

            for (size_t j = 0; is_known(runs->list[i]) && j < story->follower_count; j++)
                sample(page->file, figure->name, runs->list[i]->name, story->followers[j].name,
                       figure->of(story, &story->followers[j]));
        }
    }
}

static void print_failures(const struct prometheus *page, const struct serve_runs *runs) {
    static const char name[] = "ulpsync_run_readable";

    prometheus_head(page, name, "gauge", "Whether the run could be read just now.");
    for (size_t i = 0; i < runs->count; i++)
        sample(page->file, name, runs->list[i]->name, NULL, runs->list[i]->status ? 0 : 1);
}

/* ---- the server ---- */

static void print_server(const struct prometheus *page, struct http_server *server) {
    static const char requests[] = "ulpsync_serve_requests_total";
    struct http_server_figures figures;

    http_server_figures(server, &figures);
    prometheus_head(page, requests, "counter", "Requests that were answered, by status code.");
    for (unsigned code = 0; code < HTTP_CODES; code++) {
        char text[8];

        snprintf(text, sizeof text, "%u", code);
        if (figures.requests[code])
            prometheus_sample(page, requests, "code", text, (double)figures.requests[code]);
    }
    prometheus_one(page, "ulpsync_serve_sent_bytes_total", "counter",
                   "Bytes of answers, without heads.", (double)figures.sent_bytes);
    prometheus_one(page, "ulpsync_serve_connections", "gauge", "Connections that are open.",
                   (double)figures.connections);
    prometheus_one(page, "ulpsync_serve_cut_connections_total", "counter",
                   "Connections that were cut off for being slow, or in the way of others.",
                   (double)figures.cut);
}

static void print_all(const struct prometheus *page, struct serve_pages *pages) {
    struct serve_runs *runs = &pages->runs;

    /* a store that cannot be listed right now has the runs that were known */
    serve_runs_list(runs, &pages->objects);
    for (size_t i = 0; i < runs->count; i++)
        serve_run_look(runs->list[i], &pages->objects);
    print_runs(page, runs);
    print_followers(page, runs);
    print_failures(page, runs);
    print_server(page, pages->server);
}

void serve_metrics(struct serve_pages *pages, struct http_reply *reply) {
    size_t bytes = 0;
    struct prometheus page = {.file = open_memstream(&reply->text, &bytes)};
    bool written;

    if (!page.file) {
        serve_failure(ULP_E_NOMEM, reply);
        return;
    }
    print_all(&page, pages);
    written = !ferror(page.file);
    if (fclose(page.file) || !written) {
        free(reply->text);
        serve_failure(ULP_E_NOMEM, reply);
        return;
    }
    reply->code = 200;
    reply->length = bytes;
    http_reply_header(reply, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    http_reply_header(reply, "Cache-Control", "no-store");
}
