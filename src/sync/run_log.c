// SPDX-License-Identifier: Apache-2.0
#include "sync/run_log.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "chain/plan.h"

#include <stdlib.h>
#include <string.h>

void log_entry_release(struct log_entry *entry) {
    arena_release(&entry->arena);
    *entry = (struct log_entry){0};
}

static void replace(struct log_entry *entry, struct log_entry *by) {
    log_entry_release(entry);
    *entry = *by;
    *by = (struct log_entry){0};
}

enum ulp_status log_entry_parse(const uint8_t *bytes, size_t count, struct log_entry *ret_entry) {
    struct log_entry entry = {.byte_count = count};
    uint8_t *copy = NULL;
    enum ulp_status status = arena_zeroed(&entry.arena, count, 1, &copy);

    if (!status) {
        memcpy(copy, bytes, count);
        entry.bytes = copy;
        status = record_read(copy, count, &entry.arena, &entry.record);
    }
    if (!status)
        status = hash_of(copy, count, &entry.hash);
    if (status)
        log_entry_release(&entry);
    else
        *ret_entry = entry;
    return status;
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
        status = log_entry_parse(data, bytes, &entry);
    if (!status && entry.record.sequence != sequence)
        status = fail(ULP_E_CHAIN, "record %llu of run %s says that it is number %llu",
                      (unsigned long long)sequence, quote(run).text,
                      (unsigned long long)entry.record.sequence);
    mem_free(data);
    if (status)
        log_entry_release(&entry);
    else
        *ret_entry = entry;
    return status;
}

static enum ulp_status view_read(struct log_view *view, uint64_t sequence,
                                 struct log_entry *ret_entry) {
    enum ulp_status status = log_read(view->store, view->run, sequence, ret_entry);

    if (!status) {
        view->reads++;
        view->bytes += ret_entry->byte_count;
    }
    return status;
}

/* ---- where it ends ---- */

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

/* More records than any run will ever have: some web servers answer to every name. */
#define SEQUENCES_MAX (UINT64_C(1) << 40)

/* Records are never deleted and have no gaps: the last one is found by leaping ahead, twice as far
 * each time, and then by halving. `from` is there. */
static enum ulp_status last_from(struct ulp_store *store, const char *run, uint64_t from,
                                 uint64_t *ret_last) {
    uint64_t last = from, beyond = 0;
    enum ulp_status status = ULP_OK;

    for (uint64_t leap = 1; !status && !beyond; leap *= 2) {
        bool there = false;

        if (leap > SEQUENCES_MAX)
            return fail(ULP_E_CHAIN, "%s says of every record of run %s that it is there",
                        quote(ulp_store_name(store)).text, quote(run).text);
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

/* ---- whether it holds together ---- */

/* What a record says of a later one that descends from it, or the other way around. */
static enum ulp_status check_growth(const struct record *older, const struct record *newer) {
    const uint64_t records = newer->sequence - older->sequence;

    if (memcmp(older->run, newer->run, RUN_ID_BYTES) != 0)
        return fail(ULP_E_OTHER_RUN, "records %llu and %llu belong to different runs",
                    (unsigned long long)older->sequence, (unsigned long long)newer->sequence);
    if (newer->version < older->version || newer->epoch < older->epoch ||
        newer->boundary < older->boundary)
        return fail(ULP_E_CHAIN, "record %llu goes back behind record %llu",
                    (unsigned long long)newer->sequence, (unsigned long long)older->sequence);
    if (newer->version - older->version > records || newer->epoch - older->epoch > records)
        return fail(ULP_E_JUMP, "record %llu leaves out versions since record %llu",
                    (unsigned long long)newer->sequence, (unsigned long long)older->sequence);
    return ULP_OK;
}

/* The record that `from` names which lies furthest back, but not behind `goal`. */
static uint64_t next_hop(const struct record *from, uint64_t goal, struct hash *ret_hash) {
    uint64_t ancestors[ANCESTORS_MAX];
    size_t count = ancestors_of(from->sequence, ancestors), at = 0;

    while (at + 1 < count && ancestors[at + 1] >= goal)
        at++;
    *ret_hash = from->ancestors[at];
    return ancestors[at];
}

static enum ulp_status forked(const struct log_view *view, uint64_t sequence) {
    return fail(ULP_E_FORK, "record %llu of run %s is not the one that was there before",
                (unsigned long long)sequence, quote(view->run).text);
}

/* The record that another one names. */
static enum ulp_status read_ancestor(struct log_view *view, const struct record *newer,
                                     uint64_t sequence, const struct hash *hash,
                                     struct log_entry *ret_entry) {
    enum ulp_status status = view_read(view, sequence, ret_entry);

    if (status == ULP_E_NOT_FOUND)
        status = fail(ULP_E_CHAIN, "record %llu of run %s is missing, though later ones are there",
                      (unsigned long long)sequence, quote(view->run).text);
    if (!status && memcmp(&ret_entry->hash, hash, sizeof *hash) != 0)
        status = fail(ULP_E_CHAIN, "record %llu of run %s does not descend from record %llu",
                      (unsigned long long)newer->sequence, quote(view->run).text,
                      (unsigned long long)sequence);
    return status ? status : check_growth(&ret_entry->record, newer);
}

/* From `head` back to `goal`, which is read unless its hash is known: in some 2 log2 n steps. The
 * last record that was read goes to *ret_last, unless that is NULL. */
static enum ulp_status walk_back(struct log_view *view, const struct log_entry *head, uint64_t goal,
                                 const struct hash *known, struct log_entry *ret_last) {
    struct log_entry at = {0};
    const struct record *record = &head->record;
    enum ulp_status status = ULP_OK;

    while (!status && record->sequence > goal) {
        struct log_entry next = {0};
        struct hash hash;
        uint64_t sequence = next_hop(record, goal, &hash);

        if (sequence == goal && known) {
            status = memcmp(&hash, known, sizeof hash) ? forked(view, goal) : ULP_OK;
            break;
        }
        status = read_ancestor(view, record, sequence, &hash, &next);
        replace(&at, &next);
        record = &at.record;
    }
    if (!status && ret_last)
        replace(ret_last, &at);
    log_entry_release(&at);
    return status;
}

static enum ulp_status check_descent(struct log_view *view, const struct log_entry *head,
                                     uint64_t goal, const struct hash *known) {
    return walk_back(view, head, goal, known, NULL);
}

enum ulp_status log_ancestor(struct log_view *view, const struct log_entry *head, uint64_t sequence,
                             struct log_entry *ret_entry) {
    if (!sequence || sequence > head->record.sequence)
        return fail(ULP_E_CHAIN, "record %llu of run %s names record %llu as one before it",
                    (unsigned long long)head->record.sequence, quote(view->run).text,
                    (unsigned long long)sequence);
    if (sequence == head->record.sequence)
        return log_entry_parse(head->bytes, head->byte_count, ret_entry);
    return walk_back(view, head, sequence, NULL, ret_entry);
}

/* A store that listed more records than can be found by leaping has lost one in between. */
static int note_sequence(void *user, const char *key, uint64_t bytes) {
    const char *digits = strrchr(key, '/') + 1;
    uint64_t *highest = user, sequence;

    (void)bytes;
    if (strlen(digits) != 20 || strspn(digits, "0123456789") != 20)
        return 0;
    sequence = strtoull(digits, NULL, 10);
    if (sequence <= SEQUENCES_MAX && sequence > *highest)
        *highest = sequence;
    return 0;
}

enum ulp_status log_listed(struct ulp_store *store, const char *run, uint64_t after,
                           uint64_t *highest) {
    char last[ULP_KEY_BYTES_MAX + 1], prefix[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status;

    record_key(run, after, last);
    memcpy(prefix, last, sizeof prefix);
    strrchr(prefix, '/')[1] = 0;
    status = ulp_store_list(store, prefix, after ? last : "", note_sequence, highest);
    return status == ULP_E_UNSUPPORTED ? ULP_OK : status;
}

static enum ulp_status check_nothing_behind(const struct log_view *view, uint64_t last) {
    uint64_t listed = 0, again = last;
    enum ulp_status status = log_listed(view->store, view->run, last, &listed);

    if (!status && listed > last) /* it may have grown meanwhile */
        status = last_from(view->store, view->run, last, &again);
    if (!status && listed > again)
        status = fail(ULP_E_CHAIN, "record %llu of run %s is missing, though later ones are there",
                      (unsigned long long)again + 1, quote(view->run).text);
    return status;
}

static uint64_t age_ms(const struct record *record) {
    const uint64_t now = clock_wall_ns() / 1000000;

    return now > record->time_ms ? now - record->time_ms : 0;
}

static bool is_too_old(const struct log_view *view, const struct record *record) {
    return view->max_age_ms && age_ms(record) > view->max_age_ms;
}

static enum ulp_status check_age(const struct log_view *view, const struct record *record) {
    if (!is_too_old(view, record))
        return ULP_OK;
    return fail(ULP_E_FROZEN,
                "the newest record of run %s is %llu seconds old; at most %llu are allowed",
                quote(view->run).text, (unsigned long long)age_ms(record) / 1000,
                (unsigned long long)view->max_age_ms / 1000);
}

/* ---- going on ---- */

/* For who comes without knowing anything: the whole line of ancestors down to the first record. */
static enum ulp_status enter(struct log_view *view, struct log_entry *head) {
    uint64_t last = 0;
    enum ulp_status status = log_last(view->store, view->run, &last);

    if (!status)
        status = check_nothing_behind(view, last);
    if (!status)
        status = view_read(view, last, head);
    if (!status)
        status = trust_check(&view->trust, NULL, &head->record, head->bytes, head->byte_count);
    return status ? status : check_descent(view, head, 1, NULL);
}

/* The record that was seen must still be there. */
static enum ulp_status look_again(struct log_view *view, const struct log_entry *seen) {
    struct log_entry entry = {0};
    enum ulp_status status = view_read(view, seen->record.sequence, &entry);

    if (status == ULP_E_NOT_FOUND)
        status =
            fail(ULP_E_ROLLBACK, "run %s had %llu records when it was last seen, and has fewer now",
                 quote(view->run).text, (unsigned long long)seen->record.sequence);
    if (!status && memcmp(entry.record.run, seen->record.run, RUN_ID_BYTES) != 0)
        status = fail(ULP_E_OTHER_RUN, "run %s is another one than the one that was followed",
                      quote(view->run).text);
    if (!status && memcmp(&entry.hash, &seen->hash, sizeof entry.hash) != 0)
        status = forked(view, seen->record.sequence);
    if (status == ULP_E_FORK && view->ret_culprit)
        replace(view->ret_culprit, &entry);
    log_entry_release(&entry);
    return status;
}

/* Whether `next` may follow what was seen. */
static enum ulp_status check_next(struct log_view *view, const struct log_entry *seen,
                                  const struct log_entry *next) {
    enum ulp_status status = check_growth(&seen->record, &next->record);

    if (!status)
        status =
            trust_check(&view->trust, &seen->record, &next->record, next->bytes, next->byte_count);
    return status ? status : check_descent(view, next, seen->record.sequence, &seen->hash);
}

/* Reads the record right behind, and the last one if there are more: over a far link that is another
 * round trip, which who looks often can do without. */
static enum ulp_status read_newest(struct log_view *view, uint64_t seen, struct log_entry *next) {
    uint64_t last = seen + 1;
    enum ulp_status status = view_read(view, last, next);

    if (!status && (!view->near || is_too_old(view, &next->record)))
        status = last_from(view->store, view->run, seen + 1, &last);
    if (!status && last != seen + 1) {
        log_entry_release(next);
        status = view_read(view, last, next);
    }
    return status;
}

/* Takes over `next`, also when it fails. */
static enum ulp_status accept(struct log_view *view, enum ulp_status status,
                              struct log_entry *entry, struct log_entry *next) {
    if (!status)
        status = check_next(view, entry, next);
    if (!status)
        replace(entry, next);
    else if (status == ULP_E_FORK && view->ret_culprit)
        replace(view->ret_culprit, next);
    log_entry_release(next);
    return status == ULP_E_NOT_FOUND ? ULP_OK : status;
}

enum ulp_status log_advance_one(struct log_view *view, struct log_entry *entry) {
    struct log_entry next = {0};

    return accept(view, view_read(view, entry->record.sequence + 1, &next), entry, &next);
}

enum ulp_status log_advance(struct log_view *view, bool anew, struct log_entry *entry) {
    struct log_entry next = {0};
    enum ulp_status status = run_name_check(view->run);

    if (!status && !entry->record.sequence) {
        status = enter(view, &next);
        if (!status)
            replace(entry, &next);
        log_entry_release(&next);
    } else if (!status) {
        if (anew)
            status = look_again(view, entry);
        if (!status)
            status = accept(view, read_newest(view, entry->record.sequence, &next), entry, &next);
    }
    return status ? status : check_age(view, &entry->record);
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

/* So often a record is offered to a store that fails. */
#define TRIES 3u

static enum ulp_status create(struct ulp_store *store, const char *run, uint64_t sequence,
                              const struct buffer *bytes) {
    char key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status = ULP_E_IO;

    record_key(run, sequence, key);
    for (unsigned i = 0; i < TRIES && status == ULP_E_IO; i++) {
        status = ulp_store_create(store, key, bytes->data, bytes->used);
        if (status == ULP_E_EXISTS)
            status = was_it_ours(store, run, sequence, bytes);
    }
    return status;
}

/* What nobody could read, or get anywhere with, would block the log for ever. */
enum ulp_status log_append(struct ulp_store *store, const char *run, const struct record *record,
                           const struct ulp_key *key, struct log_entry *ret_entry) {
    struct buffer bytes = BUFFER(LIMIT_RECORD_BYTES);
    struct log_entry entry = {0};
    enum ulp_status status = plan_check(record);

    if (!status)
        status = record_write(record, key, &bytes);
    if (!status)
        status = log_entry_parse(bytes.data, bytes.used, &entry);
    if (!status)
        status = create(store, run, record->sequence, &bytes);
    buffer_release(&bytes);
    if (status)
        log_entry_release(&entry);
    else
        *ret_entry = entry;
    return status;
}
