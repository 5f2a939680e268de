// SPDX-License-Identifier: Apache-2.0
/* Many ranks store, one record publishes: contributing and settling. How they are joined is in
 * join.c. */
#include "sync/tile_writer.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "chain/map.h"
#include "patch/apply.h"
#include "sync/contribution.h"
#include "sync/join.h"
#include "sync/sealed_patch.h"
#include "sync/slice.h"
#include "sync/tile_holder.h"

#include <string.h>

static struct work work_of(const struct ulp_tile_writer *w, struct ulp_run_report *report) {
    struct ulp_follower *f = w->follower;

    return (struct work){f->store, f->run, &f->options, report};
}

static void forget(struct ulp_tile_writer *w) {
    making_release(&w->making);
    w->contributed = false;
}

/* ---- contributing ---- */

static enum ulp_status make_patches(struct ulp_tile_writer *w, const struct work *work,
                                    const struct given *given, const struct ulp_weights *weights) {
    const struct slice *slice = w->follower->holder->slice;
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status =
        making_begin(&w->making, work, w->follower->holder->seen.record.sequence + 1);

    if (!status && slice->common)
        status = making_add_tile(&w->making, w->follower->holder, weights, given->tensors,
                                 given->count, slice->tiling, 0, work);
    if (!status)
        status = making_add_tile(&w->making, w->follower->holder, weights, given->tensors,
                                 given->count, slice->tiling, slice->tile, work);
    work_spent(&work->report->phases.encode_ns, started);
    return status ? status : making_open(&w->making);
}

/* Rule 8. Where all parts together lead is not known yet: the sums of our own are what is looked at,
 * so any root will do. */
static enum ulp_status check_own(const struct ulp_tile_writer *w, const struct work *work,
                                 struct ulp_weights *weights) {
    const struct ulp_apply_options options = {.pool = work->options->pool,
                                              .staging_bytes = WORK_BYTES};
    const uint64_t started = clock_monotonic_ns();
    struct ulp_apply *apply = NULL;
    enum ulp_status status =
        apply_prepare(weights, (const struct ulp_patch *const *)w->making.patches,
                      w->making.patch_count, &weights->root, &options, &apply);

    apply_free(apply);
    work_spent(&work->report->phases.verify_ns, started);
    return status;
}

/* The patches, one for each tile that has one. */
static enum ulp_status describe_patches(struct ulp_tile_writer *w, struct arena *arena,
                                        struct contribution *c) {
    const struct slice *slice = w->follower->holder->slice;
    const struct stored_patch *stored = NULL;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    struct making *making = &w->making;
    enum ulp_status status = making_stored(making, arena, &stored);

    if (!status)
        status = spool_view(&making->upload.copy, &data, &bytes);
    for (size_t i = 0; !status && i < making->count; i++) {
        const struct made *made = &making->made[i];
        struct contributed_patch *patch = &c->patches[c->count];

        if (!made->bytes)
            continue;
        patch->tile = slice->common && i == 0 ? 0 : slice->tile;
        patch->changes = made->changes;
        patch->stored = stored[i];
        status = patch_seal(data + made->first_byte, (size_t)made->bytes, &patch->seal);
        c->count++;
    }
    return status;
}

static enum ulp_status describe(struct ulp_tile_writer *w, uint64_t step) {
    const struct record *record = &w->follower->holder->seen.record;
    struct contribution c = {.version = record->version,
                             .root = record->root,
                             .step = step,
                             .tiles = tiling_count(w->follower->holder->slice->tiling)};
    struct arena arena = {0};
    enum ulp_status status = describe_patches(w, &arena, &c);

    memcpy(c.run, record->run, RUN_ID_BYTES);
    buffer_clear(&w->contribution);
    if (!status)
        status = contribution_write(&c, &w->contribution);
    arena_release(&arena);
    return status;
}

enum ulp_status tile_writer_contribute(struct ulp_tile_writer *w, const struct given *given,
                                       uint64_t step, struct ulp_run_report *report) {
    const struct work work = work_of(w, report);
    struct holder *holder = w->follower->holder;
    struct ulp_weights *weights = NULL;
    enum ulp_status status;

    forget(w);
    status = follower_catch_up(w->follower, report);
    if (!status)
        status = holder->ops->weights(holder, &work, false, &weights);
    if (!status)
        status = make_patches(w, &work, given, weights);
    if (!status)
        status = check_own(w, &work, weights);
    if (!status)
        status = making_end(&w->making, &work);
    if (!status)
        status = describe(w, step);
    if (status) {
        forget(w);
        return status;
    }
    w->contributed = true;
    w->version = holder->held.version;
    report->head = record_summary(&holder->seen.record);
    report->version = holder->held.version;
    report->fresh = 0;
    return ULP_OK;
}

/* ---- committing ---- */

enum ulp_status tile_writer_commit(struct ulp_tile_writer *w, const void *const *contributions,
                                   const size_t *sizes, size_t count, uint64_t step,
                                   struct ulp_run_report *report) {
    const struct work work = work_of(w, report);
    enum ulp_status status = follower_look(w->follower, report);

    if (!status)
        status = join_and_commit(w->follower, &work, contributions, sizes, count, step);
    if (status)
        return status;
    report->head = record_summary(&w->follower->holder->seen.record);
    report->version = w->follower->holder->held.version;
    report->fresh = 1;
    return ULP_OK;
}

/* ---- settling ---- */

static bool same_patch(const struct stored_patch *a, const struct stored_patch *b) {
    if (a->part_count != b->part_count)
        return false;
    for (size_t i = 0; i < a->part_count; i++) {
        if (a->parts[i].folder != b->parts[i].folder ||
            memcmp(&a->parts[i].hash, &b->parts[i].hash, sizeof a->parts[i].hash) != 0)
            return false;
    }
    return true;
}

/* Whether the way is made of what we contributed; `sliced` are its patches that are ours. */
static enum ulp_status is_ours(const struct ulp_tile_writer *w, const struct way *sliced,
                               bool *ret_ours) {
    struct arena arena = {0};
    const struct stored_patch *stored = NULL;
    enum ulp_status status = making_stored(&w->making, &arena, &stored);
    bool ours = sliced && sliced->patch_count == w->making.count;

    for (size_t i = 0; !status && ours && i < w->making.count; i++)
        ours = same_patch(&stored[i], &sliced->patches[i]);
    arena_release(&arena);
    *ret_ours = ours;
    return status;
}

/* Without fetching what we have made ourselves. */
static enum ulp_status move_on(struct ulp_tile_writer *w, const struct work *work,
                               const struct way *way) {
    struct holder *holder = w->follower->holder;
    const struct step step = {.way = way,
                              .patches = (const struct ulp_patch *const *)w->making.patches,
                              .count = w->making.patch_count,
                              .root = &holder->seen.record.root};
    enum ulp_status status = holder->ops->step(holder, work, &step);

    if (!status)
        status = holder_show(holder, work);
    if (status)
        holder->ops->drop(holder);
    return status;
}

static enum ulp_status settle_on(struct ulp_tile_writer *w, const struct work *work) {
    struct holder *holder = w->follower->holder;
    const struct slice *slice = holder->slice;
    const struct record *record = &holder->seen.record;
    const uint64_t next = w->version + 1;
    const struct way *way;
    struct arena arena = {0};
    struct record sliced;
    bool ours = false;
    enum ulp_status status =
        map_slice(record, tiling_count(slice->tiling), slice->tile, slice->common, &arena, &sliced);

    way = status ? NULL : map_way(&sliced, w->version, next);
    if (!status)
        status = is_ours(w, way, &ours);
    if (!status && ours && record->version == next && holder->held.version == w->version)
        status = move_on(w, work, way);
    arena_release(&arena);
    if (!status)
        status = follower_catch_up(w->follower, work->report);
    if (status)
        return status;
    forget(w);
    work->report->fresh = ours;
    return ours ? ULP_OK
                : fail(ULP_E_FENCED,
                       "version %llu of run %s is not made of what was contributed: somebody else "
                       "published it",
                       (unsigned long long)next, quote(w->follower->run).text);
}

enum ulp_status tile_writer_settle(struct ulp_tile_writer *w, struct ulp_run_report *report) {
    const struct work work = work_of(w, report);
    struct holder *holder = w->follower->holder;
    enum ulp_status status = follower_look(w->follower, report);

    if (status)
        return status;
    if (w->contributed && holder->seen.record.version != w->version)
        status = settle_on(w, &work);
    if (!status) {
        report->head = record_summary(&holder->seen.record);
        report->version = holder->held.version;
    }
    return status;
}

/* ---- life ---- */

enum ulp_status tile_writer_new(struct ulp_store *store, const char *run,
                                const struct ulp_tensor *tensors, size_t count,
                                const struct ulp_run_options *options,
                                struct ulp_tile_writer **ret_writer) {
    struct ulp_run_options newest = *options;
    struct ulp_tile_writer *w = NULL;
    struct holder *holder = NULL;
    struct slice slice;
    enum ulp_status status = slice_make(options->tiling, options->tile, options->tile == 1, &slice);

    newest.stop_at_version = 0; /* only the newest can be built on */
    if (!status)
        status = mem_zeroed(1, sizeof *w, &w);
    if (status)
        return status;
    w->contribution = BUFFER(LIMIT_CONTRIBUTION_BYTES);
    status = tile_holder_open(tensors, count, true, &slice, &newest, &holder);
    if (!status)
        status = follower_new(store, run, &newest, holder, &w->follower);
    if (status)
        tile_writer_free(w);
    else
        *ret_writer = w;
    return status;
}

void tile_writer_free(struct ulp_tile_writer *w) {
    if (!w)
        return;
    forget(w);
    follower_free(w->follower);
    buffer_release(&w->contribution);
    mem_free(w);
}
