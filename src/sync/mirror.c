// SPDX-License-Identifier: Apache-2.0
/*
 * A mirror holds the same records, byte for byte, so whoever follows it verifies the same chain and
 * the same signatures. All that it has to remember is its own newest record.
 */
#include "sync/mirror.h"

#include "base/clock.h"
#include "base/quote.h"
#include "chain/map.h"
#include "sync/follower.h"
#include "sync/parts.h"

#include <string.h>

struct mirroring {
    struct ulp_store *from, *to;
    const char *run;
    struct log_entry have; /* the newest record of the copy */
    struct log_entry head; /* of the original */
    struct ulp_run_report *report;
};

/* ---- where the two are ---- */

/* The newest record of the copy; none is fine. */
static enum ulp_status look_at_copy(struct mirroring *m) {
    uint64_t last = 0;
    enum ulp_status status = log_last(m->to, m->run, &last);

    if (status == ULP_E_NO_RUN)
        return ULP_OK;
    return status ? status : log_read(m->to, m->run, last, &m->have);
}

/* The newest record of the original, which must descend from what the copy has. */
static enum ulp_status look_at_original(struct mirroring *m,
                                        const struct ulp_run_options *options) {
    const uint64_t started = clock_monotonic_ns();
    struct log_view view = {.store = m->from,
                            .run = m->run,
                            .trust = {options->trusted, options->trusted_count},
                            .max_age_ms = options->max_age_ms};
    enum ulp_status status = m->have.record.sequence
                                 ? log_entry_parse(m->have.bytes, m->have.byte_count, &m->head)
                                 : ULP_OK;

    if (!status)
        status = log_advance(&view, true, &m->head);
    m->report->fetched_records += (unsigned)view.reads;
    m->report->fetched_objects += (unsigned)view.reads;
    m->report->record_bytes += view.bytes;
    work_spent(&m->report->phases.poll_ns, started);
    return status;
}

/* ---- parts ---- */

/* What has the right length was put there by a mirror, which had verified it. */
static bool is_there(const struct mirroring *m, const struct part *part) {
    char key[ULP_KEY_BYTES_MAX + 1];
    uint64_t bytes = 0;

    part_key(m->run, part, key);
    return !ulp_store_stat(m->to, key, &bytes) && bytes == part->bytes;
}

static enum ulp_status copy_part(void *user, const struct part *part) {
    struct mirroring *m = user;
    enum ulp_status status;

    if (is_there(m, part))
        return ULP_OK;
    status = part_relay(m->from, m->to, m->run, part);
    if (!status) {
        m->report->fetched_bytes += part->bytes;
        m->report->fetched_objects++;
        m->report->stored_bytes += part->bytes;
        m->report->stored_objects++;
    }
    return status;
}

/* ---- records ---- */

static enum ulp_status check_follows(const struct mirroring *m, const struct log_entry *entry) {
    const struct log_entry *have = &m->have;

    if (have->record.sequence &&
        memcmp(&entry->record.ancestors[0], &have->hash, sizeof have->hash) != 0)
        return fail(ULP_E_CHAIN, "record %llu of run %s does not follow the one before it",
                    (unsigned long long)entry->record.sequence, quote(m->run).text);
    return ULP_OK;
}

/* Another mirror may have been faster; then it put the same bytes there. */
static enum ulp_status put_record(const struct mirroring *m, const struct log_entry *entry) {
    char key[ULP_KEY_BYTES_MAX + 1];
    struct log_entry there = {0};
    enum ulp_status status;

    record_key(m->run, entry->record.sequence, key);
    status = ulp_store_create(m->to, key, entry->bytes, entry->byte_count);
    if (status != ULP_E_EXISTS)
        return status;
    status = log_read(m->to, m->run, entry->record.sequence, &there);
    if (!status && memcmp(&there.hash, &entry->hash, sizeof entry->hash) != 0)
        status = fail(ULP_E_FORK, "the copy of run %s has another record %llu", quote(m->run).text,
                      (unsigned long long)entry->record.sequence);
    log_entry_release(&there);
    return status;
}

static enum ulp_status copy_record(struct mirroring *m, uint64_t sequence) {
    struct log_entry entry = {0};
    enum ulp_status status = log_read(m->from, m->run, sequence, &entry);

    if (!status)
        status = check_follows(m, &entry);
    if (!status)
        status = put_record(m, &entry);
    if (status) {
        log_entry_release(&entry);
        return status;
    }
    m->report->fetched_records++;
    m->report->fetched_objects++;
    m->report->record_bytes += entry.byte_count;
    m->report->stored_objects++;
    log_entry_release(&m->have);
    m->have = entry;
    return ULP_OK;
}

/* Parts first; and the last record must be the one whose parts they are. */
static enum ulp_status catch_up(struct mirroring *m) {
    enum ulp_status status = map_each_part(&m->head.record, copy_part, m);

    while (!status && m->have.record.sequence < m->head.record.sequence)
        status = copy_record(m, m->have.record.sequence + 1);
    if (!status && memcmp(&m->have.hash, &m->head.hash, sizeof m->head.hash) != 0)
        status = fail(ULP_E_CHAIN, "the log of run %s changed while it was being copied",
                      quote(m->run).text);
    return status;
}

enum ulp_status mirror(struct ulp_store *from, struct ulp_store *to, const char *run,
                       const struct ulp_run_options *options, struct ulp_run_report *report) {
    struct mirroring m = {.from = from, .to = to, .run = run, .report = report};
    enum ulp_status status = look_at_copy(&m);

    if (!status)
        status = look_at_original(&m, options);
    if (!status && m.have.record.sequence != m.head.record.sequence) {
        status = catch_up(&m);
        report->fresh = !status;
    }
    if (!status) {
        report->head = record_summary(&m.head.record);
        report->version = m.head.record.version;
    }
    log_entry_release(&m.have);
    log_entry_release(&m.head);
    return status;
}
