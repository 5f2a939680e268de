// SPDX-License-Identifier: Apache-2.0
#include "sync/device_holder.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "gpu/device_apply.h"
#include "gpu/device_copy.h"
#include "gpu/device_diff.h"
#include "sync/anchor_shard.h"
#include "sync/kept_tensors.h"
#include "sync/memory_aside.h"
#include "sync/memory_seen.h"
#include "sync/parts.h"
#include "sync/state_part.h"
#include "tensor/model.h"

struct device_holder {
    struct holder holder;
    struct ulp_run_options options;
    struct kept_tensors kept;
    struct piece_reader reader;
    struct room bounce; /* what is read passes through it */
    void *stream;
    uint32_t *poisoned;
    struct device_weights *weights;
    struct device_apply *apply;    /* what is staged: a step, */
    struct aside aside;            /* an anchor while something else is shown, or what is there */
    bool next_before;              /* whether it leaves us with history */
    struct device_apply *own;      /* our own patch, decoded when it was checked ... */
    const struct ulp_patch *owned; /* ... and the patch */
};

static struct device_holder *self_of(struct holder *holder) {
    return (struct device_holder *)holder;
}

/* ---- memory ---- */

static enum ulp_status take_memory(void *user, size_t bytes, void **ret_memory) {
    (void)user;
    return device_memory_take(bytes, ret_memory);
}

static void give_memory(void *user, void *memory) {
    (void)user;
    device_memory_give(memory);
}

static enum ulp_status copy_memory(void *user, void *to, const void *from, size_t bytes) {
    const struct device_holder *d = user;

    return device_copy_bytes(to, from, bytes, d->stream);
}

static const struct kept_memory device_memory = {take_memory, give_memory, copy_memory};

static enum ulp_status read_memory(void *user, const void *data, size_t bytes,
                                   const struct ulp_sink *sink) {
    struct device_holder *d = user;

    return device_copy_out(data, bytes, &d->bounce, d->stream, sink);
}

/* ---- states that come whole ---- */

static void drop_own(struct device_holder *d) {
    device_apply_free(d->own);
    d->own = NULL;
    d->owned = NULL;
}

static void forget_tensors(struct device_holder *d) {
    drop_own(d);
    device_weights_free(d->weights);
    d->weights = NULL;
    d->holder.held = (struct held){0};
    kept_begin(&d->kept);
}

/* Whoever gave them may let go of them afterwards. */
static enum ulp_status put_tensors(struct device_holder *d, const struct ulp_tensor *tensors,
                                   size_t count) {
    enum ulp_status status = kept_put(&d->kept, tensors, count),
                    waited = device_copy_wait(d->stream);

    return status ? status : waited;
}

/* What is in the memory, which the caller may have changed since. */
static enum ulp_status digest(struct device_holder *d) {
    device_weights_free(d->weights);
    d->weights = NULL;
    return device_weights_new(d->kept.tensors, d->kept.count, d->poisoned, d->stream, &d->weights);
}

static void stage(struct device_holder *d, uint64_t version, const struct ulp_root *root,
                  bool before) {
    d->holder.staged = true;
    d->holder.staged_version = version;
    d->holder.staged_root = *root;
    d->next_before = before;
}

static enum ulp_status stage_whole(struct device_holder *d, const struct work *work,
                                   uint64_t version) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = kept_end(&d->kept);

    if (!status)
        status = digest(d);
    work_spent(&work->report->phases.digest_ns, started);
    if (!status)
        stage(d, version, &d->weights->weights->root, false);
    return status;
}

static enum ulp_status load_shard(void *user, const struct anchor_file *file,
                                  const struct fetched_shard *fetched) {
    (void)file;
    return put_tensors(user, fetched->shard.tensors, fetched->shard.count);
}

/* The caller's memory is not in use before something was shown; ours never is. */
static enum ulp_status device_load(struct holder *holder, const struct work *work,
                                   const struct anchor *anchor) {
    struct device_holder *d = self_of(holder);
    enum ulp_status status;

    if (holder->held.any && !d->kept.ours) {
        status = aside_load(&d->aside, work, anchor, d->weights->weights);
        if (!status)
            stage(d, anchor->version, &d->aside.root, false);
        return status;
    }
    forget_tensors(d);
    status = anchor_each_shard(work, anchor, load_shard, d);
    return status ? status : stage_whole(d, work, anchor->version);
}

/* A copy of itself would be compared with the weights. */
static enum ulp_status refuse_own_memory(const struct device_holder *d,
                                         const struct ulp_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct ulp_tensor *kept = kept_find(&d->kept, tensors[i].name);

        if (kept && kept->data == tensors[i].data && tensors[i].bytes)
            return fail(ULP_E_OVERLAP,
                        "tensor %s is to be published from the memory in which the publisher keeps "
                        "what it published last",
                        quote(tensors[i].name).text);
    }
    return ULP_OK;
}

static enum ulp_status device_take_state(struct holder *holder, const struct work *work,
                                         uint64_t version, const struct given *given) {
    struct device_holder *d = self_of(holder);
    struct ulp_model *model = NULL;
    enum ulp_status status = given->path ? model_open(given->path, &model)
                                         : refuse_own_memory(d, given->tensors, given->count);

    forget_tensors(d);
    if (!status)
        status = put_tensors(d, model ? model->tensors : given->tensors,
                             model ? model->count : given->count);
    model_free(model);
    return status ? status : stage_whole(d, work, version);
}

static enum ulp_status device_contents(struct holder *holder, const struct work *work,
                                       const struct ulp_weights **ret_weights) {
    struct device_holder *d = self_of(holder);
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = digest(d);

    work_spent(&work->report->phases.digest_ns, started);
    if (!status)
        *ret_weights = d->weights->weights;
    return status;
}

/* ---- steps ---- */

static bool remembers(const struct way *way) {
    return way->patch_count == 1 && way->to == way->from + 1;
}

static enum ulp_status prepare(struct device_holder *d, const struct work *work,
                               const struct step *step, struct device_apply **ret_apply) {
    const struct ulp_apply_options options = {.pool = work->options->pool,
                                              .progress = work->options->progress,
                                              .remember = remembers(step->way)};

    if (step->count != 1)
        return fail(ULP_E_REGIONS,
                    "this run is published in %zu tiles; weights on a device take "
                    "whole patches. Follow it in memory, or publish it whole",
                    step->count);
    return device_apply_prepare(d->weights, step->patches[0], &options, ret_apply);
}

static enum ulp_status device_step(struct holder *holder, const struct work *work,
                                   const struct step *step) {
    struct device_holder *d = self_of(holder);
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = ULP_OK;

    if (d->own && step->count == 1 && step->patches[0] == d->owned) {
        d->apply = d->own;
        d->own = NULL;
    } else {
        drop_own(d);
        status = prepare(d, work, step, &d->apply);
        work_spent(&work->report->phases.decode_ns, started);
    }
    if (!status)
        stage(d, step->way->to, &step->patches[0]->table.child, remembers(step->way));
    return status;
}

static void device_drop(struct holder *holder) {
    struct device_holder *d = self_of(holder);

    drop_own(d);
    device_apply_free(d->apply);
    d->apply = NULL;
    aside_release(&d->aside);
    holder->staged = false;
}

static enum ulp_status write_aside(struct device_holder *d) {
    enum ulp_status status = device_weights_write(d->weights, d->aside.tensors, d->aside.sums);

    if (!status)
        aside_settle(&d->aside, d->weights->weights);
    return status;
}

static enum ulp_status device_show(struct holder *holder, const struct work *work) {
    struct device_holder *d = self_of(holder);
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = ULP_OK;

    if (d->apply)
        status = device_apply_commit(d->apply, NULL);
    else if (d->aside.sums)
        status = write_aside(d);
    work_spent(&work->report->phases.apply_ns, started);
    if (status)
        return status;
    device_drop(holder);
    holder->held =
        (struct held){.any = true, .version = holder->staged_version, .before = d->next_before};
    return ULP_OK;
}

/* ---- for publishers ---- */

static enum ulp_status device_weights_held(struct holder *holder, const struct work *work,
                                           bool history, struct ulp_weights **ret_weights) {
    (void)work;
    (void)history;
    *ret_weights = self_of(holder)->weights->weights;
    return ULP_OK;
}

static enum ulp_status device_diff_held(struct holder *holder, const struct ulp_tensor *tensors,
                                        size_t count, const struct ulp_diff_options *options,
                                        const struct ulp_sink *sink,
                                        struct ulp_diff_report *ret_report) {
    struct device_holder *d = self_of(holder);
    enum ulp_status status = refuse_own_memory(d, tensors, count);

    return status ? status : device_diff(d->weights, tensors, count, options, sink, ret_report);
}

static enum ulp_status device_check(struct holder *holder, const struct work *work,
                                    const struct step *step, struct ulp_root *ret_root) {
    struct device_holder *d = self_of(holder);
    enum ulp_status status;

    drop_own(d);
    status = prepare(d, work, step, &d->own);
    if (status)
        return status;
    d->owned = step->patches[0];
    *ret_root = d->owned->table.child;
    return ULP_OK;
}

static enum ulp_status device_put(struct holder *holder, const struct work *work, uint64_t folder,
                                  struct arena *arena, struct anchor *anchor) {
    struct device_holder *d = self_of(holder);

    return state_part_put(d->weights->weights, &d->reader, work, folder, arena, anchor);
}

/* ---- life ---- */

static enum ulp_status device_keep(struct holder *holder) {
    return memory_seen_keep(holder, &self_of(holder)->options);
}

static void device_free(struct holder *holder) {
    struct device_holder *d = self_of(holder);

    device_drop(holder);
    forget_tensors(d);
    kept_release(&d->kept);
    room_release(&d->bounce);
    mem_free(d);
}

static const struct holder_ops device_ops = {
    .live = true,
    .load = device_load,
    .take = device_take_state,
    .step = device_step,
    .show = device_show,
    .drop = device_drop,
    .contents = device_contents,
    .keep = device_keep,
    .keep_evidence = memory_seen_evidence,
    .weights = device_weights_held,
    .diff = device_diff_held,
    .check = device_check,
    .put = device_put,
    .free = device_free,
};

enum ulp_status device_holder_open(const struct ulp_tensor *tensors, size_t count,
                                   uint32_t *poisoned, void *stream,
                                   const struct ulp_run_options *options,
                                   struct holder **ret_holder) {
    struct device_holder *d = NULL;
    enum ulp_status status =
        options->tiling || options->tile
            ? fail(ULP_E_REGIONS, "weights on a device are published and followed whole, not in "
                                  "tiles")
            : mem_zeroed(1, sizeof *d, &d);

    if (status)
        return status;
    d->holder.ops = &device_ops;
    d->reader = (struct piece_reader){read_memory, d};
    d->holder.reader = &d->reader;
    d->options = *options;
    d->stream = stream;
    d->poisoned = poisoned;
    status = kept_open(&d->kept, &device_memory, d, tensors, count);
    if (!status)
        status = memory_seen_take(&d->holder, &d->options);
    if (status)
        holder_free(&d->holder);
    else
        *ret_holder = &d->holder;
    return status;
}
