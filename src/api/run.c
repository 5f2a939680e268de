// SPDX-License-Identifier: Apache-2.0
/* Public entry points on runs. */
#include "base/log.h"
#include "base/quote.h"
#include "chain/map.h"
#include "sync/check.h"
#include "sync/collect.h"
#include "sync/commit.h"
#include "sync/memory_holder.h"
#include "sync/mirror.h"
#include "sync/publisher.h"
#include "sync/replica.h"
#include "sync/tend.h"
#include "sync/tile_holder.h"
#include "sync/tile_writer.h"

#include <ulpsync/run.h>

static const struct ulp_run_options plain_options;

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

static void give_report(enum ulp_status status, const struct ulp_run_report *report,
                        struct ulp_run_report *ret_report) {
    if (!status && ret_report)
        *ret_report = *report;
}

/* ---- records ---- */

static enum ulp_status read_head(struct ulp_store *store, const char *run,
                                 struct log_entry *ret_head) {
    struct log_view view = {.store = store, .run = run};

    return log_advance(&view, false, ret_head);
}

enum ulp_status ulp_run_head(struct ulp_store *store, const char *run,
                             struct ulp_run_record *ret_record) {
    struct log_entry head = {0};
    enum ulp_status status;

    if (!store || !run || !ret_record)
        return missing(__func__);
    status = read_head(store, run, &head);
    if (!status)
        *ret_record = record_summary(&head.record);
    log_entry_release(&head);
    return status;
}

enum ulp_status ulp_run_read(struct ulp_store *store, const char *run, uint64_t sequence,
                             struct ulp_run_record *ret_record) {
    struct log_entry entry = {0};
    enum ulp_status status;

    if (!store || !run || !ret_record)
        return missing(__func__);
    status = run_name_check(run);
    if (!status)
        status = log_read(store, run, sequence, &entry);
    if (!status)
        *ret_record = record_summary(&entry.record);
    log_entry_release(&entry);
    return status;
}

/* From the newest record, which is taken over, back to the oldest version that can still be had. */
static enum ulp_status find_step(struct log_view *view, struct log_entry *at, uint64_t step,
                                 uint64_t *ret_version) {
    const uint64_t oldest = record_summary(&at->record).oldest;
    enum ulp_status status = ULP_OK;

    while (!status && at->record.step != step && at->record.version > oldest) {
        struct log_entry before = {0};

        status = log_ancestor(view, at, at->record.sequence - 1, &before);
        log_entry_release(at);
        *at = before;
    }
    if (!status && at->record.step != step)
        status = fail(ULP_E_UNREACHABLE, "no version that can be had any more has step %llu",
                      (unsigned long long)step);
    if (!status)
        *ret_version = at->record.version;
    return status;
}

enum ulp_status ulp_run_find_step(struct ulp_store *store, const char *run, uint64_t step,
                                  const struct ulp_run_options *options, uint64_t *ret_version) {
    struct log_view view = {.store = store, .run = run};
    struct log_entry head = {0};
    enum ulp_status status;

    if (!store || !run || !ret_version)
        return missing(__func__);
    options = options ? options : &plain_options;
    view.trust = (struct trust){options->trusted, options->trusted_count};
    view.max_age_ms = options->max_age_ms;
    status = log_advance(&view, false, &head);
    if (!status)
        status = find_step(&view, &head, step, ret_version);
    log_entry_release(&head);
    return status;
}

/* ---- publishing ---- */

enum ulp_status ulp_publisher_open(struct ulp_store *store, const char *run, const char *directory,
                                   const struct ulp_run_options *options,
                                   struct ulp_publisher **ret_publisher) {
    struct holder *holder = NULL;
    enum ulp_status status;

    if (!store || !run || !ret_publisher)
        return missing(__func__);
    options = options ? options : &plain_options;
    status = directory ? replica_open(directory, NULL, &holder)
                       : memory_holder_open(NULL, 0, options, &holder);
    return status ? status : publisher_new(store, run, options, holder, ret_publisher);
}

void ulp_publisher_close(struct ulp_publisher *publisher) {
    publisher_free(publisher);
}

static enum ulp_status publish_given(struct ulp_publisher *publisher, const struct given *given,
                                     uint64_t step, struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status = publisher_publish(publisher, given, step, &report);

    give_report(status, &report, ret_report);
    return status;
}

enum ulp_status ulp_publisher_publish(struct ulp_publisher *publisher,
                                      const struct ulp_tensor *tensors, size_t count, uint64_t step,
                                      struct ulp_run_report *ret_report) {
    const struct given given = {.tensors = tensors, .count = count};

    return publisher && tensors ? publish_given(publisher, &given, step, ret_report)
                                : missing(__func__);
}

enum ulp_status ulp_publisher_publish_model(struct ulp_publisher *publisher, const char *path,
                                            uint64_t step, struct ulp_run_report *ret_report) {
    const struct given given = {.path = path};

    return publisher && path ? publish_given(publisher, &given, step, ret_report)
                             : missing(__func__);
}

enum ulp_status ulp_publisher_anchor(struct ulp_publisher *publisher,
                                     struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status = publisher ? publisher_anchor(publisher, &report) : missing(__func__);

    give_report(status, &report, ret_report);
    return status;
}

enum ulp_status ulp_publish(struct ulp_store *store, const char *run, const char *directory,
                            const char *path, uint64_t step, const struct ulp_run_options *options,
                            struct ulp_run_report *ret_report) {
    struct ulp_publisher *publisher = NULL;
    struct ulp_run_report anchor = {0};
    enum ulp_status status;

    if (!store || !run || !directory || !path)
        return missing(__func__);
    status = ulp_publisher_open(store, run, directory, options, &publisher);
    if (!status)
        status = ulp_publisher_publish_model(publisher, path, step, ret_report);
    if (!status && publisher_anchor(publisher, &anchor)) /* the version is published all the same */
        log_message(ULP_LOG_WARN, "no anchor could be made: %s", ulp_last_error());
    if (!status && ret_report) {
        ret_report->head = anchor.head.sequence ? anchor.head : ret_report->head;
        ret_report->stored_bytes += anchor.stored_bytes;
        ret_report->stored_objects += anchor.stored_objects;
    }
    ulp_publisher_close(publisher);
    return status;
}

/* ---- following ---- */

enum ulp_status ulp_follower_open(struct ulp_store *store, const char *run, const char *directory,
                                  const struct ulp_run_options *options,
                                  struct ulp_follower **ret_follower) {
    struct holder *holder = NULL;
    struct slice slice;
    enum ulp_status status = ULP_OK;

    if (!store || !run || !directory || !ret_follower)
        return missing(__func__);
    options = options ? options : &plain_options;
    if (options->tile)
        status = slice_make(options->tiling, options->tile, true, &slice);
    if (!status)
        status = replica_open(directory, options->tile ? &slice : NULL, &holder);
    return status ? status : follower_new(store, run, options, holder, ret_follower);
}

enum ulp_status ulp_follower_open_memory(struct ulp_store *store, const char *run,
                                         const struct ulp_tensor *tensors, size_t count,
                                         const struct ulp_run_options *options,
                                         struct ulp_follower **ret_follower) {
    struct holder *holder = NULL;
    enum ulp_status status;

    if (!store || !run || !tensors || !ret_follower)
        return missing(__func__);
    options = options ? options : &plain_options;
    status = memory_holder_open(tensors, count, options, &holder);
    return status ? status : follower_new(store, run, options, holder, ret_follower);
}

enum ulp_status ulp_follower_open_tile(struct ulp_store *store, const char *run,
                                       const struct ulp_tensor *tensors, size_t count,
                                       const struct ulp_run_options *options,
                                       struct ulp_follower **ret_follower) {
    struct holder *holder = NULL;
    struct slice slice;
    enum ulp_status status;

    if (!store || !run || !tensors || !options || !ret_follower)
        return missing(__func__);
    status = slice_make(options->tiling, options->tile, true, &slice);
    if (!status)
        status = tile_holder_open(tensors, count, false, &slice, options, &holder);
    return status ? status : follower_new(store, run, options, holder, ret_follower);
}

void ulp_follower_close(struct ulp_follower *follower) {
    follower_free(follower);
}

enum ulp_status ulp_follower_poll(struct ulp_follower *follower,
                                  struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status = follower ? follower_poll(follower, &report) : missing(__func__);

    give_report(status, &report, ret_report);
    return status;
}

enum ulp_status ulp_follower_apply(struct ulp_follower *follower,
                                   struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status = follower ? follower_apply(follower, &report) : missing(__func__);

    give_report(status, &report, ret_report);
    return status;
}

enum ulp_status ulp_follow(struct ulp_store *store, const char *run, const char *directory,
                           const struct ulp_run_options *options,
                           struct ulp_run_report *ret_report) {
    struct ulp_follower *follower = NULL;
    struct ulp_run_report report = {0};
    enum ulp_status status = ulp_follower_open(store, run, directory, options, &follower);

    if (!status)
        status = follower_catch_up(follower, &report);
    ulp_follower_close(follower);
    give_report(status, &report, ret_report);
    return status;
}

/* ---- writers of tiles ---- */

enum ulp_status ulp_tile_writer_open(struct ulp_store *store, const char *run,
                                     const struct ulp_tensor *tensors, size_t count,
                                     const struct ulp_run_options *options,
                                     struct ulp_tile_writer **ret_writer) {
    return store && run && tensors && options && ret_writer
               ? tile_writer_new(store, run, tensors, count, options, ret_writer)
               : missing(__func__);
}

void ulp_tile_writer_close(struct ulp_tile_writer *writer) {
    tile_writer_free(writer);
}

enum ulp_status ulp_tile_writer_contribute(struct ulp_tile_writer *writer,
                                           const struct ulp_tensor *tensors, size_t count,
                                           uint64_t step, const void **ret_contribution,
                                           size_t *ret_bytes, struct ulp_run_report *ret_report) {
    const struct given given = {.tensors = tensors, .count = count};
    struct ulp_run_report report = {0};
    enum ulp_status status;

    if (!writer || !tensors || !ret_contribution || !ret_bytes)
        return missing(__func__);
    status = tile_writer_contribute(writer, &given, step, &report);
    if (!status) {
        *ret_contribution = writer->contribution.data;
        *ret_bytes = writer->contribution.used;
    }
    give_report(status, &report, ret_report);
    return status;
}

enum ulp_status ulp_tile_writer_commit(struct ulp_tile_writer *writer,
                                       const void *const *contributions, const size_t *sizes,
                                       size_t count, uint64_t step,
                                       struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status;

    if (!writer || (count && (!contributions || !sizes)))
        return missing(__func__);
    for (size_t i = 0; i < count; i++) {
        if (!contributions[i])
            return missing(__func__);
    }
    status = tile_writer_commit(writer, contributions, sizes, count, step, &report);
    give_report(status, &report, ret_report);
    return status;
}

enum ulp_status ulp_tile_writer_settle(struct ulp_tile_writer *writer,
                                       struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status = writer ? tile_writer_settle(writer, &report) : missing(__func__);

    give_report(status, &report, ret_report);
    return status;
}

/* ---- care ---- */

enum ulp_status ulp_run_tend(struct ulp_store *store, const char *run, const char *directory,
                             const struct ulp_run_options *options,
                             struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status;

    if (!store || !run || !directory)
        return missing(__func__);
    status = tend(store, run, directory, options ? options : &plain_options, &report);
    give_report(status, &report, ret_report);
    return status;
}

enum ulp_status ulp_run_collect(struct ulp_store *store, const char *run,
                                const struct ulp_collect_options *options,
                                struct ulp_collect_report *ret_report) {
    static const struct ulp_collect_options plain;
    struct ulp_collect_report report = {0};
    enum ulp_status status;

    if (!store || !run)
        return missing(__func__);
    status = collect(store, run, options ? options : &plain, &report);
    if (!status && ret_report)
        *ret_report = report;
    return status;
}

enum ulp_status ulp_run_rekey(struct ulp_store *store, const char *run, const struct ulp_key *from,
                              const struct ulp_key *to, struct ulp_run_report *ret_report) {
    const struct addition addition = {.hand_over_from = from, .key = to};
    struct ulp_run_report report = {0};
    struct ulp_follower *follower = NULL;
    struct holder *holder = NULL;
    bool moved = false;
    enum ulp_status status;

    if (!store || !run || !from || !to)
        return missing(__func__);
    status = memory_holder_open(NULL, 0, &plain_options, &holder);
    if (!status)
        status = follower_new(store, run, &plain_options, holder, &follower);
    if (!status)
        status = follower_look(follower, &report);
    if (!status)
        status = commit(follower, &addition, &report, &moved);
    if (!status)
        report.head = record_summary(&follower->holder->seen.record);
    report.fresh = !status;
    follower_free(follower);
    give_report(status, &report, ret_report);
    return status;
}

/* ---- copies ---- */

enum ulp_status ulp_run_mirror(struct ulp_store *from, struct ulp_store *to, const char *run,
                               const struct ulp_run_options *options,
                               struct ulp_run_report *ret_report) {
    struct ulp_run_report report = {0};
    enum ulp_status status;

    if (!from || !to || !run)
        return missing(__func__);
    status = mirror(from, to, run, options ? options : &plain_options, &report);
    give_report(status, &report, ret_report);
    return status;
}

/* ---- checking ---- */

enum ulp_status ulp_run_check(struct ulp_store *store, const char *run, ulp_run_damage damage,
                              void *user, struct ulp_run_health *ret_health) {
    if (!store || !run || !ret_health)
        return missing(__func__);
    return run_check(store, run, damage, user, ret_health);
}
