// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* renameat2 */
#include "sync/follow.h"

#include "base/log.h"
#include "base/quote.h"
#include "digest/root.h"
#include "patch/fit.h"
#include "patch/model_files.h"
#include "sync/parts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A patch is held in memory while it is applied. */
#define PATCH_BYTES_MAX ((size_t)1 << 36)

struct ulp_run_record record_summary(const struct record *record) {
    struct ulp_run_record summary = {.sequence = record->sequence,
                                     .version = record->version,
                                     .epoch = record->epoch,
                                     .step = record->step,
                                     .time_ms = record->time_ms,
                                     .root = record->root};

    for (size_t i = 0; i < record->way_count; i++) {
        const struct way *way = &record->ways[i];

        if (way->to != record->version || way->from + 1 != way->to)
            continue;
        summary.changed = way->changes;
        summary.history = way->history;
        for (size_t k = 0; k < way->part_count; k++)
            summary.patch_bytes += way->parts[k].bytes;
    }
    for (size_t i = 0; i < record->anchor_count; i++) {
        for (size_t k = 0;
             record->anchors[i].version == record->version && k < record->anchors[i].file_count;
             k++)
            summary.anchor_bytes += record->anchors[i].files[k].part.bytes;
    }
    return summary;
}

struct following {
    struct ulp_store *store;
    const char *run;
    struct replica *replica;
    const struct ulp_run_options *options;
    struct ulp_run_report *report;
};

/* ---- anchors ---- */

static enum ulp_status fetch_files(const struct following *f, const struct anchor *anchor,
                                   const char *directory) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < anchor->file_count; i++) {
        const struct anchor_file *file = &anchor->files[i];
        char path[PATH_MAX];

        if (snprintf(path, sizeof path, "%s/%s", directory, file->name) >= (int)sizeof path)
            return fail(ULP_E_NAME, "the path of %s is too long", quote(file->name).text);
        status = part_get_file(f->store, f->run, &file->part, path);
        f->report->fetched_bytes += status ? 0 : file->part.bytes;
    }
    return status;
}

static enum ulp_status check_root(const struct following *f, const char *directory,
                                  const struct ulp_root *wanted) {
    struct ulp_model *model = NULL;
    struct ulp_root root;
    enum ulp_status status = model_open(directory, &model);

    if (!status)
        status = state_digest(model->tensors, model->count, f->options->pool, f->options->progress,
                              NULL, &root);
    if (!status && !same_root(&root, wanted))
        status = fail(ULP_E_WRONG_RESULT, "a version has root %s..., and should have %s...",
                      short_root(&root).hex, short_root(wanted).hex);
    model_free(model);
    return status;
}

static enum ulp_status start_from(const struct following *f, const struct anchor *anchor,
                                  const struct record *record) {
    char unfinished[PATH_MAX], path[PATH_MAX];
    enum ulp_status status = replica_unfinished(f->replica, anchor->version, unfinished);

    if (!status)
        status = fetch_files(f, anchor, unfinished);
    if (!status)
        status = check_root(f, unfinished, &anchor->root);
    if (!status && anchor->version == record->version && !same_root(&anchor->root, &record->root))
        status = fail(ULP_E_WRONG_RESULT, "a record and its anchor name different roots");
    if (!status)
        status = replica_version_path(f->replica, anchor->version, path);
    if (!status && rename(unfinished, path))
        status = fail_errno("put into place", path);
    if (!status)
        status = file_sync_parent(path);
    if (!status)
        status = replica_switch(f->replica, anchor->version);
    f->report->fetched_anchors += !status;
    return status;
}

/* ---- ways ---- */

static enum ulp_status fetch_patch(const struct following *f, const struct way *way,
                                   struct buffer *bytes) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < way->part_count; i++)
        status = part_get(f->store, f->run, &way->parts[i], bytes);
    f->report->fetched_bytes += bytes->used;
    return status;
}

/* The version in front of the one that a way leaves from. */
static enum ulp_status open_history(const struct following *f, const struct way *way,
                                    struct ulp_model **ret_model) {
    char path[PATH_MAX];
    enum ulp_status status;

    if (!way->history)
        return ULP_OK;
    status = replica_version_path(f->replica, way->from - 1, path);
    return status ? status : model_open(path, ret_model);
}

static enum ulp_status go(const struct following *f, const struct way *way,
                          const struct record *record) {
    const struct ulp_apply_options apply = {.pool = f->options->pool,
                                            .progress = f->options->progress};
    char from[PATH_MAX], to[PATH_MAX];
    struct buffer bytes = BUFFER(PATCH_BYTES_MAX);
    struct ulp_model *history = NULL;
    struct ulp_patch *patch = NULL;
    enum ulp_status status = fetch_patch(f, way, &bytes);

    if (!status)
        status = patch_open_memory(bytes.data, bytes.used, &patch);
    if (!status)
        status = open_history(f, way, &history);
    if (!status)
        status = replica_version_path(f->replica, way->from, from);
    if (!status)
        status = replica_version_path(f->replica, way->to, to);
    if (!status)
        status = model_patch(from, patch, history, to, &apply, NULL);
    if (!status && way->to == record->version)
        status = check_root(f, to, &record->root);
    if (!status)
        status = replica_switch(f->replica, way->to);
    f->report->fetched_patches += !status;
    model_free(history);
    patch_free(patch);
    buffer_release(&bytes);
    return status;
}

/* ---- all of it ---- */

/* A version of the past has a record of its own, which names its root. */
static enum ulp_status check_past(const struct following *f, const struct way *last) {
    struct log_entry entry = {0};
    char path[PATH_MAX];
    enum ulp_status status = log_read(f->store, f->run, last->sequence, &entry);

    if (!status && entry.record.version != last->to)
        status = fail(ULP_E_CHAIN, "record %llu of run %s did not publish version %llu",
                      (unsigned long long)last->sequence, quote(f->run).text,
                      (unsigned long long)last->to);
    if (!status)
        status = replica_version_path(f->replica, last->to, path);
    if (!status)
        status = check_root(f, path, &entry.record.root);
    log_entry_release(&entry);
    return status;
}

/* `current` leads to the record's version only when it has the record's root; a way on the way
 * there was verified by its own. */
static enum ulp_status travel(const struct following *f, const struct record *record, uint64_t to) {
    struct arena arena = {0};
    struct plan plan = {0};
    enum ulp_status status = plan_make(record, &f->replica->held, to, &arena, &plan);

    if (!status && plan.anchor)
        status = start_from(f, plan.anchor, record);
    for (size_t i = 0; !status && i < plan.way_count; i++)
        status = go(f, plan.ways[i], record);
    if (!status && to != record->version && plan.way_count)
        status = check_past(f, plan.ways[plan.way_count - 1]);
    arena_release(&arena);
    return status;
}

static enum ulp_status check_run(const struct replica *replica, const struct record *record,
                                 const char *run) {
    if (replica->seen && memcmp(replica->run, record->run, RUN_ID_BYTES) != 0)
        return fail(ULP_E_CHAIN, "%s holds another run than %s; use another directory",
                    quote(replica->path).text, quote(run).text);
    if (replica->held.any && !replica->seen)
        return fail(ULP_E_CHAIN, "%s holds a version, but does not say of which run",
                    quote(replica->path).text);
    if (replica->held.any && replica->held.version > record->version)
        return fail(ULP_E_ROLLBACK, "%s holds version %llu; the run is only at %llu",
                    quote(replica->path).text, (unsigned long long)replica->held.version,
                    (unsigned long long)record->version);
    return ULP_OK;
}

/* Another run that is shorter looks like this one gone back; its first record tells. */
static enum ulp_status explain_rollback(struct ulp_store *store, const char *run,
                                        const struct replica *replica) {
    struct error_note note;
    struct log_entry first = {0};
    enum ulp_status status = ULP_OK;

    error_save(&note);
    if (!log_read(store, run, 1, &first))
        status = check_run(replica, &first.record, run);
    log_entry_release(&first);
    if (status == ULP_E_CHAIN)
        return status;
    error_restore(&note);
    return ULP_E_ROLLBACK;
}

/* The newest version, or the one that was asked for. */
static enum ulp_status choose_version(const struct following *f, const struct record *record,
                                      uint64_t *ret_version) {
    uint64_t version = record->version;

    if (f->options->stop_at_version) {
        version = f->options->version;
        if (version > record->version)
            return fail(ULP_E_USAGE, "run %s is at version %llu; there is no version %llu yet",
                        quote(f->run).text, (unsigned long long)record->version,
                        (unsigned long long)version);
        if (f->replica->held.any && f->replica->held.version > version)
            return fail(ULP_E_USAGE,
                        "%s holds version %llu, which is newer than %llu; use another directory",
                        quote(f->replica->path).text, (unsigned long long)f->replica->held.version,
                        (unsigned long long)version);
    }
    *ret_version = version;
    return ULP_OK;
}

enum ulp_status follow(struct ulp_store *store, const char *run, struct replica *replica,
                       const struct ulp_run_options *options, struct log_entry *ret_head,
                       struct ulp_run_report *report) {
    const struct following f = {store, run, replica, options, report};
    struct log_entry head = {0};
    uint64_t version = 0;
    enum ulp_status status = log_head(store, run, replica->seen ? &replica->mark : NULL, &head);

    if (status == ULP_E_ROLLBACK)
        status = explain_rollback(store, run, replica);
    if (!status)
        status = check_run(replica, &head.record, run);
    if (!status)
        status = choose_version(&f, &head.record, &version);
    if (!status) /* before anything of the run is kept, so that what is kept is known to be its */
        status = replica_see(replica, &head);
    if (!status && !(replica->held.any && replica->held.version == version)) {
        status = travel(&f, &head.record, version);
        report->fresh = !status;
    }
    if (status) {
        log_entry_release(&head);
        return status;
    }
    report->head = record_summary(&head.record);
    report->version = replica->held.version;
    *ret_head = head;
    return ULP_OK;
}
