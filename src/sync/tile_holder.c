// SPDX-License-Identifier: Apache-2.0
#include "sync/tile_holder.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/sparse.h"
#include "digest/root.h"
#include "patch/apply.h"
#include "patch/layout.h"
#include "sync/anchor_shard.h"
#include "sync/memory_seen.h"
#include "tensor/model.h"
#include "tensor/tensor.h"

#include <string.h>

/* Tensors of our own begin on lines of the cache. */
#define ALIGNMENT 64u

/* An anchor that waits beside a tile that is in use. Zeroed means none. */
struct tile_aside {
    struct sparse memory;
    struct ulp_tensor *tensors;
    struct ulp_sum *sums; /* of the weights' pieces */
    struct ulp_root root;
};

struct tile_holder {
    struct holder holder;
    struct ulp_run_options options;
    struct slice slice;
    struct arena arena;         /* descriptions */
    struct ulp_tensor *tensors; /* of the whole state, by name */
    size_t count;
    struct ulp_region *regions;
    size_t region_count;
    struct sparse memory; /* of our own */
    struct ulp_weights *weights;
    struct ulp_apply *apply; /* what is staged: a step, */
    struct tile_aside aside; /* an anchor while something else is shown, or what is there */
};

static struct tile_holder *self_of(struct holder *holder) {
    return (struct tile_holder *)holder;
}

/* ---- memory of our own ---- */

static size_t room_of(const struct ulp_tensor *tensor) {
    return ((size_t)tensor->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Gives the tensors address space, side by side. */
static enum ulp_status place_tensors(struct ulp_tensor *tensors, size_t count,
                                     struct sparse *ret_memory) {
    size_t bytes = 0, at = 0;
    enum ulp_status status;

    for (size_t i = 0; i < count; i++) {
        if (tensors[i].bytes > SIZE_MAX / 4 || bytes > SIZE_MAX / 4)
            return fail(ULP_E_LIMIT, "the tensors are more than this machine has addresses for");
        bytes += room_of(&tensors[i]);
    }
    status = sparse_take(ret_memory, bytes);
    for (size_t i = 0; !status && i < count; i++) {
        tensors[i].data = ret_memory->data ? ret_memory->data + at : NULL;
        at += room_of(&tensors[i]);
    }
    return status;
}

/* ---- states that come whole ---- */

/* The memory is about to be overwritten: until that is complete, it holds no version. */
static void forget(struct tile_holder *t) {
    weights_free(t->weights);
    t->weights = NULL;
    t->holder.held = (struct held){0};
}

/* The regions are in place, of a state that has this root. */
static enum ulp_status stage_loaded(struct tile_holder *t, const struct work *work,
                                    uint64_t version, const struct ulp_root *root) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = weights_new_tile(t->tensors, t->count, t->regions, t->region_count,
                                              root, work->options->pool, NULL, &t->weights);

    work_spent(&work->report->phases.digest_ns, started);
    if (status)
        return status;
    t->holder.staged = true;
    t->holder.staged_version = version;
    t->holder.staged_root = *root;
    return ULP_OK;
}

struct loading {
    struct tile_holder *holder;
    const struct work *work;
    const struct ulp_tensor *to; /* as many as the holder has */
    struct sums sums;
};

static enum ulp_status load_shard(void *user, const struct anchor_file *file,
                                  const struct fetched_shard *fetched) {
    const struct shard *shard = &fetched->shard;
    struct loading *loading = user;
    const struct tile_holder *t = loading->holder;
    struct ulp_region *regions = NULL;
    size_t count = 0;
    enum ulp_status status =
        slice_regions(&t->slice, shard->tensors, shard->count, &regions, &count);

    (void)file;
    if (!status)
        status = regions_copy(regions, count, shard->tensors, shard->count, loading->to, t->count);
    mem_free(regions);
    return status ? status
                  : sums_add(&loading->sums, shard->tensors, shard->count,
                             loading->work->options->pool);
}

static enum ulp_status load_into(struct tile_holder *t, const struct work *work,
                                 const struct anchor *anchor, const struct ulp_tensor *to,
                                 struct ulp_root *ret_root) {
    struct loading loading = {.holder = t, .work = work, .to = to};
    enum ulp_status status = anchor_each_shard(work, anchor, load_shard, &loading);

    if (!status)
        status = sums_root(&loading.sums, t->tensors, t->count, ret_root);
    sums_release(&loading.sums);
    return status;
}

static void release_aside(struct tile_aside *aside) {
    sparse_release(&aside->memory);
    mem_free(aside->tensors);
    mem_free(aside->sums);
    *aside = (struct tile_aside){0};
}

static enum ulp_status fill_aside(struct tile_holder *t, const struct work *work,
                                  const struct anchor *anchor, struct tile_aside *aside) {
    const struct grid *grid = &t->weights->grid;
    enum ulp_status status = mem_zeroed(t->count, sizeof *aside->tensors, &aside->tensors);

    if (!status) {
        memcpy(aside->tensors, t->tensors, t->count * sizeof *aside->tensors);
        status = place_tensors(aside->tensors, t->count, &aside->memory);
    }
    if (!status)
        status = load_into(t, work, anchor, aside->tensors, &aside->root);
    if (!status)
        status = mem_zeroed(grid->piece_count, sizeof *aside->sums, &aside->sums);
    return status ? status
                  : weights_digest(grid, aside->tensors, work->options->pool, NULL, aside->sums);
}

/* Weights that are in use stay as they are until it is shown. */
static enum ulp_status load_aside(struct tile_holder *t, const struct work *work,
                                  const struct anchor *anchor) {
    enum ulp_status status;

    release_aside(&t->aside);
    status = fill_aside(t, work, anchor, &t->aside);
    if (status) {
        release_aside(&t->aside);
        return status;
    }
    t->holder.staged = true;
    t->holder.staged_version = anchor->version;
    t->holder.staged_root = t->aside.root;
    return ULP_OK;
}

static enum ulp_status tile_load(struct holder *holder, const struct work *work,
                                 const struct anchor *anchor) {
    struct tile_holder *t = self_of(holder);
    struct ulp_root root;
    enum ulp_status status;

    if (holder->held.any)
        return load_aside(t, work, anchor);
    forget(t);
    status = load_into(t, work, anchor, t->tensors, &root);
    return status ? status : stage_loaded(t, work, anchor->version, &root);
}

/* The forms were compared when it was loaded, so nothing here can fail. */
static void show_aside(struct tile_holder *t) {
    struct ulp_sum *sums = t->weights->sums;

    regions_copy(t->regions, t->region_count, t->aside.tensors, t->count, t->tensors, t->count);
    t->weights->sums = t->aside.sums;
    t->weights->root = t->aside.root;
    t->aside.sums = sums;
}

static enum ulp_status take_sorted(struct tile_holder *t, const struct work *work, uint64_t version,
                                   const struct ulp_tensor *tensors, size_t count) {
    struct ulp_root root;
    enum ulp_status status =
        layout_compare(t->tensors, t->count, tensors, count, "memory", "the model");

    forget(t);
    if (!status)
        status = regions_copy(t->regions, t->region_count, tensors, count, t->tensors, t->count);
    if (!status)
        status = state_digest(tensors, count, work->options->pool, NULL, NULL, &root);
    return status ? status : stage_loaded(t, work, version, &root);
}

static enum ulp_status tile_take(struct holder *holder, const struct work *work, uint64_t version,
                                 const struct given *given) {
    struct arena arena = {0};
    struct ulp_tensor *sorted = NULL;
    struct ulp_model *model = NULL;
    enum ulp_status status = given->path ? model_open(given->path, &model) : ULP_OK;

    if (!status)
        status = layout_copy(model ? model->tensors : given->tensors,
                             model ? model->count : given->count, &arena, &sorted);
    if (!status)
        status = take_sorted(self_of(holder), work, version, sorted,
                             model ? model->count : given->count);
    model_free(model);
    arena_release(&arena);
    return status;
}

/* ---- steps ---- */

static enum ulp_status tile_step(struct holder *holder, const struct work *work,
                                 const struct step *step) {
    struct tile_holder *t = self_of(holder);
    const struct ulp_apply_options options = {.pool = work->options->pool,
                                              .progress = work->options->progress,
                                              .staging_bytes = WORK_BYTES};
    enum ulp_status status;

    if (!step->count)
        return fail(ULP_E_REGIONS, "a step has no patch for tile %u, which is not empty",
                    t->slice.tile);
    status = apply_prepare(t->weights, step->patches, step->count, step->root, &options, &t->apply);
    if (status)
        return status;
    work->report->phases.decode_ns += (uint64_t)(t->apply->report.decode_seconds * 1e9);
    work->report->phases.digest_ns += (uint64_t)(t->apply->report.digest_seconds * 1e9);
    holder->staged = true;
    holder->staged_version = step->way->to;
    holder->staged_root = t->apply->root;
    return ULP_OK;
}

static void tile_drop(struct holder *holder) {
    struct tile_holder *t = self_of(holder);

    apply_free(t->apply);
    t->apply = NULL;
    release_aside(&t->aside);
    holder->staged = false;
}

static enum ulp_status tile_show(struct holder *holder, const struct work *work) {
    struct tile_holder *t = self_of(holder);
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = t->apply ? apply_commit(t->apply, NULL, NULL) : ULP_OK;

    if (t->aside.sums)
        show_aside(t);
    work_spent(&work->report->phases.apply_ns, started);
    if (status)
        return status;
    tile_drop(holder);
    holder->held = (struct held){.any = true, .version = holder->staged_version};
    return ULP_OK;
}

/* ---- what was seen ---- */

static enum ulp_status tile_keep(struct holder *holder) {
    return memory_seen_keep(holder, &self_of(holder)->options);
}

/* ---- for writers ---- */

static enum ulp_status tile_weights(struct holder *holder, const struct work *work, bool history,
                                    struct ulp_weights **ret_weights) {
    (void)work;
    (void)history;
    *ret_weights = self_of(holder)->weights;
    return ULP_OK;
}

static enum ulp_status tile_put(struct holder *holder, const struct work *work, uint64_t folder,
                                struct arena *arena, struct anchor *anchor) {
    (void)work;
    (void)folder;
    (void)arena;
    (void)anchor;
    return fail(ULP_E_REGIONS, "who holds tile %u only cannot store the whole state",
                self_of(holder)->slice.tile);
}

/* ---- life ---- */

static void tile_free(struct holder *holder) {
    struct tile_holder *t = self_of(holder);

    tile_drop(holder);
    forget(t);
    sparse_release(&t->memory);
    mem_free(t->regions);
    arena_release(&t->arena);
    mem_free(t);
}

static const struct holder_ops tile_ops = {
    .live = true,
    .load = tile_load,
    .take = tile_take,
    .step = tile_step,
    .show = tile_show,
    .drop = tile_drop,
    .keep = tile_keep,
    .keep_evidence = memory_seen_evidence,
    .weights = tile_weights,
    .put = tile_put,
    .free = tile_free,
};

static enum ulp_status check_data(const struct tile_holder *t) {
    for (size_t i = 0; i < t->region_count; i++) {
        if (!tensor_find(t->tensors, t->count, t->regions[i].tensor)->data)
            return fail(ULP_E_USAGE, "tensor %s lacks its data, of which the tile holds a region",
                        quote(t->regions[i].tensor).text);
    }
    return ULP_OK;
}

static enum ulp_status fill(struct tile_holder *t, const struct ulp_tensor *tensors, size_t count,
                            bool ours) {
    enum ulp_status status = tensor_check_all(tensors, count, TENSOR_WITHOUT_DATA);

    if (!status)
        status = layout_copy(tensors, count, &t->arena, &t->tensors);
    t->count = count;
    if (!status)
        status = slice_regions(&t->slice, t->tensors, t->count, &t->regions, &t->region_count);
    if (!status && !t->regions)
        status = fail(ULP_E_REGIONS, "tile %u of %u has nothing of these tensors", t->slice.tile,
                      tiling_count(t->slice.tiling));
    if (!status)
        status = ours ? place_tensors(t->tensors, t->count, &t->memory) : check_data(t);
    return status ? status : memory_seen_take(&t->holder, &t->options);
}

enum ulp_status tile_holder_open(const struct ulp_tensor *tensors, size_t count, bool ours,
                                 const struct slice *slice, const struct ulp_run_options *options,
                                 struct holder **ret_holder) {
    struct tile_holder *t = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *t, &t);

    if (status)
        return status;
    t->holder.ops = &tile_ops;
    t->options = *options;
    t->slice = *slice;
    t->holder.slice = &t->slice;
    status = fill(t, tensors, count, ours);
    if (status)
        holder_free(&t->holder);
    else
        *ret_holder = &t->holder;
    return status;
}

const struct ulp_tensor *tile_holder_tensors(const struct holder *holder, size_t *ret_count) {
    const struct tile_holder *t = (const struct tile_holder *)holder;

    *ret_count = t->count;
    return t->tensors;
}
