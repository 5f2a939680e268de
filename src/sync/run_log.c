// SPDX-License-Identifier: Apache-2.0
#include "sync/run_log.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"

#include <string.h>

void log_entry_release(struct log_entry *entry) {
    arena_release(&entry->arena);
    *entry = (struct log_entry){0};
}

/* One part of a key, short enough for what is added to it. */
enum ulp_status run_name_check(const char *run) {
    if (strchr(run, '/'))
        return fail(ULP_E_NAME, "%s is not the name of a run: it must not contain '/'",
                    quote(run).text);
    return key_check(run);
}

/* The bytes of a record, of which `data` has room for the most there can be and one more. */
static enum ulp_status read_bytes(struct ulp_store *store, const char *run, uint64_t sequence,
                                  uint8_t *data, size_t *ret_bytes) {
    char key[ULP_KEY_BYTES_MAX + 1];
    uint64_t total = 0;
    enum ulp_status status;

    record_key(run, sequence, key);
    status = ulp_store_read(store, key, 0, data, LIMIT_RECORD_BYTES + 1, ret_bytes, &total);
    if (!status && (total > LIMIT_RECORD_BYTES || *ret_bytes != total))
        status = fail(ULP_E_RECORD, "record %llu of run %s has an impossible length",
                      (unsigned long long)sequence, quote(run).text);
    return status;
}

enum ulp_status log_read(struct ulp_store *store, const char *run, uint64_t sequence,
                         struct log_entry *ret_entry) {
    struct log_entry entry = {0};
    uint8_t *data = NULL;
    size_t bytes = 0;
    enum ulp_status status = mem_resize(&data, LIMIT_RECORD_BYTES + 1, 1);

    if (!status)
        status = read_bytes(store, run, sequence, data, &bytes);
    if (!status)
        status = record_read(data, bytes, &entry.arena, &entry.record);
    if (!status)
        status = hash_of(data, bytes, &entry.hash);
    if (!status && entry.record.sequence != sequence)
        status = fail(ULP_E_CHAIN, "record %llu of run %s says that it is number %llu",
                      (unsigned long long)sequence, quote(run).text,
                      (unsigned long long)entry.record.sequence);
    mem_free(data);
    if (status) {
        log_entry_release(&entry);
        return status;
    }
    *ret_entry = entry;
    return ULP_OK;
}

/* ---- the head ---- */

static enum ulp_status is_there(struct ulp_store *store, const char *run, uint64_t sequence,
                                bool *ret_there) {
    char key[ULP_KEY_BYTES_MAX + 1];
    uint64_t bytes;
    enum ulp_status status;

    record_key(run, sequence, key);
    status = ulp_store_stat(store, key, &bytes);
    *ret_there = !status;
    return status == ULP_E_NOT_FOUND ? ULP_OK : status;
}

/* Records are never deleted and have no gaps: the last one is found by leaping ahead, twice as far
 * each time, and then by halving. `from` is there. */
static enum ulp_status last_from(struct ulp_store *store, const char *run, uint64_t from,
                                 uint64_t *ret_last) {
    uint64_t last = from, beyond = 0;
    enum ulp_status status = ULP_OK;

    for (uint64_t leap = 1; !status && !beyond; leap *= 2) {
        bool there = false;

        status = is_there(store, run, from + leap, &there);
        if (there)
            last = from + leap;
        else
            beyond = from + leap;
    }
    while (!status && beyond - last > 1) {
        uint64_t middle = last + (beyond - last) / 2;
        bool there = false;

        status = is_there(store, run, middle, &there);
        if (there)
            last = middle;
        else
            beyond = middle;
    }
    if (!status)
        *ret_last = last;
    return status;
}

static enum ulp_status check_seen(struct ulp_store *store, const char *run,
                                  const struct log_mark *seen) {
    struct log_entry entry = {0};
    enum ulp_status status = log_read(store, run, seen->sequence, &entry);

    if (status == ULP_E_NOT_FOUND)
        return fail(ULP_E_ROLLBACK,
                    "run %s had %llu records when it was last seen, and has fewer now",
                    quote(run).text, (unsigned long long)seen->sequence);
    if (!status && memcmp(&entry.hash, &seen->hash, sizeof entry.hash) != 0)
        status = fail(ULP_E_CHAIN, "record %llu of run %s is not the one that was there before",
                      (unsigned long long)seen->sequence, quote(run).text);
    log_entry_release(&entry);
    return status;
}

/* A record names the one before it. */
static enum ulp_status check_link(struct ulp_store *store, const char *run,
                                  const struct log_entry *head) {
    struct log_entry before = {0};
    enum ulp_status status;

    if (head->record.sequence == 1)
        return ULP_OK;
    status = log_read(store, run, head->record.sequence - 1, &before);
    if (!status && (memcmp(&before.hash, &head->record.before, sizeof before.hash) != 0 ||
                    memcmp(before.record.run, head->record.run, RUN_ID_BYTES) != 0))
        status = fail(ULP_E_CHAIN, "record %llu of run %s does not follow the one before it",
                      (unsigned long long)head->record.sequence, quote(run).text);
    log_entry_release(&before);
    return status;
}

enum ulp_status log_last(struct ulp_store *store, const char *run, uint64_t *ret_sequence) {
    bool there = false;
    enum ulp_status status = run_name_check(run);

    if (!status)
        status = is_there(store, run, 1, &there);
    if (!status && !there)
        status = fail(ULP_E_NO_RUN, "there is no run %s in %s", quote(run).text,
                      quote(ulp_store_name(store)).text);
    return status ? status : last_from(store, run, 1, ret_sequence);
}

enum ulp_status log_head(struct ulp_store *store, const char *run, const struct log_mark *seen,
                         struct log_entry *ret_head) {
    struct log_entry head = {0};
    uint64_t last = 0;
    enum ulp_status status = run_name_check(run);

    if (!status && seen)
        status = check_seen(store, run, seen);
    if (!status)
        status = seen ? last_from(store, run, seen->sequence, &last) : log_last(store, run, &last);
    if (!status)
        status = log_read(store, run, last, &head);
    if (!status)
        status = check_link(store, run, &head);
    if (status) {
        log_entry_release(&head);
        return status;
    }
    *ret_head = head;
    return ULP_OK;
}

/* ---- adding ---- */

/* Who was first decides. An answer that got lost looks like somebody else's record, but it is ours.
 * */
static enum ulp_status was_it_ours(struct ulp_store *store, const char *run, uint64_t sequence,
                                   const struct buffer *ours) {
    uint8_t *theirs = NULL;
    size_t bytes = 0;
    enum ulp_status status = mem_resize(&theirs, LIMIT_RECORD_BYTES + 1, 1);

    if (!status)
        status = read_bytes(store, run, sequence, theirs, &bytes);
    if (!status && (bytes != ours->used || memcmp(theirs, ours->data, bytes) != 0))
        status = fail(ULP_E_FENCED, "record %llu of run %s was written by another publisher",
                      (unsigned long long)sequence, quote(run).text);
    mem_free(theirs);
    return status;
}

/* What nobody could read would block the log for ever. */
static enum ulp_status check_readable(const struct buffer *bytes) {
    struct arena arena = {0};
    struct record record;
    enum ulp_status status = record_read(bytes->data, bytes->used, &arena, &record);

    arena_release(&arena);
    return status;
}

enum ulp_status log_append(struct ulp_store *store, const char *run, const struct record *record,
                           struct log_mark *ret_mark) {
    struct buffer bytes = BUFFER(LIMIT_RECORD_BYTES);
    char key[ULP_KEY_BYTES_MAX + 1];
    struct log_mark mark = {.sequence = record->sequence};
    enum ulp_status status = record_write(record, &bytes);

    if (!status)
        status = check_readable(&bytes);
    if (!status)
        status = hash_of(bytes.data, bytes.used, &mark.hash);
    if (!status) {
        record_key(run, record->sequence, key);
        status = ulp_store_create(store, key, bytes.data, bytes.used);
        if (status == ULP_E_EXISTS)
            status = was_it_ours(store, run, record->sequence, &bytes);
    }
    buffer_release(&bytes);
    if (!status)
        *ret_mark = mark;
    return status;
}
