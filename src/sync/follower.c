// SPDX-License-Identifier: Apache-2.0
#include "sync/follower.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "chain/map.h"
#include "digest/root.h"
#include "patch/fit.h"
#include "patch/weights.h"
#include "sync/anchor_files.h"
#include "sync/slice.h"
#include "tensor/model.h"

#include <string.h>

#define AHEAD_BYTES_DEFAULT ((uint64_t)256 << 20)

/* Old parts may be deleted while we travel: so often the map is read anew. */
#define REPLANS_MAX 4u

struct ulp_run_record record_summary(const struct record *record) {
    const struct way *way =
        record->version ? map_way(record, record->version - 1, record->version) : NULL;
    const struct anchor *anchor = map_anchor(record, record->version);

    return (struct ulp_run_record){
        .sequence = record->sequence,
        .version = record->version,
        .epoch = record->epoch,
        .step = record->step,
        .time_ms = record->time_ms,
        .root = record->root,
        .elements = record->elements,
        .changed = way ? way->changes : 0,
        .patch_bytes = way ? way_bytes(way) : 0,
        .anchor_bytes = anchor ? anchor_bytes(anchor) : 0,
        .oldest = record->anchor_count ? record->anchors[0].version : record->version,
        .anchors = (uint32_t)record->anchor_count,
        .ways = (uint32_t)record->way_count,
        .boundary = record->boundary,
        .history = way && way->history,
        .is_signed = record->is_signed,
        .signer = record->signer,
    };
}

/* ---- the log ---- */

static void stop_travelling(struct ulp_follower *f) {
    f->holder->ops->drop(f->holder);
    fetched_release(&f->fetched);
    ahead_stop(&f->ahead);
    arena_release(&f->arena);
    f->plan = (struct plan){0};
    f->roots = NULL;
    f->next = 0;
    f->travelling = false;
}

static void count_reads(const struct log_view *view, struct ulp_run_report *report) {
    report->fetched_records += (unsigned)view->reads;
    report->fetched_objects += (unsigned)view->reads;
    report->record_bytes += view->bytes;
}

enum ulp_status follower_look(struct ulp_follower *f, struct ulp_run_report *report) {
    struct holder *holder = f->holder;
    struct log_entry culprit = {0};
    struct log_view view = {.store = f->store,
                            .run = f->run,
                            .trust = {f->options.trusted, f->options.trusted_count},
                            .max_age_ms = f->options.max_age_ms,
                            .near = f->options.eager && f->idle,
                            .ret_culprit = &culprit};
    const uint64_t started = clock_monotonic_ns(), before = holder->seen.record.sequence;
    enum ulp_status status = log_advance(&view, !f->looked, &holder->seen);

    work_spent(&report->phases.poll_ns, started);
    count_reads(&view, report);
    f->looked = f->looked || !status;
    f->idle = !status && holder->seen.record.sequence == before;
    if (status == ULP_E_FORK && culprit.record.sequence)
        holder->ops->keep_evidence(holder, &culprit);
    log_entry_release(&culprit);
    /* before anything of it is kept, so that what is kept is known to be this run's */
    return status ? status : holder_keep(holder);
}

/* ---- where to ---- */

static enum ulp_status choose_goal(const struct ulp_follower *f, uint64_t *ret_goal) {
    const struct record *record = &f->holder->seen.record;
    const struct held *held = &f->holder->held;
    const uint64_t goal = f->options.stop_at_version ? f->options.version : record->version;

    if (goal > record->version)
        return fail(ULP_E_USAGE, "run %s is at version %llu; there is no version %llu yet",
                    quote(f->run).text, (unsigned long long)record->version,
                    (unsigned long long)goal);
    if (held->any && held->version > goal)
        return f->options.stop_at_version
                   ? fail(ULP_E_USAGE,
                          "version %llu is held, which is newer than %llu; use another directory",
                          (unsigned long long)held->version, (unsigned long long)goal)
                   : fail(ULP_E_ROLLBACK, "version %llu is held; run %s is only at %llu",
                          (unsigned long long)held->version, quote(f->run).text,
                          (unsigned long long)goal);
    *ret_goal = goal;
    return ULP_OK;
}

/* The newest anchor of this root, or NULL. */
static const struct anchor *find_root(const struct record *record, const struct ulp_root *root) {
    for (size_t i = record->anchor_count; i--;) {
        if (same_root(&record->anchors[i].root, root))
            return &record->anchors[i];
    }
    return NULL;
}

/* By reference the contents must be the ones too. */
static enum ulp_status check_content(const struct anchor *anchor, const struct ulp_tensor *tensors,
                                     size_t count, const struct piece_reader *reader) {
    struct hash hash;
    enum ulp_status status =
        *anchor->reference ? content_hash(tensors, count, reader, &hash) : ULP_OK;

    if (!status && *anchor->reference && memcmp(&hash, &anchor->content, sizeof hash) != 0)
        status = fail(ULP_E_WRONG_BASE, "the base is not %s: its weights have another hash",
                      quote(anchor->reference).text);
    return status;
}

/* A model on disk that somebody has already. */
static enum ulp_status start_from_base(struct ulp_follower *f, const struct work *work) {
    const struct given given = {.path = f->options.base};
    const struct anchor *anchor = NULL;
    struct ulp_model *model = NULL;
    struct ulp_root root;
    enum ulp_status status = model_open(f->options.base, &model);

    if (!status)
        status = state_digest(model->tensors, model->count, f->options.pool, NULL, NULL, &root);
    if (!status)
        anchor = find_root(&f->holder->seen.record, &root);
    if (!status && !anchor)
        status = fail(ULP_E_WRONG_BASE,
                      "%s is none of the states that run %s starts from (its root is %s...)",
                      quote(f->options.base).text, quote(f->run).text, short_root(&root).hex);
    if (!status)
        status = check_content(anchor, model->tensors, model->count, NULL);
    if (!status)
        status = f->holder->ops->take(f->holder, work, anchor->version, &given);
    if (!status)
        status = holder_show(f->holder, work);
    model_free(model);
    return status;
}

/* What the caller's memory holds may be a version of the run: an anchor's, or the newest, if one can
 * go on from there without knowing what was before. */
static enum ulp_status recognise(struct ulp_follower *f, const struct work *work) {
    const struct record *record = &f->holder->seen.record;
    const struct anchor *anchor = NULL;
    const struct ulp_weights *weights = NULL;
    enum ulp_status status = f->holder->ops->contents(f->holder, work, &weights);

    if (status)
        return status;
    anchor = find_root(record, &weights->root);
    if (!anchor && record->version % HISTORY_RESET == 0 && same_root(&weights->root, &record->root))
        f->holder->held = (struct held){.any = true, .version = record->version};
    if (!anchor)
        return ULP_OK;
    status = check_content(anchor, weights->tensors, weights->count, f->holder->reader);
    if (!status)
        f->holder->held = (struct held){.any = true, .version = anchor->version};
    return status;
}

static enum ulp_status start(struct ulp_follower *f, const struct work *work) {
    if (f->holder->held.any)
        return ULP_OK;
    if (f->options.base)
        return start_from_base(f, work);
    return f->holder->ops->contents ? recognise(f, work) : ULP_OK;
}

/* ---- what leads there ---- */

static enum ulp_status check_published(const struct ulp_follower *f, const struct record *record,
                                       const struct way *way) {
    return record->version == way->to
               ? ULP_OK
               : fail(ULP_E_CHAIN, "record %llu of run %s did not publish version %llu",
                      (unsigned long long)way->sequence, quote(f->run).text,
                      (unsigned long long)way->to);
}

/* A tile does not give the root of its state: that is taken from the records that published the
 * versions on the way, from the newest back, each verified by the one behind it. */
static enum ulp_status look_up_roots(struct ulp_follower *f, struct ulp_run_report *report) {
    struct log_view view = {.store = f->store, .run = f->run};
    struct log_entry at = {0};
    const struct log_entry *head = &f->holder->seen;
    enum ulp_status status =
        arena_zeroed(&f->arena, f->plan.way_count, sizeof *f->roots, &f->roots);

    for (size_t i = f->plan.way_count; !status && i--;) {
        const struct way *way = f->plan.ways[i];
        struct log_entry entry = {0};

        if (way->to == head->record.version) {
            f->roots[i] = head->record.root;
            continue;
        }
        status = log_ancestor(&view, head, way->sequence, &entry);
        if (!status)
            status = check_published(f, &entry.record, way);
        if (!status)
            f->roots[i] = entry.record.root;
        log_entry_release(&at);
        at = entry;
        head = &at;
    }
    log_entry_release(&at);
    count_reads(&view, report);
    return status;
}

static enum ulp_status plan_slice(struct ulp_follower *f, struct ulp_run_report *report) {
    const struct slice *slice = f->holder->slice;
    const struct record *record = &f->holder->seen.record;
    const unsigned tiles = tiling_count(slice->tiling);
    struct record sliced;
    enum ulp_status status =
        map_slice(record, tiles, slice->tile, slice->common, &f->arena, &sliced);

    if (!status)
        status = plan_make(&sliced, &f->holder->held, f->goal, &f->arena, &f->plan);
    if (status == ULP_E_UNREACHABLE)
        status = fail(ULP_E_UNREACHABLE,
                      "%zu of %zu ways of run %s are cut into %u tiles, and none of them leads to "
                      "version %llu from what is held or from an anchor; follow the whole run, or "
                      "with the tiling that it is published with",
                      sliced.way_count, record->way_count, quote(f->run).text, tiles,
                      (unsigned long long)f->goal);
    return status ? status : look_up_roots(f, report);
}

static enum ulp_status plan_whole(struct ulp_follower *f) {
    const struct held *held = &f->holder->held;
    struct record record = f->holder->seen.record;
    enum ulp_status status = ULP_OK;

    if (f->options.each_version)
        status = map_each_version(&f->holder->seen.record, held->any, &f->arena, &record);
    return status ? status : plan_make(&record, held, f->goal, &f->arena, &f->plan);
}

static enum ulp_status set_out(struct ulp_follower *f, const struct work *work) {
    const struct held *held = &f->holder->held;
    const uint64_t budget = f->options.ahead_bytes ? f->options.ahead_bytes : AHEAD_BYTES_DEFAULT;
    enum ulp_status status = start(f, work);

    if (!status)
        status = choose_goal(f, &f->goal);
    if (status || (held->any && held->version == f->goal))
        return status;
    status = f->holder->slice ? plan_slice(f, work->report) : plan_whole(f);
    if (!status)
        status = ahead_start(&f->ahead, f->store, f->run, &f->plan, budget);
    f->travelling = !status;
    return status;
}

/* ---- going ---- */

static enum ulp_status wrong_root(const struct ulp_root *root, const struct ulp_root *wanted) {
    return fail(ULP_E_WRONG_RESULT, "a version has root %s..., and should have %s...",
                short_root(root).hex, short_root(wanted).hex);
}

/* A version of the past has a record of its own, which names its root. */
static enum ulp_status check_past(const struct ulp_follower *f, const struct way *way,
                                  struct ulp_run_report *report) {
    struct log_view view = {.store = f->store, .run = f->run};
    struct log_entry entry = {0};
    enum ulp_status status = log_ancestor(&view, &f->holder->seen, way->sequence, &entry);

    count_reads(&view, report);
    if (!status)
        status = check_published(f, &entry.record, way);
    if (!status && !same_root(&entry.record.root, &f->holder->staged_root))
        status = wrong_root(&f->holder->staged_root, &entry.record.root);
    log_entry_release(&entry);
    return status;
}

/* The root of what was staged, where a record or an anchor says it; a patch on the way there was
 * verified by its own. */
static enum ulp_status check_staged(const struct ulp_follower *f, const struct way *way,
                                    struct ulp_run_report *report) {
    const struct record *record = &f->holder->seen.record;
    const struct ulp_root *root = &f->holder->staged_root;
    const struct anchor *anchor = map_anchor(record, f->holder->staged_version);

    if (f->holder->staged_version == record->version && !same_root(root, &record->root))
        return wrong_root(root, &record->root);
    if (anchor && !same_root(root, &anchor->root))
        return wrong_root(root, &anchor->root);
    if (way && f->roots && !same_root(root, &f->roots[f->next - 1]))
        return wrong_root(root, &f->roots[f->next - 1]);
    return way && !f->roots && f->holder->staged_version == f->goal && f->goal != record->version
               ? check_past(f, way, report)
               : ULP_OK;
}

static enum ulp_status load_anchor(struct ulp_follower *f, const struct work *work) {
    enum ulp_status status = f->holder->ops->load(f->holder, work, f->plan.anchor);

    if (status)
        return status;
    work->report->fetched_anchors++;
    f->plan.anchor = NULL;
    return check_staged(f, NULL, work->report);
}

static enum ulp_status go(struct ulp_follower *f, const struct work *work) {
    const struct way *way = f->plan.ways[f->next];
    const uint64_t started = clock_monotonic_ns();
    struct step step;
    enum ulp_status status;

    fetched_release(&f->fetched);
    status = ahead_take(&f->ahead, &f->fetched);
    work_spent(&work->report->phases.fetch_ns, started);
    if (status)
        return status;
    work->report->fetched_bytes += f->fetched.bytes;
    work->report->patch_bytes += f->fetched.bytes;
    work->report->fetched_patches++;
    work->report->fetched_objects += f->fetched.objects;
    step = (struct step){.way = way,
                         .patches = (const struct ulp_patch *const *)f->fetched.patches,
                         .count = f->fetched.count,
                         .root = f->roots ? &f->roots[f->next] : NULL};
    f->next++;
    status = f->holder->ops->step(f->holder, work, &step);
    return status ? status : check_staged(f, way, work->report);
}

/* As far as one can get without showing anything. */
static enum ulp_status stage(struct ulp_follower *f, const struct work *work) {
    const bool live = f->holder->ops->live;
    enum ulp_status status = f->plan.anchor ? load_anchor(f, work) : ULP_OK;

    while (!status && f->next < f->plan.way_count && !(live && f->holder->staged))
        status = go(f, work);
    return status;
}

static void report_state(const struct ulp_follower *f, struct ulp_run_report *report) {
    report->head = record_summary(&f->holder->seen.record);
    report->version = f->holder->held.version;
    report->ready = f->holder->staged;
    report->apply_left = f->travelling ? f->plan.way_count - f->next : 0;
}

enum ulp_status follower_poll(struct ulp_follower *f, struct ulp_run_report *report) {
    const struct work work = {f->store, f->run, &f->options, report};
    enum ulp_status status = ULP_E_PART_MISSING;

    if (f->holder->staged) {
        report_state(f, report);
        return ULP_OK;
    }
    for (unsigned i = 0; i < REPLANS_MAX && status == ULP_E_PART_MISSING; i++) {
        const uint64_t before = f->holder->seen.record.sequence;
        struct error_note note;

        if (i)
            error_save(&note);
        status = f->travelling ? ULP_OK : follower_look(f, report);
        if (!status && i && f->holder->seen.record.sequence == before) {
            error_restore(&note); /* nothing has changed: it is just missing */
            return ULP_E_PART_MISSING;
        }
        if (!status && !f->travelling)
            status = set_out(f, &work);
        if (!status && f->travelling)
            status = stage(f, &work);
        if (status)
            stop_travelling(f);
    }
    if (!status)
        report_state(f, report);
    return status;
}

enum ulp_status follower_apply(struct ulp_follower *f, struct ulp_run_report *report) {
    const struct work work = {f->store, f->run, &f->options, report};
    enum ulp_status status;

    if (!f->holder->staged)
        return fail(ULP_E_USAGE, "there is nothing to apply; poll first");
    status = holder_show(f->holder, &work);
    if (status && !f->holder->staged)
        stop_travelling(f); /* there is nothing to go on from: the next poll plans anew */
    if (status)
        return status;
    fetched_release(&f->fetched);
    if (f->next == f->plan.way_count)
        stop_travelling(f);
    report->fresh = 1;
    report_state(f, report);
    return ULP_OK;
}

enum ulp_status follower_catch_up(struct ulp_follower *f, struct ulp_run_report *report) {
    enum ulp_status status = follower_poll(f, report);

    while (!status && report->ready) {
        status = follower_apply(f, report);
        if (!status && report->apply_left)
            status = follower_poll(f, report);
    }
    return status;
}

/* ---- life ---- */

enum ulp_status follower_new(struct ulp_store *store, const char *run,
                             const struct ulp_run_options *options, struct holder *holder,
                             struct ulp_follower **ret_follower) {
    struct ulp_follower *f = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *f, &f);

    if (status) {
        holder_free(holder);
        return status;
    }
    f->store = store;
    f->holder = holder;
    f->options = *options;
    status = mem_copy_text(run, &f->run);
    if (status)
        follower_free(f);
    else
        *ret_follower = f;
    return status;
}

void follower_free(struct ulp_follower *f) {
    if (!f)
        return;
    stop_travelling(f);
    holder_free(f->holder);
    mem_free(f->run);
    mem_free(f);
}
