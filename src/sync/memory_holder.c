// SPDX-License-Identifier: Apache-2.0
#include "sync/memory_holder.h"

#include "base/clock.h"
#include "base/memory.h"
#include "patch/apply.h"
#include "sync/anchor_shard.h"
#include "sync/kept_tensors.h"
#include "sync/memory_aside.h"
#include "sync/memory_seen.h"
#include "sync/rules.h"
#include "sync/state_part.h"
#include "tensor/model.h"

#include <string.h>

struct memory_holder {
    struct holder holder;
    struct ulp_run_options options;
    struct kept_tensors kept;
    struct ulp_weights *weights;
    struct ulp_apply *apply; /* what is staged: a step, */
    struct aside aside;      /* an anchor while something else is shown, or what is there */
    bool next_before;        /* whether it leaves us with history */
};

static struct memory_holder *self_of(struct holder *holder) {
    return (struct memory_holder *)holder;
}

/* ---- states that come whole ---- */

static enum ulp_status take_memory(void *user, size_t bytes, void **ret_memory) {
    (void)user;
    return mem_resize(ret_memory, bytes, 1); /* all of it is written soon */
}

static void give_memory(void *user, void *memory) {
    (void)user;
    mem_free(memory);
}

static enum ulp_status copy_memory(void *user, void *to, const void *from, size_t bytes) {
    (void)user;
    memcpy(to, from, bytes);
    return ULP_OK;
}

static const struct kept_memory plain_memory = {take_memory, give_memory, copy_memory};

/* What is there is about to be overwritten: until that is complete, nothing is held. */
static void forget_tensors(struct memory_holder *m) {
    weights_free(m->weights);
    m->weights = NULL;
    m->holder.held = (struct held){0};
    kept_begin(&m->kept);
}

/* All is in place: what is it? */
static enum ulp_status stage_whole(struct memory_holder *m, const struct work *work,
                                   uint64_t version) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = kept_end(&m->kept);

    if (!status)
        status =
            weights_new(m->kept.tensors, m->kept.count, work->options->pool, NULL, &m->weights);
    work_spent(&work->report->phases.digest_ns, started);
    if (status)
        return status;
    m->holder.staged = true;
    m->holder.staged_version = version;
    m->holder.staged_root = m->weights->root;
    m->next_before = false;
    return ULP_OK;
}

static enum ulp_status load_shard(void *user, const struct anchor_file *file,
                                  const struct fetched_shard *fetched) {
    struct memory_holder *m = user;

    (void)file;
    return kept_put(&m->kept, fetched->shard.tensors, fetched->shard.count);
}

static enum ulp_status load_aside(struct memory_holder *m, const struct work *work,
                                  const struct anchor *anchor) {
    enum ulp_status status = aside_load(&m->aside, work, anchor, m->weights);

    if (status)
        return status;
    m->holder.staged = true;
    m->holder.staged_version = anchor->version;
    m->holder.staged_root = m->aside.root;
    m->next_before = false;
    return ULP_OK;
}

/* The caller's memory is not in use before something was shown; ours never is. */
static enum ulp_status memory_load(struct holder *holder, const struct work *work,
                                   const struct anchor *anchor) {
    struct memory_holder *m = self_of(holder);
    enum ulp_status status;

    if (holder->held.any && !m->kept.ours)
        return load_aside(m, work, anchor);
    forget_tensors(m);
    status = anchor_each_shard(work, anchor, load_shard, m);
    return status ? status : stage_whole(m, work, anchor->version);
}

static enum ulp_status memory_take(struct holder *holder, const struct work *work, uint64_t version,
                                   const struct given *given) {
    struct memory_holder *m = self_of(holder);
    struct ulp_model *model = NULL;
    enum ulp_status status = given->path ? model_open(given->path, &model) : ULP_OK;

    forget_tensors(m);
    if (!status)
        status = kept_put(&m->kept, model ? model->tensors : given->tensors,
                          model ? model->count : given->count);
    model_free(model);
    return status ? status : stage_whole(m, work, version);
}

/* ---- steps ---- */

static enum ulp_status memory_step(struct holder *holder, const struct work *work,
                                   const struct step *step) {
    struct memory_holder *m = self_of(holder);
    const struct way *way = step->way;
    const struct ulp_apply_options options = {
        .pool = work->options->pool,
        .progress = work->options->progress,
        .staging_bytes = WORK_BYTES,
        .remember = way->patch_count == 1 && way->to == way->from + 1,
    };
    enum ulp_status status =
        apply_prepare(m->weights, step->patches, step->count, NULL, &options, &m->apply);

    if (status)
        return status;
    work->report->phases.decode_ns += (uint64_t)(m->apply->report.decode_seconds * 1e9);
    work->report->phases.digest_ns += (uint64_t)(m->apply->report.digest_seconds * 1e9);
    holder->staged = true;
    holder->staged_version = way->to;
    holder->staged_root = m->apply->root;
    m->next_before = options.remember;
    return ULP_OK;
}

static void memory_drop(struct holder *holder) {
    struct memory_holder *m = self_of(holder);

    apply_free(m->apply);
    m->apply = NULL;
    aside_release(&m->aside);
    holder->staged = false;
}

static enum ulp_status memory_show(struct holder *holder, const struct work *work) {
    struct memory_holder *m = self_of(holder);
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = m->apply ? apply_commit(m->apply, NULL, NULL) : ULP_OK;

    if (m->apply && !status && rule_broken(RULE_APPLY_ONCE))
        status = apply_undo(m->apply);
    if (m->aside.sums)
        aside_show(&m->aside, m->weights);
    work_spent(&work->report->phases.apply_ns, started);
    if (status)
        return status;
    memory_drop(holder);
    holder->held =
        (struct held){.any = true, .version = holder->staged_version, .before = m->next_before};
    return ULP_OK;
}

/* ---- what was seen ---- */

static enum ulp_status memory_keep(struct holder *holder) {
    return memory_seen_keep(holder, &self_of(holder)->options);
}

/* ---- for publishers ---- */

static enum ulp_status memory_weights(struct holder *holder, const struct work *work, bool history,
                                      struct ulp_weights **ret_weights) {
    (void)work;
    (void)history; /* whoever remembers may leave it unused */
    *ret_weights = self_of(holder)->weights;
    return ULP_OK;
}

static enum ulp_status memory_put(struct holder *holder, const struct work *work, uint64_t folder,
                                  struct arena *arena, struct anchor *anchor) {
    return state_part_put(self_of(holder)->weights, NULL, work, folder, arena, anchor);
}

/* ---- life ---- */

static void memory_free(struct holder *holder) {
    struct memory_holder *m = self_of(holder);

    memory_drop(holder);
    forget_tensors(m);
    kept_release(&m->kept);
    mem_free(m);
}

/* Digested once. */
static enum ulp_status memory_contents(struct holder *holder, const struct work *work,
                                       const struct ulp_weights **ret_weights) {
    struct memory_holder *m = self_of(holder);
    enum ulp_status status;

    weights_free(m->weights); /* the caller may have put something else there since */
    m->weights = NULL;
    status = weights_new(m->kept.tensors, m->kept.count, work->options->pool, NULL, &m->weights);
    if (!status)
        *ret_weights = m->weights;
    return status;
}

static const struct holder_ops memory_ops = {
    .live = true,
    .load = memory_load,
    .take = memory_take,
    .step = memory_step,
    .show = memory_show,
    .drop = memory_drop,
    .contents = memory_contents,
    .keep = memory_keep,
    .keep_evidence = memory_seen_evidence,
    .weights = memory_weights,
    .put = memory_put,
    .free = memory_free,
};

enum ulp_status memory_holder_open(const struct ulp_tensor *tensors, size_t count,
                                   const struct ulp_run_options *options,
                                   struct holder **ret_holder) {
    struct memory_holder *m = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *m, &m);

    if (status)
        return status;
    m->holder.ops = &memory_ops;
    m->options = *options;
    status = kept_open(&m->kept, &plain_memory, m, tensors, count);
    if (!status)
        status = memory_seen_take(&m->holder, &m->options);
    if (status)
        holder_free(&m->holder);
    else
        *ret_holder = &m->holder;
    return status;
}
