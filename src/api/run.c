// SPDX-License-Identifier: Apache-2.0
/* Public entry points on runs. */
#include "base/status.h"
#include "sync/check.h"
#include "sync/follow.h"
#include "sync/publish.h"

#include <ulpsync/run.h>

static const struct ulp_run_options plain_options;

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_run_head(struct ulp_store *store, const char *run,
                             struct ulp_run_record *ret_record) {
    struct log_entry head = {0};
    enum ulp_status status;

    if (!store || !run || !ret_record)
        return missing(__func__);
    status = log_head(store, run, NULL, &head);
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

enum ulp_status ulp_publish(struct ulp_store *store, const char *run, const char *directory,
                            const char *path, uint64_t step, const struct ulp_run_options *options,
                            struct ulp_run_report *ret_report) {
    struct ulp_run_options newest = options ? *options : plain_options;
    struct replica replica = {0};
    struct ulp_run_report report = {0};
    enum ulp_status status;

    if (!store || !run || !directory || !path)
        return missing(__func__);
    newest.stop_at_version = 0; /* only the newest can be built on */
    status = replica_open(directory, &replica);
    if (!status)
        status = publish(store, run, &replica, path, step, &newest, &report);
    replica_release(&replica);
    if (!status && ret_report)
        *ret_report = report;
    return status;
}

enum ulp_status ulp_follow(struct ulp_store *store, const char *run, const char *directory,
                           const struct ulp_run_options *options,
                           struct ulp_run_report *ret_report) {
    struct replica replica = {0};
    struct ulp_run_report report = {0};
    struct log_entry head = {0};
    enum ulp_status status;

    if (!store || !run || !directory)
        return missing(__func__);
    status = replica_open(directory, &replica);
    if (!status)
        status = follow(store, run, &replica, options ? options : &plain_options, &head, &report);
    log_entry_release(&head);
    replica_release(&replica);
    if (!status && ret_report)
        *ret_report = report;
    return status;
}

enum ulp_status ulp_run_check(struct ulp_store *store, const char *run, ulp_run_damage damage,
                              void *user, struct ulp_run_health *ret_health) {
    if (!store || !run || !ret_health)
        return missing(__func__);
    return run_check(store, run, damage, user, ret_health);
}
