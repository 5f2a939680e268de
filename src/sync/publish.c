// SPDX-License-Identifier: Apache-2.0
/* The order is the protocol: parts first, then our own check of them, then the record; the base
 * moves last. */
#include "sync/publish.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "digest/root.h"
#include "patch/apply.h"
#include "patch/diff.h"
#include "patch/fit.h"
#include "sync/anchor_files.h"
#include "sync/follow.h"
#include "sync/parts.h"
#include "tensor/model.h"

#include <limits.h>
#include <string.h>
#include <sys/random.h>

#define HISTORY_RESET_DEFAULT 8u
#define ANCHOR_EVERY_DEFAULT 64u
#define PATCH_BYTES_MAX ((size_t)1 << 36)

/* Anchors that stay in the map; followers that are on their way to the older one still arrive. */
#define ANCHORS_KEPT 2u

/* The map has the ways behind all of them, and one more while a record is made. */
#define WAYS_BETWEEN_ANCHORS_MAX (LIMIT_WAYS / ANCHORS_KEPT - 1)

struct publishing {
    struct ulp_store *store;
    const char *run;
    struct replica *replica;
    const char *path;
    const struct ulp_run_options *options;
    struct ulp_run_report *report;
    struct arena arena;   /* of what the new record points to */
    struct record record; /* being made */
};

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

static enum ulp_status commit(struct publishing *p) {
    struct log_mark mark;

    p->record.time_ms = clock_wall_ns() / 1000000;
    return log_append(p->store, p->run, &p->record, &mark);
}

/* ---- anchors ---- */

/* Adds an anchor of the record's version to the map, and lets go of the oldest. */
static enum ulp_status add_anchor(struct publishing *p) {
    const size_t keep =
        p->record.anchor_count < ANCHORS_KEPT - 1 ? p->record.anchor_count : ANCHORS_KEPT - 1;
    struct anchor *anchors = NULL;
    enum ulp_status status = arena_zeroed(&p->arena, keep + 1, sizeof *anchors, &anchors);

    for (size_t i = 0; !status && i < keep; i++)
        anchors[i] = p->record.anchors[p->record.anchor_count - keep + i];
    if (!status)
        status = anchor_files_put(p->store, p->run, p->path, &p->arena, &anchors[keep],
                                  &p->report->stored_bytes);
    if (status)
        return status;
    anchors[keep].version = p->record.version;
    anchors[keep].root = p->record.root;
    p->record.anchors = anchors;
    p->record.anchor_count = keep + 1;
    return ULP_OK;
}

/* Nobody starts in front of the oldest anchor that is left, except who is on the way. */
static enum ulp_status drop_old_ways(struct publishing *p) {
    const uint64_t from = p->record.anchors[0].version;
    struct way *ways = NULL;
    size_t count = 0;
    enum ulp_status status = arena_zeroed(&p->arena, p->record.way_count, sizeof *ways, &ways);

    for (size_t i = 0; !status && i < p->record.way_count; i++) {
        if (p->record.ways[i].from >= from)
            ways[count++] = p->record.ways[i];
    }
    if (!status) {
        p->record.ways = ways;
        p->record.way_count = count;
    }
    return status;
}

static enum ulp_status publish_first(struct publishing *p, uint64_t step) {
    struct ulp_model *model = NULL;
    enum ulp_status status = model_open(p->path, &model);

    p->record.sequence = 1;
    p->record.step = step;
    if (!status && getrandom(p->record.run, RUN_ID_BYTES, 0) != RUN_ID_BYTES)
        status = fail(ULP_E_IO, "the system gives no random numbers");
    if (!status)
        status = state_digest(model->tensors, model->count, p->options->pool, p->options->progress,
                              NULL, &p->record.root);
    if (!status)
        status = add_anchor(p);
    if (!status)
        status = commit(p);
    model_free(model);
    return status;
}

/* There is one. */
static uint64_t newest_anchor(const struct publishing *p) {
    return p->record.anchors[p->record.anchor_count - 1].version;
}

/* ---- patches ---- */

struct bases {
    struct ulp_model *base, *before, *next;
    struct ulp_weights *weights;
};

static void bases_free(struct bases *bases) {
    weights_free(bases->weights);
    model_free(bases->base);
    model_free(bases->before);
    model_free(bases->next);
}

/* History is only used between resets, and when the version before is at hand; never behind an
 * anchor, so that who starts there can go on, whatever options made it. */
static bool with_history(const struct publishing *p) {
    const unsigned reset =
        p->options->history_reset ? p->options->history_reset : HISTORY_RESET_DEFAULT;

    return p->replica->held.before && p->replica->held.version % reset != 0 &&
           newest_anchor(p) != p->replica->held.version;
}

static enum ulp_status open_bases(const struct publishing *p, struct bases *bases) {
    const uint64_t version = p->replica->held.version;
    char path[PATH_MAX];
    enum ulp_status status = replica_version_path(p->replica, version, path);

    if (!status)
        status = model_open(path, &bases->base);
    if (!status)
        status = model_open(p->path, &bases->next);
    if (!status)
        status = weights_new(bases->base->tensors, bases->base->count, p->options->pool,
                             p->options->progress, &bases->weights);
    if (status || !with_history(p))
        return status;
    status = replica_version_path(p->replica, version - 1, path);
    if (!status)
        status = model_open(path, &bases->before);
    return status ? status
                  : weights_remember(bases->weights, bases->before->tensors, bases->before->count,
                                     p->options->pool, p->options->progress);
}

/* Whoever publishes a patch has decoded it against its own base. */
static enum ulp_status check_own(const struct publishing *p, struct ulp_weights *weights,
                                 const struct buffer *bytes) {
    const struct ulp_apply_options options = {.pool = p->options->pool};
    struct ulp_patch *patch = NULL;
    struct ulp_apply *apply = NULL;
    enum ulp_status status = patch_open_memory(bytes->data, bytes->used, &patch);

    if (!status)
        status = apply_prepare(weights, (const struct ulp_patch *const *)&patch, 1, NULL, &options,
                               &apply);
    apply_free(apply);
    patch_free(patch);
    return status;
}

static enum ulp_status put_parts(struct publishing *p, const struct buffer *bytes,
                                 struct way *way) {
    const size_t count = (bytes->used + PART_BYTES - 1) / PART_BYTES;
    struct part *parts = NULL;
    enum ulp_status status = arena_zeroed(&p->arena, count, sizeof *parts, &parts);

    for (size_t i = 0; !status && i < count; i++) {
        size_t at = i * PART_BYTES, left = bytes->used - at;

        status = part_put(p->store, p->run, bytes->data + at, left < PART_BYTES ? left : PART_BYTES,
                          &parts[i], &p->report->stored_bytes);
    }
    way->parts = parts;
    way->part_count = count;
    return status;
}

static enum ulp_status add_way(struct publishing *p, struct way way) {
    struct way *ways = NULL;
    enum ulp_status status = arena_zeroed(&p->arena, p->record.way_count + 1, sizeof *ways, &ways);

    if (status)
        return status;
    if (p->record.way_count)
        memcpy(ways, p->record.ways, p->record.way_count * sizeof *ways);
    ways[p->record.way_count++] = way;
    p->record.ways = ways;
    return ULP_OK;
}

static enum ulp_status make_patch(struct publishing *p, struct bases *bases) {
    struct buffer bytes = BUFFER(PATCH_BYTES_MAX);
    const struct ulp_sink sink = {append, &bytes};
    const struct ulp_diff_options options = {
        .pool = p->options->pool, .progress = p->options->progress, .history = 1};
    struct ulp_diff_report report = {0};
    struct way way = {
        .from = p->replica->held.version, .to = p->record.version, .sequence = p->record.sequence};
    enum ulp_status status =
        diff(bases->weights, bases->next->tensors, bases->next->count, &options, &sink, &report);

    if (!status)
        status = check_own(p, bases->weights, &bytes);
    if (!status)
        status = put_parts(p, &bytes, &way);
    way.history = report.history;
    way.changes = report.changed;
    p->record.root = report.child;
    if (!status)
        status = add_way(p, way);
    buffer_release(&bytes);
    return status;
}

/* Anchors stand where history begins anew anyway, or where the map would become too large. */
static bool anchor_is_due(const struct publishing *p) {
    const unsigned reset =
        p->options->history_reset ? p->options->history_reset : HISTORY_RESET_DEFAULT;
    const unsigned every =
        p->options->anchor_every ? p->options->anchor_every : ANCHOR_EVERY_DEFAULT;
    const uint64_t since = p->record.version - newest_anchor(p);

    return (p->record.version % reset == 0 && since >= every) || since >= WAYS_BETWEEN_ANCHORS_MAX;
}

static enum ulp_status publish_next(struct publishing *p, const struct log_entry *head,
                                    uint64_t step) {
    struct bases bases = {0};
    enum ulp_status status;

    p->record = head->record;
    p->record.sequence++;
    p->record.before = head->hash;
    p->record.version++;
    p->record.epoch += step < head->record.step;
    p->record.step = step;
    status = head->record.anchor_count
                 ? open_bases(p, &bases)
                 : fail(ULP_E_RECORD, "run %s has no anchor", quote(p->run).text);
    if (!status)
        status = make_patch(p, &bases);
    if (!status && anchor_is_due(p)) {
        status = add_anchor(p);
        if (!status)
            status = drop_old_ways(p);
    }
    if (!status)
        status = commit(p);
    bases_free(&bases);
    return status;
}

enum ulp_status publish(struct ulp_store *store, const char *run, struct replica *replica,
                        const char *path, uint64_t step, const struct ulp_run_options *options,
                        struct ulp_run_report *report) {
    struct publishing p = {.store = store,
                           .run = run,
                           .replica = replica,
                           .path = path,
                           .options = options,
                           .report = report};
    struct log_entry head = {0};
    enum ulp_status status = follow(store, run, replica, options, &head, report);

    if (!status)
        status = publish_next(&p, &head, step);
    else if (status == ULP_E_NO_RUN && !replica->seen)
        status = publish_first(&p, step);
    log_entry_release(&head);
    arena_release(&p.arena);
    /* the base moves only now, and from what the store holds */
    if (!status)
        status = follow(store, run, replica, options, &head, report);
    log_entry_release(&head);
    report->fresh = !status;
    return status;
}
