// SPDX-License-Identifier: Apache-2.0
#include "sync/memory_holder.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "patch/apply.h"
#include "sync/anchor_shard.h"
#include "sync/memory_aside.h"
#include "sync/memory_seen.h"
#include "sync/parts.h"
#include "sync/rules.h"
#include "tensor/model.h"

#include <stdlib.h>
#include <string.h>

struct memory_holder {
    struct holder holder;
    struct ulp_run_options options;
    struct arena arena;         /* of descriptions of our own */
    struct ulp_tensor *tensors; /* the caller's, or ours */
    size_t count, room, filled; /* of `count`, those that a state that comes whole has brought */
    bool ours;
    struct ulp_weights *weights;
    struct ulp_apply *apply; /* what is staged: a step, */
    struct aside aside;      /* an anchor while something else is shown, or what is there */
    bool next_before;        /* whether it leaves us with history */
};

static struct memory_holder *self_of(struct holder *holder) {
    return (struct memory_holder *)holder;
}

/* ---- states that come whole ---- */

/* What is there is about to be overwritten: until that is complete, nothing is held. */
static void forget_tensors(struct memory_holder *m) {
    weights_free(m->weights);
    m->weights = NULL;
    m->holder.held = (struct held){0};
    m->filled = 0;
    if (!m->ours)
        return;
    for (size_t i = 0; i < m->count; i++)
        mem_free(m->tensors[i].data);
    mem_free(m->tensors);
    m->tensors = NULL;
    m->count = m->room = 0;
    arena_release(&m->arena);
}

static enum ulp_status describe(struct arena *arena, const struct ulp_tensor *from,
                                struct ulp_tensor *to) {
    uint64_t *shape = NULL;
    enum ulp_status status = arena_zeroed(arena, from->rank, sizeof *shape, &shape);

    *to = *from;
    to->data = NULL;
    to->shape = shape;
    if (!status && from->rank)
        memcpy(shape, from->shape, from->rank * sizeof *shape);
    if (!status)
        status = arena_text(arena, from->name, strlen(from->name), &to->name);
    return status ? status : arena_text(arena, from->dtype, strlen(from->dtype), &to->dtype);
}

static enum ulp_status add_tensor(struct memory_holder *m, const struct ulp_tensor *tensor) {
    enum ulp_status status = mem_grow(&m->tensors, m->count, sizeof *m->tensors, &m->room);

    if (!status)
        status = describe(&m->arena, tensor, &m->tensors[m->count]);
    if (!status)
        status = mem_resize(&m->tensors[m->count].data, tensor->bytes, 1);
    if (!status && tensor->bytes)
        memcpy(m->tensors[m->count].data, tensor->data, tensor->bytes);
    m->count += !status;
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct ulp_tensor *)a)->name, ((const struct ulp_tensor *)b)->name);
}

/* The caller's tensors are sorted by name. */
static struct ulp_tensor *find(const struct memory_holder *m, const struct ulp_tensor *like) {
    return m->count ? bsearch(like, m->tensors, m->count, sizeof *like, by_name) : NULL;
}

static bool same_form(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    return !strcmp(a->dtype, b->dtype) && a->rank == b->rank && a->bytes == b->bytes &&
           (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
}

static enum ulp_status fill_tensor(struct memory_holder *m, const struct ulp_tensor *tensor) {
    struct ulp_tensor *to = find(m, tensor);

    if (!to || !same_form(to, tensor))
        return fail(ULP_E_LAYOUT, "the run has a tensor %s that is not the one in memory",
                    quote(tensor->name).text);
    if (tensor->bytes)
        memcpy(to->data, tensor->data, tensor->bytes);
    m->filled++;
    return ULP_OK;
}

static enum ulp_status put_tensors(struct memory_holder *m, const struct ulp_tensor *tensors,
                                   size_t count) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < count; i++)
        status = m->ours ? add_tensor(m, &tensors[i]) : fill_tensor(m, &tensors[i]);
    return status;
}

/* All is in place: what is it? */
static enum ulp_status stage_whole(struct memory_holder *m, const struct work *work,
                                   uint64_t version) {
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status =
        !m->ours && m->filled != m->count
            ? fail(ULP_E_LAYOUT, "memory has %zu tensors, and the run %zu", m->count, m->filled)
            : weights_new(m->tensors, m->count, work->options->pool, NULL, &m->weights);

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
    (void)file;
    return put_tensors(user, fetched->shard.tensors, fetched->shard.count);
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

    if (holder->held.any && !m->ours)
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
        status = put_tensors(m, model ? model->tensors : given->tensors,
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

struct placed {
    uint64_t offset;
    struct piece piece;
};

static int by_offset(const void *a, const void *b) {
    const struct placed *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The header, then the tensors in the order of their places in the file. */
static enum ulp_status lay_out(const struct ulp_weights *weights, struct buffer *header,
                               struct placed *placed, struct piece *pieces) {
    uint64_t *offsets = NULL, bytes = 0;
    enum ulp_status status = mem_zeroed(weights->count, sizeof *offsets, &offsets);

    if (!status)
        status = safetensors_encode_header(MODEL_FILE_NAME, weights->tensors, weights->count, NULL,
                                           0, header, offsets, &bytes);
    for (size_t i = 0; !status && i < weights->count; i++)
        placed[i] = (struct placed){offsets[i],
                                    {weights->tensors[i].data, (size_t)weights->tensors[i].bytes}};
    mem_free(offsets);
    if (status)
        return status;
    qsort(placed, weights->count, sizeof *placed, by_offset);
    pieces[0] = (struct piece){header->data, header->used};
    for (size_t i = 0; i < weights->count; i++)
        pieces[i + 1] = placed[i].piece;
    return ULP_OK;
}

static enum ulp_status put_weights(const struct memory_holder *m, const struct work *work,
                                   uint64_t folder, struct anchor_file *file) {
    struct buffer header = BUFFER((size_t)1 << 30);
    struct placed *placed = NULL;
    struct piece *pieces = NULL;
    enum ulp_status status = mem_zeroed(m->count, sizeof *placed, &placed);

    if (!status)
        status = mem_zeroed(m->count + 1, sizeof *pieces, &pieces);
    if (!status)
        status = lay_out(m->weights, &header, placed, pieces);
    if (!status)
        status = part_put(work->store, work->run, folder, pieces, m->count + 1, &file->part);
    work->report->stored_bytes += status ? 0 : file->part.bytes;
    work->report->stored_objects += !status;
    buffer_release(&header);
    mem_free(placed);
    mem_free(pieces);
    return status;
}

static enum ulp_status memory_put(struct holder *holder, const struct work *work, uint64_t folder,
                                  struct arena *arena, struct anchor *anchor) {
    struct anchor_file *file = NULL;
    enum ulp_status status = arena_zeroed(arena, 1, sizeof *file, &file);

    anchor->files = file;
    anchor->file_count = !*anchor->reference;
    if (status || *anchor->reference)
        return status;
    file->name = MODEL_FILE_NAME;
    return put_weights(self_of(holder), work, folder, file);
}

/* ---- life ---- */

static void memory_free(struct holder *holder) {
    struct memory_holder *m = self_of(holder);

    memory_drop(holder);
    forget_tensors(m);
    if (!m->ours)
        mem_free(m->tensors);
    mem_free(m);
}

/* Digested once. */
static enum ulp_status memory_contents(struct holder *holder, const struct work *work,
                                       const struct ulp_weights **ret_weights) {
    struct memory_holder *m = self_of(holder);
    enum ulp_status status;

    weights_free(m->weights); /* the caller may have put something else there since */
    m->weights = NULL;
    status = weights_new(m->tensors, m->count, work->options->pool, NULL, &m->weights);
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
    m->ours = !tensors;
    if (tensors)
        status = mem_zeroed(count, sizeof *m->tensors, &m->tensors);
    if (tensors && !status) {
        memcpy(m->tensors, tensors, count * sizeof *tensors);
        m->count = count;
        qsort(m->tensors, count, sizeof *m->tensors, by_name);
    }
    if (!status)
        status = memory_seen_take(&m->holder, &m->options);
    if (status)
        holder_free(&m->holder);
    else
        *ret_holder = &m->holder;
    return status;
}
