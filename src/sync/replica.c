// SPDX-License-Identifier: Apache-2.0
#include "sync/replica.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "digest/root.h"
#include "patch/fit.h"
#include "patch/model_files.h"
#include "sync/anchor_files.h"
#include "sync/replica_place.h"
#include "sync/slice_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct replica {
    struct holder holder;
    struct replica_place place;
    struct slice slice;      /* where holder.slice is not NULL */
    struct ulp_model *model; /* of the weights */
    struct ulp_weights *weights;
};

static struct replica *self_of(struct holder *holder) {
    return (struct replica *)holder;
}

static void close_weights(struct replica *r) {
    weights_free(r->weights);
    model_free(r->model);
    r->weights = NULL;
    r->model = NULL;
}

/* ---- staging ---- */

/* Of a slice it is what was written down when it was made. */
static enum ulp_status root_of(const struct replica *r, const struct work *work, uint64_t version,
                               struct ulp_root *ret_root) {
    const uint64_t started = clock_monotonic_ns();
    struct ulp_model *model = NULL;
    char path[PATH_MAX];
    enum ulp_status status = replica_version_path(&r->place, version, path);

    if (!status && r->holder.slice)
        return slice_mark_read(r->holder.slice, path, ret_root);
    if (!status)
        status = model_open(path, &model);
    if (!status)
        status =
            state_digest(model->tensors, model->count, work->options->pool, NULL, NULL, ret_root);
    model_free(model);
    work_spent(&work->report->phases.digest_ns, started);
    return status;
}

/* What was put together gets its name, and its root is looked at. */
static enum ulp_status stage(struct replica *r, const struct work *work, uint64_t version) {
    struct ulp_root root;
    enum ulp_status status = root_of(r, work, version, &root);

    if (status)
        return status;
    r->holder.staged = true;
    r->holder.staged_version = version;
    r->holder.staged_root = root;
    return replica_clean(&r->place, &r->holder.held, version);
}

/* A version that is there was verified when it was made. */
static bool is_there(const struct replica *r, uint64_t version) {
    return replica_has_version(&r->place, version);
}

static enum ulp_status load_files(const struct replica *r, const struct work *work,
                                  const struct anchor *anchor, const char *unfinished) {
    struct ulp_root root;
    enum ulp_status status;

    if (!r->holder.slice)
        return anchor_files_get(work, anchor, unfinished);
    status = slice_files_load(work, r->holder.slice, anchor, unfinished, &root);
    return status ? status : slice_mark_write(r->holder.slice, unfinished, &root);
}

static enum ulp_status take_files(const struct replica *r, const struct work *work,
                                  const struct given *given, const char *unfinished) {
    struct ulp_root root;
    enum ulp_status status;

    if (!given->path)
        return model_save(unfinished, given->tensors, given->count, NULL, 0, 1,
                          work->options->progress);
    if (!r->holder.slice)
        return model_files_copy(given->path, unfinished);
    status = slice_files_take(work, r->holder.slice, given->path, unfinished, &root);
    return status ? status : slice_mark_write(r->holder.slice, unfinished, &root);
}

static enum ulp_status replica_load(struct holder *holder, const struct work *work,
                                    const struct anchor *anchor) {
    struct replica *r = self_of(holder);
    char unfinished[PATH_MAX];
    enum ulp_status status;

    if (is_there(r, anchor->version))
        return stage(r, work, anchor->version);
    status = replica_unfinished(&r->place, anchor->version, unfinished);
    if (!status)
        status = load_files(r, work, anchor, unfinished);
    if (!status)
        status = replica_finish(&r->place, anchor->version);
    return status ? status : stage(r, work, anchor->version);
}

static enum ulp_status replica_take(struct holder *holder, const struct work *work,
                                    uint64_t version, const struct given *given) {
    struct replica *r = self_of(holder);
    const uint64_t started = clock_monotonic_ns();
    char unfinished[PATH_MAX];
    enum ulp_status status;

    if (is_there(r, version))
        return stage(r, work, version);
    status = replica_unfinished(&r->place, version, unfinished);
    if (!status)
        status = take_files(r, work, given, unfinished);
    if (!status)
        status = replica_finish(&r->place, version);
    work_spent(&work->report->phases.stage_ns, started);
    return status ? status : stage(r, work, version);
}

/* The version in front of the one that a way leaves from. */
static enum ulp_status open_before(const struct replica *r, const struct way *way,
                                   struct ulp_model **ret_model) {
    char path[PATH_MAX];
    enum ulp_status status;

    if (!way->history)
        return ULP_OK;
    status = replica_version_path(&r->place, way->from - 1, path);
    return status ? status : model_open(path, ret_model);
}

static void count_apply(const struct work *work, const struct ulp_apply_report *report) {
    struct ulp_run_phases *phases = &work->report->phases;

    phases->decode_ns += (uint64_t)(report->decode_seconds * 1e9);
    phases->digest_ns += (uint64_t)(report->digest_seconds * 1e9);
    phases->stage_ns += (uint64_t)(report->write_seconds * 1e9);
}

static enum ulp_status make_version(const struct replica *r, const struct work *work,
                                    const struct step *step) {
    const struct way *way = step->way;
    const struct ulp_apply_options options = {.pool = work->options->pool,
                                              .progress = work->options->progress,
                                              .staging_bytes = WORK_BYTES,
                                              .spill_directory = r->place.path};
    struct ulp_apply_report report = {0};
    struct ulp_model *before = NULL;
    char from[PATH_MAX], to[PATH_MAX];
    enum ulp_status status = open_before(r, way, &before);

    if (!status)
        status = replica_version_path(&r->place, way->from, from);
    if (!status)
        status = replica_version_path(&r->place, way->to, to);
    if (!status)
        status = model_patch(from, step->patches, step->count, before, to, &options, &report);
    model_free(before);
    count_apply(work, &report);
    return status;
}

static enum ulp_status make_slice(const struct replica *r, const struct work *work,
                                  const struct step *step) {
    struct ulp_root parent;
    char from[PATH_MAX], unfinished[PATH_MAX];
    enum ulp_status status = replica_version_path(&r->place, step->way->from, from);

    if (!status)
        status = slice_mark_read(r->holder.slice, from, &parent);
    if (!status)
        status = replica_unfinished(&r->place, step->way->to, unfinished);
    if (!status)
        status = slice_files_step(work, r->holder.slice, from, &parent, step, unfinished);
    if (!status)
        status = slice_mark_write(r->holder.slice, unfinished, step->root);
    return status ? status : replica_finish(&r->place, step->way->to);
}

static enum ulp_status replica_step(struct holder *holder, const struct work *work,
                                    const struct step *step) {
    struct replica *r = self_of(holder);
    const uint64_t version = step->way->to;
    enum ulp_status status = ULP_OK;

    if (!is_there(r, version))
        status = holder->slice ? make_slice(r, work, step) : make_version(r, work, step);
    return status ? status : stage(r, work, version);
}

/* ---- showing ---- */

static void replica_drop(struct holder *holder) {
    struct replica *r = self_of(holder);

    holder->staged = false;
    replica_clean(&r->place, &holder->held, UINT64_MAX);
}

static enum ulp_status replica_show(struct holder *holder, const struct work *work) {
    struct replica *r = self_of(holder);
    const uint64_t version = holder->staged_version, started = clock_monotonic_ns();
    enum ulp_status status = replica_switch(&r->place, version);

    work_spent(&work->report->phases.apply_ns, started);
    if (status)
        return status;
    close_weights(r);
    holder->staged = false;
    holder->held = (struct held){.any = true,
                                 .version = version,
                                 .before = version && is_there(r, version - 1),
                                 .back = true};
    if (replica_clean(&r->place, &holder->held, UINT64_MAX)) /* it is shown all the same */
        log_message(ULP_LOG_WARN, "old versions could not be removed: %s", ulp_last_error());
    return ULP_OK;
}

/* ---- what was seen ---- */

static enum ulp_status replica_keep(struct holder *holder) {
    char path[PATH_MAX];
    enum ulp_status status = replica_path(&self_of(holder)->place, "seen", path);

    return status
               ? status
               : file_write(path, holder->seen.bytes, holder->seen.byte_count, ULP_COMMIT_REPLACE);
}

static enum ulp_status look_at_seen(struct replica *r) {
    struct buffer bytes = BUFFER(LIMIT_RECORD_BYTES);
    char path[PATH_MAX];
    enum ulp_status status = replica_path(&r->place, "seen", path);

    if (!status)
        status = file_read(path, FILE_REFUSE_LINKS, &bytes);
    if (status == ULP_E_NOT_FOUND) {
        status = r->holder.held.any
                     ? fail(ULP_E_OTHER_RUN,
                            "%s holds a version, but does not say of which run; use another "
                            "directory",
                            quote(r->place.path).text)
                     : ULP_OK;
    } else if (!status) {
        status = log_entry_parse(bytes.data, bytes.used, &r->holder.seen);
        if (status)
            status = fail(ULP_E_RECORD, "%s is damaged; use another directory", quote(path).text);
        r->holder.kept = r->holder.seen.record.sequence;
    }
    buffer_release(&bytes);
    return status;
}

static void keep_record(const struct replica *r, const struct log_entry *entry) {
    char name[96], path[PATH_MAX];

    snprintf(name, sizeof name, "fork-%020llu-%02x%02x%02x%02x.record",
             (unsigned long long)entry->record.sequence, entry->hash.bytes[0], entry->hash.bytes[1],
             entry->hash.bytes[2], entry->hash.bytes[3]);
    if (!replica_path(&r->place, name, path) &&
        !file_write(path, entry->bytes, entry->byte_count, ULP_COMMIT_REPLACE))
        log_message(ULP_LOG_WARN, "two records contradict each other; one is kept as %s",
                    quote(path).text);
}

static void replica_keep_evidence(const struct holder *holder, const struct log_entry *culprit) {
    const struct replica *r = (const struct replica *)holder;

    keep_record(r, &holder->seen);
    keep_record(r, culprit);
}

/* ---- for publishers ---- */

static enum ulp_status open_weights(struct replica *r, const struct work *work) {
    const uint64_t started = clock_monotonic_ns();
    char path[PATH_MAX];
    enum ulp_status status = replica_version_path(&r->place, r->holder.held.version, path);

    if (!status)
        status = model_open(path, &r->model);
    if (!status)
        status =
            weights_new(r->model->tensors, r->model->count, work->options->pool, NULL, &r->weights);
    work_spent(&work->report->phases.digest_ns, started);
    return status;
}

static enum ulp_status remember(const struct replica *r, const struct work *work) {
    const struct staging_room room = {WORK_BYTES, r->place.path};
    struct ulp_model *before = NULL;
    char path[PATH_MAX];
    enum ulp_status status = replica_version_path(&r->place, r->holder.held.version - 1, path);

    if (!status)
        status = model_open(path, &before);
    if (!status)
        status = weights_remember_in(r->weights, before->tensors, before->count, room,
                                     work->options->pool, NULL);
    model_free(before);
    return status;
}

static enum ulp_status replica_weights(struct holder *holder, const struct work *work, bool history,
                                       struct ulp_weights **ret_weights) {
    struct replica *r = self_of(holder);
    enum ulp_status status = r->weights ? ULP_OK : open_weights(r, work);

    if (!status && history && holder->held.before)
        status = remember(r, work);
    if (status)
        close_weights(r);
    else
        *ret_weights = r->weights;
    return status;
}

static enum ulp_status replica_put(struct holder *holder, const struct work *work, uint64_t folder,
                                   struct arena *arena, struct anchor *anchor) {
    struct replica *r = self_of(holder);
    char path[PATH_MAX];
    enum ulp_status status = replica_version_path(&r->place, anchor->version, path);

    return status
               ? status
               : anchor_files_put(work, holder->seen.record.sequence ? &holder->seen.record : NULL,
                                  folder, path, arena, anchor);
}

/* ---- life ---- */

static void replica_free(struct holder *holder) {
    struct replica *r = self_of(holder);

    close_weights(r);
    replica_place_release(&r->place);
    mem_free(r);
}

static const struct holder_ops replica_ops = {
    .load = replica_load,
    .take = replica_take,
    .step = replica_step,
    .show = replica_show,
    .drop = replica_drop,
    .keep = replica_keep,
    .keep_evidence = replica_keep_evidence,
    .weights = replica_weights,
    .put = replica_put,
    .free = replica_free,
};

/* A directory holds one thing all its life. */
static enum ulp_status check_kind(const struct replica *r) {
    struct ulp_root root;
    char path[PATH_MAX];
    enum ulp_status status;

    if (!r->holder.held.any)
        return ULP_OK;
    status = replica_version_path(&r->place, r->holder.held.version, path);
    if (!status && r->holder.slice)
        return slice_mark_read(r->holder.slice, path, &root);
    if (!status && slice_mark_exists(path))
        status = fail(ULP_E_OTHER_RUN, "%s holds a slice of the model; use another directory",
                      quote(r->place.path).text);
    return status;
}

enum ulp_status replica_open(const char *path, const struct slice *slice,
                             struct holder **ret_holder) {
    struct replica *r = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *r, &r);

    if (status)
        return status;
    r->holder.ops = &replica_ops;
    if (slice) {
        r->slice = *slice;
        r->holder.slice = &r->slice;
    }
    status = replica_place_open(path, &r->place, &r->holder.held);
    r->holder.held.back = true;
    if (!status)
        status = look_at_seen(r);
    if (!status)
        status = check_kind(r);
    if (status)
        holder_free(&r->holder);
    else
        *ret_holder = &r->holder;
    return status;
}
