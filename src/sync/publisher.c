// SPDX-License-Identifier: Apache-2.0
/* The order is the protocol: parts first, then our own check of them, then the record; the base
 * moves last. */
#include "sync/publisher.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "chain/map.h"
#include "patch/apply.h"
#include "patch/fit.h"
#include "patch/tile.h"
#include "sync/anchor_files.h"
#include "sync/commit.h"
#include "sync/making.h"
#include "sync/rules.h"
#include "tensor/model.h"

#include <string.h>
#include <sys/random.h>

#define ANCHOR_EVERY_DEFAULT 128u
#define ANCHOR_SHARE_DEFAULT 50u
#define KEEP_ANCHORS_DEFAULT 2u

/* A map with so few ways left gets an anchor, whatever the options say. */
#define WAYS_LEFT_MIN 64u

/* Deletions that were announced meanwhile may make us store again so often. */
#define ROUNDS_MAX 4u

/* ---- the first version ---- */

/* What the record says of the state itself. */
static enum ulp_status describe(const struct holder *holder, const struct given *given,
                                struct record *record, struct anchor *anchor) {
    struct ulp_model *model = NULL;
    enum ulp_status status = given->path ? model_open(given->path, &model) : ULP_OK;
    const struct ulp_tensor *tensors = model ? model->tensors : given->tensors;
    const size_t count = model ? model->count : given->count;

    for (size_t i = 0; !status && i < count; i++)
        record->elements += tensors[i].elements;
    if (!status && *anchor->reference)
        status = content_hash(tensors, count, model ? NULL : holder->reader, &anchor->content);
    model_free(model);
    return status;
}

static enum ulp_status first_record(struct ulp_follower *f, const struct work *work,
                                    const struct given *given, struct arena *arena,
                                    struct record *record) {
    struct holder *holder = f->holder;
    struct anchor *anchor = NULL;
    enum ulp_status status = arena_zeroed(arena, 1, sizeof *anchor, &anchor);

    if (!status && getrandom(record->run, RUN_ID_BYTES, 0) != RUN_ID_BYTES)
        status = fail(ULP_E_IO, "the system gives no random numbers");
    if (status)
        return status;
    anchor->root = record->root = holder->staged_root;
    anchor->reference = f->options.reference ? f->options.reference : "";
    status = describe(holder, given, record, anchor);
    record->sequence = 1;
    record->time_ms = clock_wall_ns() / 1000000;
    record->anchors = anchor;
    record->anchor_count = 1;
    return status ? status : holder->ops->put(holder, work, 1, arena, anchor);
}

static enum ulp_status publish_first(struct ulp_follower *f, const struct work *work,
                                     const struct given *given, uint64_t step) {
    struct holder *holder = f->holder;
    struct arena arena = {0};
    struct record record = {.step = step};
    struct log_entry entry = {0};
    enum ulp_status status = run_name_check(f->run);

    if (!status)
        status = holder->ops->take(holder, work, 0, given);
    if (!status)
        status = first_record(f, work, given, &arena, &record);
    if (!status)
        status = log_append(f->store, f->run, &record, f->options.sign, &entry);
    arena_release(&arena);
    if (status) {
        holder->ops->drop(holder);
        return status;
    }
    work->report->stored_objects++;
    holder->seen = entry;
    f->looked = true;
    return holder_show(holder, work);
}

/* ---- the next one ---- */

struct publishing {
    struct ulp_follower *follower;
    const struct work *work;
    struct ulp_model *model; /* of a path */
    const struct ulp_tensor *tensors;
    size_t count;
    uint64_t step;
    struct ulp_weights *weights;
    struct making making; /* our own patches, to be checked and applied */
    struct ulp_root child;
};

/* Whoever took the step to this version has remembered how the elements moved: not if it came in
 * tiles. */
static bool came_whole(const struct record *record) {
    const struct way *way =
        record->version ? map_way(record, record->version - 1, record->version) : NULL;

    return way && way->patch_count == 1;
}

/* Where history begins anew, where somebody may start, and where the version before is not at hand,
 * there is none. */
static bool with_history(const struct publishing *p) {
    const struct holder *holder = p->follower->holder;

    if (rule_broken(RULE_HISTORY_BEGINS_ANEW))
        return holder->held.before;
    return !p->work->options->tiling && holder->held.before &&
           holder->held.version % HISTORY_RESET != 0 &&
           !map_anchor(&holder->seen.record, holder->held.version) &&
           came_whole(&holder->seen.record);
}

/* One for each tile, the common one first. */
static enum ulp_status make_tiles(struct publishing *p, const struct ulp_tiling *tiling) {
    enum ulp_status status = ULP_OK;

    for (unsigned tile = 0; !status && tile <= tiling_count(tiling); tile++)
        status = making_add_tile(&p->making, p->follower->holder, p->weights, p->tensors, p->count,
                                 tiling, tile, p->work);
    if (!status && !p->making.report.patch_bytes)
        status = fail(ULP_E_REGIONS, "a state without elements has no tiles; publish it whole");
    return status;
}

static enum ulp_status make_patch(struct publishing *p) {
    const struct ulp_run_options *options = p->work->options;
    struct holder *holder = p->follower->holder;
    const struct ulp_diff_options diff_options = {
        .pool = options->pool, .progress = options->progress, .history = with_history(p)};
    const uint64_t started = clock_monotonic_ns();
    enum ulp_status status = holder->ops->weights(holder, p->work, with_history(p), &p->weights);

    if (!status)
        status = making_begin(&p->making, p->work, holder->seen.record.sequence + 1);
    if (!status)
        status = options->tiling ? make_tiles(p, options->tiling)
                                 : making_add(&p->making, holder, p->weights, p->tensors, p->count,
                                              &diff_options);
    work_spent(&p->work->report->phases.encode_ns, started);
    return status;
}

static struct step step_of(const struct publishing *p, const struct way *way) {
    return (struct step){.way = way,
                         .patches = (const struct ulp_patch *const *)p->making.patches,
                         .count = p->making.patch_count};
}

static enum ulp_status decode_own(struct publishing *p) {
    const struct ulp_apply_options options = {.pool = p->work->options->pool,
                                              .staging_bytes = WORK_BYTES};
    struct ulp_apply *apply = NULL;
    enum ulp_status status =
        apply_prepare(p->weights, (const struct ulp_patch *const *)p->making.patches,
                      p->making.patch_count, NULL, &options, &apply);

    if (!status)
        p->child = apply->root;
    apply_free(apply);
    return status;
}

/* Whoever publishes a patch has decoded it against its own base: rule 8. Of tiles the root is what
 * their tables add up to, and the decoded state has it. */
static enum ulp_status check_own(struct publishing *p, const struct way *way) {
    struct holder *holder = p->follower->holder;
    const uint64_t started = clock_monotonic_ns();
    struct step step;
    enum ulp_status status = making_open(&p->making);

    step = step_of(p, way);
    if (!status)
        status = holder->ops->check ? holder->ops->check(holder, p->work, &step, &p->child)
                                    : decode_own(p);
    if (!status && !p->work->options->tiling && !same_root(&p->child, &p->making.report.child))
        status = fail(ULP_E_WRONG_RESULT, "our own patch leads elsewhere; nothing was published");
    work_spent(&p->work->report->phases.verify_ns, started);
    return status;
}

/* The record is in the log: from here on whatever fails is made good by following. */
static enum ulp_status move_base(struct publishing *p, const struct way *way) {
    const struct step step = step_of(p, way);
    struct holder *holder = p->follower->holder;
    enum ulp_status status = holder->ops->step(holder, p->work, &step);

    if (!status)
        status = holder_show(holder, p->work);
    if (status)
        holder->ops->drop(holder);
    return status;
}

/* What is being made; its patches are named when they are stored. */
static struct way way_of(const struct publishing *p) {
    const struct holder *holder = p->follower->holder;

    return (struct way){.from = holder->held.version,
                        .to = holder->held.version + 1,
                        .history = p->making.report.history,
                        .changes = p->making.report.changed,
                        .patch_count = p->making.count};
}

static enum ulp_status add_version(struct publishing *p, struct way way, bool *ret_moved) {
    struct arena arena = {0};
    const struct addition addition = {.way = &way,
                                      .version = true,
                                      .step = p->step,
                                      .root = p->child,
                                      .key = p->work->options->sign};
    enum ulp_status status = making_stored(&p->making, &arena, &way.patches);

    if (!status && rule_broken(RULE_BASE_MOVES_LAST))
        status = move_base(p, &way);
    if (!status)
        status = commit(p->follower, &addition, p->work->report, ret_moved);
    if (!status && !*ret_moved && !rule_broken(RULE_BASE_MOVES_LAST))
        status = move_base(p, &way);
    arena_release(&arena);
    return status;
}

/* Somebody who died after the record was added, and tries again. */
static bool is_published(const struct publishing *p) {
    return !p->making.report.changed && p->step == p->follower->holder->seen.record.step;
}

static enum ulp_status check_and_add(struct publishing *p, bool *ret_moved) {
    struct holder *holder = p->follower->holder;
    const struct way way = way_of(p);
    enum ulp_status status = check_own(p, &way);

    if (!status)
        status = making_end(&p->making, p->work);
    if (!status)
        status = add_version(p, way, ret_moved);
    if ((status || *ret_moved) && holder->ops->check)
        holder->ops->drop(holder); /* what was decoded for a step that does not come */
    return status;
}

static enum ulp_status publish_once(struct publishing *p, bool *ret_moved) {
    enum ulp_status status = make_patch(p);

    *ret_moved = false;
    if (!status && !is_published(p)) {
        status = check_and_add(p, ret_moved);
        p->work->report->fresh = !status && !*ret_moved;
    }
    making_release(&p->making);
    return status;
}

static enum ulp_status publish_next(struct ulp_follower *f, const struct work *work,
                                    const struct given *given, uint64_t step) {
    struct publishing p = {.follower = f, .work = work, .step = step};
    bool moved = true;
    enum ulp_status status = given->path ? model_open(given->path, &p.model) : ULP_OK;

    p.tensors = p.model ? p.model->tensors : given->tensors;
    p.count = p.model ? p.model->count : given->count;
    for (unsigned i = 0; !status && moved && i < ROUNDS_MAX; i++)
        status = publish_once(&p, &moved);
    if (!status && moved)
        status = fail(ULP_E_FENCED, "old parts of run %s are deleted faster than new ones come",
                      quote(f->run).text);
    model_free(p.model);
    return status;
}

/* ---- either ---- */

static bool has_run(const struct ulp_follower *f) {
    return f->holder->seen.record.sequence != 0;
}

/* The log was looked at before, so the next record is just tried: who was faster is seen then. */
static enum ulp_status be_at_head(struct ulp_follower *f, struct ulp_run_report *report) {
    const struct holder *holder = f->holder;
    enum ulp_status status;

    if (f->looked && holder->held.any && holder->held.version == holder->seen.record.version)
        return ULP_OK;
    status = follower_catch_up(f, report);
    return status == ULP_E_NO_RUN && !has_run(f) ? ULP_OK : status;
}

/* ---- anchors ---- */

/* Bytes of all single steps since a version. */
static uint64_t bytes_since(const struct record *record, uint64_t version) {
    uint64_t bytes = 0;

    for (size_t i = 0; i < record->way_count; i++) {
        const struct way *way = &record->ways[i];

        bytes += way->from >= version && way->to == way->from + 1 ? way_bytes(way) : 0;
    }
    return bytes;
}

/* Anchors stand where history begins anew, so that who starts there can go on. */
static bool anchor_is_due(const struct ulp_follower *f) {
    const struct record *record = &f->holder->seen.record;
    const uint64_t every = f->options.anchor_every ? f->options.anchor_every : ANCHOR_EVERY_DEFAULT;
    const uint64_t share = f->options.anchor_share ? f->options.anchor_share : ANCHOR_SHARE_DEFAULT;
    const struct anchor *newest;
    uint64_t since;

    if (f->holder->held.version % HISTORY_RESET)
        return false;
    if (!record->anchor_count)
        return true; /* somebody's record has none */
    newest = &record->anchors[record->anchor_count - 1];
    since = f->holder->held.version - newest->version;
    return since &&
           (since >= every || (anchor_bytes(newest) && bytes_since(record, newest->version) >=
                                                           anchor_bytes(newest) / 100 * share));
}

static bool map_is_full(const struct ulp_follower *f) {
    return f->holder->seen.record.way_count + WAYS_LEFT_MIN > LIMIT_WAYS ||
           f->holder->seen.byte_count > LIMIT_RECORD_BYTES / 2;
}

/* Of the version that is held; others may announce a deletion meanwhile, and then there is none. */
static enum ulp_status put_anchor(struct ulp_follower *f, const struct work *work,
                                  unsigned keep_anchors) {
    struct holder *holder = f->holder;
    struct arena arena = {0};
    struct anchor anchor = {
        .version = holder->held.version, .root = holder->seen.record.root, .reference = ""};
    const struct addition addition = {
        .anchor = &anchor, .keep_anchors = keep_anchors, .key = f->options.sign};
    const uint64_t folder = holder->seen.record.sequence + 1;
    bool moved = false;
    enum ulp_status status = holder->ops->put(holder, work, folder, &arena, &anchor);

    if (!status)
        status = commit(f, &addition, work->report, &moved);
    work->report->fresh = !status && !moved;
    arena_release(&arena);
    return status == ULP_E_EXISTS ? ULP_OK : status; /* somebody else has made one */
}

/* Nothing in front of the version that is held is kept, so an anchor must be there. */
static enum ulp_status empty_map(struct ulp_follower *f, const struct work *work) {
    const struct addition nothing = {.keep_anchors = 1, .key = f->options.sign};
    bool moved = false;

    return map_anchor(&f->holder->seen.record, f->holder->held.version)
               ? commit(f, &nothing, work->report, &moved)
               : put_anchor(f, work, 1);
}

/* ---- for everybody ---- */

static enum ulp_status stay_fenced(const struct ulp_publisher *p) {
    return fail(ULP_E_FENCED, "somebody else publishes run %s", quote(p->follower->run).text);
}

enum ulp_status publisher_anchor(struct ulp_publisher *p, struct ulp_run_report *report) {
    struct ulp_follower *f = p->follower;
    const struct work work = {f->store, f->run, &f->options, report};
    const unsigned keep = f->options.keep_anchors ? f->options.keep_anchors : KEEP_ANCHORS_DEFAULT;
    enum ulp_status status = p->fenced ? stay_fenced(p) : be_at_head(f, report);

    report->fresh = 0;
    if (!status && has_run(f) && anchor_is_due(f))
        status = put_anchor(f, &work, keep);
    if (!status && has_run(f) && f->holder->seen.record.version != f->holder->held.version)
        status = stay_fenced(p); /* the anchor is of use all the same */
    p->fenced = p->fenced || status == ULP_E_FENCED;
    if (!status && has_run(f))
        report->head = record_summary(&f->holder->seen.record);
    return status;
}

static enum ulp_status refuse_model(const struct ulp_follower *f, const struct given *given) {
    return given->path && f->holder->reader
               ? fail(ULP_E_USAGE, "a publisher on a device takes tensors there; %s is on disk",
                      quote(given->path).text)
               : ULP_OK;
}

enum ulp_status publisher_publish(struct ulp_publisher *p, const struct given *given, uint64_t step,
                                  struct ulp_run_report *report) {
    struct ulp_follower *f = p->follower;
    const struct work work = {f->store, f->run, &f->options, report};
    enum ulp_status status = p->fenced ? stay_fenced(p) : refuse_model(f, given);

    if (!status)
        status = be_at_head(f, report);
    if (!status && map_is_full(f))
        status = empty_map(f, &work);
    report->fresh = 0;
    if (!status && has_run(f)) {
        status = publish_next(f, &work, given, step);
    } else if (!status) {
        status = publish_first(f, &work, given, step);
        report->fresh = !status;
    }
    p->fenced = status == ULP_E_FENCED;
    if (!status) {
        report->head = record_summary(&f->holder->seen.record);
        report->version = f->holder->held.version;
    }
    return status;
}

/* ---- life ---- */

/* Only where creating a record is really for one alone can several publish. */
static enum ulp_status check_several(struct ulp_store *store) {
    struct ulp_store_report report = {0};
    enum ulp_status status = ulp_store_check(store, &report);

    if (!status && report.verdict != ULP_STORE_SEVERAL_PUBLISHERS)
        status = fail(ULP_E_UNSUPPORTED, "%s cannot keep several publishers apart: %s",
                      quote(ulp_store_name(store)).text, report.why);
    return status;
}

enum ulp_status publisher_new(struct ulp_store *store, const char *run,
                              const struct ulp_run_options *options, struct holder *holder,
                              struct ulp_publisher **ret_publisher) {
    struct ulp_publisher *p = NULL;
    struct ulp_run_options newest = *options;
    enum ulp_status status;

    newest.stop_at_version = 0; /* only the newest can be built on */
    status = options->several && !holder->seen.record.sequence
                 ? check_several(store) /* once, before it is relied on */
                 : ULP_OK;
    if (!status)
        status = mem_zeroed(1, sizeof *p, &p);
    if (status) {
        holder_free(holder);
        return status;
    }
    status = follower_new(store, run, &newest, holder, &p->follower);
    if (status)
        publisher_free(p);
    else
        *ret_publisher = p;
    return status;
}

void publisher_free(struct ulp_publisher *p) {
    if (!p)
        return;
    follower_free(p->follower);
    mem_free(p);
}
