// SPDX-License-Identifier: Apache-2.0
#include "sync/commit.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "chain/map.h"
#include "hash/key.h"
#include "sync/rules.h"

#include <string.h>

/* Others may be faster so often. */
#define TRIES 16u

/* Who hands over keeps what was handed over before. */
static enum ulp_status add_handover(struct record *record, const struct addition *a,
                                    struct arena *arena) {
    struct handover *all = NULL, handover;
    enum ulp_status status = arena_zeroed(arena, record->handover_count + 1, sizeof *all, &all);

    if (!status)
        status = handover_make(record, record->sequence, a->hand_over_from, &a->key->public_key,
                               &handover);

    if (status)
        return status;
    if (record->handover_count)
        memcpy(all, record->handovers, record->handover_count * sizeof *all);
    all[record->handover_count++] = handover;
    record->handovers = all;
    return ULP_OK;
}

/* The record that follows, with what is added; it points to `arena` and to what was seen. */
static enum ulp_status compose(const struct log_entry *seen, const struct addition *a,
                               struct arena *arena, struct record *ret_record) {
    struct record record;
    enum ulp_status status = ULP_OK;

    record_succeed(&seen->record, &seen->hash, &record);
    if (a->version) {
        record.version++;
        record.epoch += a->step < record.step;
        record.step = a->step;
        record.root = a->root;
    }
    record.time_ms = clock_wall_ns() / 1000000;
    if (a->boundary)
        record.boundary = record.sequence;
    if (a->way) {
        struct way way = *a->way;

        way.sequence = a->version ? record.sequence : way.sequence;
        status = map_add_way(&record, &way, arena);
    }
    if (!status && a->anchor)
        status = map_add_anchor(&record, a->anchor, arena);
    if (!status && a->hand_over_from)
        status = add_handover(&record, a, arena);
    if (!status && a->keep_anchors)
        status = map_trim(&record, a->keep_anchors, arena);
    *ret_record = record;
    return status;
}

/* Whoever signs a run must be the one who signed it before, or hands over. */
static enum ulp_status check_key(const struct record *seen, const struct addition *a,
                                 const char *run) {
    const struct ulp_key *before = a->hand_over_from ? a->hand_over_from : a->key;

    if (!seen->is_signed)
        return a->hand_over_from
                   ? fail(ULP_E_UNSIGNED, "run %s is not signed by any key", quote(run).text)
                   : ULP_OK;
    if (!before)
        return fail(ULP_E_UNSIGNED, "run %s is signed; adding to it needs its key",
                    quote(run).text);
    if (memcmp(&before->public_key, &seen->signer, sizeof seen->signer) != 0)
        return fail(ULP_E_SIGNATURE, "run %s is signed by another key than the one given",
                    quote(run).text);
    return ULP_OK;
}

static enum ulp_status try_once(struct ulp_follower *f, const struct addition *a) {
    struct holder *holder = f->holder;
    struct arena arena = {0};
    struct log_entry entry = {0};
    struct record record;
    enum ulp_status status = check_key(&holder->seen.record, a, f->run);

    if (!status)
        status = compose(&holder->seen, a, &arena, &record);
    if (!status)
        status = log_append(f->store, f->run, &record, a->key, &entry);
    arena_release(&arena);
    if (!status) {
        log_entry_release(&holder->seen);
        holder->seen = entry;
    }
    return status;
}

static enum ulp_status fenced(const struct ulp_follower *f, const struct record *record) {
    return fail(ULP_E_FENCED, "version %llu of run %s was published by somebody else",
                (unsigned long long)record->version, quote(f->run).text);
}

/* ULP_E_NOT_FOUND if a record has let the part go: it is in a folder below the boundary, and not in
 * the map. */
static enum ulp_status check_kept(void *user, const struct part *part) {
    const struct record *seen = user;

    return part->folder < seen->boundary && !map_names(seen, part) ? ULP_E_NOT_FOUND : ULP_OK;
}

/* Whether what is to be added names parts that may be deleted. */
static bool names_lost_parts(const struct addition *a, struct record *seen) {
    const struct record added = {.ways = a->way,
                                 .way_count = a->way != NULL,
                                 .anchors = a->anchor,
                                 .anchor_count = a->anchor != NULL};

    return map_each_part(&added, check_kept, seen) != ULP_OK;
}

/* Somebody was faster. Where one of the two only changes the map, that is no matter. */
static enum ulp_status take_in(struct ulp_follower *f, const struct addition *a, bool *moved) {
    struct holder *holder = f->holder;
    struct log_view view = {
        .store = f->store, .run = f->run, .trust = {f->options.trusted, f->options.trusted_count}};
    const uint64_t version = holder->seen.record.version, sequence = holder->seen.record.sequence;
    enum ulp_status status = log_advance_one(&view, &holder->seen);

    if (status)
        return status;
    *moved = !rule_broken(RULE_STORE_AGAIN) && names_lost_parts(a, &holder->seen.record);
    if (a->version && holder->seen.record.version != version)
        return fenced(f, &holder->seen.record);
    return holder->seen.record.sequence == sequence
               ? fail(ULP_E_FENCED, "record %llu of run %s was there, and is not any more",
                      (unsigned long long)sequence + 1, quote(f->run).text)
               : ULP_OK;
}

enum ulp_status commit(struct ulp_follower *f, const struct addition *addition,
                       struct ulp_run_report *report, bool *ret_moved) {
    const uint64_t started = clock_monotonic_ns();
    bool moved = false;
    enum ulp_status status = try_once(f, addition);

    for (unsigned i = 0; status == ULP_E_FENCED && i < TRIES; i++) {
        status = take_in(f, addition, &moved);
        if (status || moved)
            break;
        status = try_once(f, addition);
    }
    work_spent(&report->phases.commit_ns, started);
    *ret_moved = !status && moved;
    if (status || moved)
        return status;
    report->stored_objects++;
    return holder_keep(f->holder);
}
