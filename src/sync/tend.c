// SPDX-License-Identifier: Apache-2.0
/*
 * Long ways. For each length there is a replica that stands at a multiple of it; when the run is a
 * length further, the patches from there are squashed into one, which is added to the map, and the
 * replica moves on. Where it stands is all that has to be remembered.
 */
#include "sync/tend.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/quote.h"
#include "chain/map.h"
#include "patch/apply.h"
#include "patch/patch.h"
#include "patch/squash.h"
#include "sync/commit.h"
#include "sync/replica.h"
#include "sync/upload.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Both multiples of HISTORY_RESET. 8 and 64 would need up to 23 ways for 100 versions, these 17. */
static const unsigned spans[] = {8, 32};

/* Deletions that were announced meanwhile may make us store again so often. */
#define ROUNDS_MAX 4u

struct span {
    struct ulp_follower *follower;
    struct work work;
    uint64_t length;
    bool *added;
};

/* ---- one long way ---- */

struct squashing {
    struct fetched *fetched; /* one for each way */
    const struct ulp_patch **patches;
    size_t count;
    struct upload upload;
    struct ulp_patch *patch; /* our own */
    struct ulp_diff_report report;
};

static void squashing_release(struct squashing *q) {
    patch_free(q->patch);
    upload_release(&q->upload);
    for (size_t i = 0; q->fetched && i < q->count; i++)
        fetched_release(&q->fetched[i]);
    mem_free(q->fetched);
    mem_free(q->patches);
}

static enum ulp_status fetch_all(const struct span *s, const struct plan *plan,
                                 struct squashing *q) {
    enum ulp_status status = mem_zeroed(plan->way_count, sizeof *q->fetched, &q->fetched);

    q->count = plan->way_count;
    if (!status)
        status = mem_zeroed(plan->way_count, sizeof *q->patches, &q->patches);
    for (size_t i = 0; !status && i < plan->way_count; i++) {
        status = fetch_way(s->work.store, s->work.run, plan->ways[i], &q->fetched[i]);
        if (!status) {
            q->patches[i] = q->fetched[i].patches[0];
            s->work.report->fetched_bytes += q->fetched[i].bytes;
            s->work.report->fetched_objects += q->fetched[i].objects;
        }
    }
    return status;
}

/* Rule 8 holds for whoever adds a patch. */
static enum ulp_status check_own(struct squashing *q, struct ulp_weights *weights,
                                 const struct work *work) {
    const struct ulp_apply_options options = {.pool = work->options->pool,
                                              .staging_bytes = WORK_BYTES};
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct ulp_apply *apply = NULL;
    enum ulp_status status = spool_view(&q->upload.copy, &data, &bytes);

    if (!status)
        status = patch_open_memory(data, bytes, &q->patch);
    if (!status)
        status = apply_prepare(weights, (const struct ulp_patch *const *)&q->patch, 1, NULL,
                               &options, &apply);
    apply_free(apply);
    return status;
}

static enum ulp_status make_patch(const struct span *s, const struct plan *plan,
                                  struct squashing *q) {
    struct holder *holder = s->follower->holder;
    const struct ulp_diff_options options = {.pool = s->work.options->pool,
                                             .progress = s->work.options->progress};
    const struct ulp_sink sink = {upload_write, &q->upload};
    struct ulp_weights *weights = NULL;
    enum ulp_status status =
        upload_begin(&q->upload, s->work.store, s->work.run, holder->seen.record.sequence + 1);

    if (!status)
        status = fetch_all(s, plan, q);
    if (!status)
        status = holder->ops->weights(holder, &s->work, false, &weights);
    if (!status)
        status = squash(weights, q->patches, q->count, &options, &sink, &q->report);
    if (!status)
        status = check_own(q, weights, &s->work);
    return status ? status : upload_end(&q->upload);
}

static enum ulp_status add_way(const struct span *s, const struct plan *plan,
                               const struct squashing *q, bool *ret_moved) {
    const struct stored_patch stored = {q->upload.parts, q->upload.count};
    const struct way *last = plan->ways[plan->way_count - 1];
    const struct way way = {.from = plan->ways[0]->from,
                            .to = last->to,
                            .changes = q->report.changed,
                            .sequence = last->sequence,
                            .patches = &stored,
                            .patch_count = 1};
    const struct addition addition = {.way = &way, .key = s->work.options->sign};
    enum ulp_status status = commit(s->follower, &addition, s->work.report, ret_moved);

    if (!status && !*ret_moved) {
        *s->added = true;
        s->work.report->stored_bytes += q->report.patch_bytes;
        s->work.report->stored_objects += (unsigned)q->upload.count;
    }
    return status == ULP_E_EXISTS ? ULP_OK : status; /* somebody else tends this run too */
}

static enum ulp_status make_way(const struct span *s, const struct plan *plan, bool *ret_moved) {
    struct squashing q = {0};
    enum ulp_status status = make_patch(s, plan, &q);

    *ret_moved = false;
    if (!status && q.report.patch_bytes < plan->bytes)
        status = add_way(s, plan, &q, ret_moved);
    squashing_release(&q);
    return status;
}

/* Several whole patches, and no anchor in between: else there is nothing to be squashed. */
static bool is_worth_it(const struct plan *plan) {
    if (plan->anchor || plan->way_count < 2)
        return false;
    for (size_t i = 0; i < plan->way_count; i++) {
        if (plan->ways[i]->patch_count != 1)
            return false;
    }
    return true;
}

/* ---- one length ---- */

static enum ulp_status go_to(const struct span *s, uint64_t version) {
    s->follower->options.stop_at_version = 1;
    s->follower->options.version = version;
    return follower_catch_up(s->follower, s->work.report);
}

/* The way from where the replica stands, unless it is there. */
static enum ulp_status add_next(const struct span *s, bool *ret_moved) {
    const struct holder *holder = s->follower->holder;
    const uint64_t from = holder->held.version, to = from + s->length;
    struct arena arena = {0};
    struct plan plan = {0};
    enum ulp_status status = plan_make(&holder->seen.record, &holder->held, to, &arena, &plan);

    *ret_moved = false;
    if (!status && is_worth_it(&plan))
        status = make_way(s, &plan, ret_moved);
    arena_release(&arena);
    return status;
}

static uint64_t multiple_from(uint64_t version, uint64_t length) {
    return (version + length - 1) / length * length;
}

/* Where the next long way starts: where the replica stands, unless that cannot be had any more. */
static uint64_t next_start(const struct span *s) {
    const struct holder *holder = s->follower->holder;
    const uint64_t oldest = record_summary(&holder->seen.record).oldest;

    return holder->held.any && holder->held.version >= oldest
               ? multiple_from(holder->held.version, s->length)
               : multiple_from(oldest, s->length);
}

static enum ulp_status tend_span(const struct span *s) {
    const struct holder *holder = s->follower->holder;
    enum ulp_status status = follower_look(s->follower, s->work.report);
    unsigned rounds = 0;

    while (!status && next_start(s) + s->length <= holder->seen.record.version) {
        bool moved = false;

        status = go_to(s, next_start(s));
        if (!status)
            status = add_next(s, &moved);
        if (!status && !(moved && ++rounds < ROUNDS_MAX))
            status = go_to(s, holder->held.version + s->length);
    }
    return status;
}

static enum ulp_status open_span(struct ulp_store *store, const char *run, const char *directory,
                                 const struct ulp_run_options *options, struct span *s) {
    char path[PATH_MAX];
    struct holder *holder = NULL;
    enum ulp_status status = ULP_OK;

    if (snprintf(path, sizeof path, "%s/%llu", directory, (unsigned long long)s->length) >=
        (int)sizeof path)
        status = fail(ULP_E_NAME, "the path %s is too long", quote(directory).text);
    if (!status)
        status = replica_open(path, NULL, &holder);
    return status ? status : follower_new(store, run, options, holder, &s->follower);
}

enum ulp_status tend(struct ulp_store *store, const char *run, const char *directory,
                     const struct ulp_run_options *options, struct ulp_run_report *report) {
    bool added = false;
    enum ulp_status status = file_make_directory(directory);

    for (size_t i = 0; !status && i < sizeof spans / sizeof spans[0]; i++) {
        struct span s = {
            .work = {store, run, options, report}, .length = spans[i], .added = &added};

        status = open_span(store, run, directory, options, &s);
        if (!status)
            status = tend_span(&s);
        if (!status)
            report->head = record_summary(&s.follower->holder->seen.record);
        follower_free(s.follower);
    }
    report->fresh = added;
    return status;
}
