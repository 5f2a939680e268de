// SPDX-License-Identifier: Apache-2.0
#include "sync/check.h"

#include "base/quote.h"
#include "chain/plan.h"
#include "sync/parts.h"
#include "sync/run_log.h"

#include <string.h>

struct checking {
    struct ulp_store *store;
    const char *run;
    ulp_run_damage damage;
    void *user;
    struct ulp_run_health health;
};

/* Failures of the store or of this machine end the check; what is wrong with an object does not. */
static bool is_damage(enum ulp_status status) {
    return status == ULP_E_PART || status == ULP_E_PART_MISSING || status == ULP_E_CHECKSUM ||
           status == ULP_E_RECORD || status == ULP_E_CHAIN || status == ULP_E_OTHER_RUN ||
           status == ULP_E_JUMP || status == ULP_E_SIGNATURE || status == ULP_E_UNSIGNED ||
           status == ULP_E_VERSION || status == ULP_E_LIMIT || status == ULP_E_FILE_KIND;
}

static enum ulp_status note(struct checking *c, const char *key, enum ulp_status status) {
    if (!is_damage(status))
        return status;
    c->health.damaged++;
    if (c->damage)
        c->damage(c->user, key, status, ulp_last_error());
    return ULP_OK;
}

/* ---- the log ---- */

/* Whether a record follows the one before it, as far as that one could be read: it names the same
 * ancestors, and the key is the same or was handed on. */
static enum ulp_status check_link(const struct log_entry *before, const struct log_entry *entry) {
    const struct record *older = &before->record, *newer = &entry->record;
    struct record expected;

    if (!older->sequence)
        return trust_check(&(struct trust){0}, NULL, newer, entry->bytes, entry->byte_count);
    record_succeed(older, &before->hash, &expected);
    if (memcmp(older->run, newer->run, RUN_ID_BYTES) != 0)
        return fail(ULP_E_OTHER_RUN, "the record belongs to another run than the one before it");
    if (memcmp(expected.ancestors, newer->ancestors, sizeof expected.ancestors) != 0)
        return fail(ULP_E_CHAIN, "the record does not follow the one before it");
    if (newer->version < older->version || newer->epoch < older->epoch ||
        newer->boundary < older->boundary)
        return fail(ULP_E_CHAIN, "the record goes back behind the one before it");
    if (newer->version > older->version + 1 || newer->epoch > older->epoch + 1)
        return fail(ULP_E_JUMP, "the record leaves out a version");
    return trust_check(&(struct trust){0}, older, newer, entry->bytes, entry->byte_count);
}

/* Keeps the last record that could be read in `last`. */
static enum ulp_status check_record(struct checking *c, uint64_t sequence, struct log_entry *last) {
    struct log_entry entry = {0};
    char key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status = log_read(c->store, c->run, sequence, &entry);

    record_key(c->run, sequence, key);
    if (status == ULP_E_NOT_FOUND)
        status = fail(ULP_E_CHAIN, "the record is missing, though later ones are there");
    if (!status)
        status = check_link(last, &entry);
    c->health.records++;
    if (entry.record.sequence) {
        log_entry_release(last);
        *last = entry;
    } else {
        log_entry_release(last); /* nothing is known of it: the next cannot be compared */
    }
    return status ? note(c, key, status) : ULP_OK;
}

/* ---- what the newest record names ---- */

/* Clears *whole if the part is not. */
static enum ulp_status check_part(struct checking *c, const struct part *part, bool *whole) {
    char key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status = part_verify(c->store, c->run, part);

    part_key(c->run, part, key);
    c->health.parts++;
    c->health.bytes += part->bytes;
    if (!status)
        return ULP_OK;
    *whole = false;
    return note(c, key, status);
}

static enum ulp_status check_anchor(struct checking *c, const struct anchor *anchor, bool *whole) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < anchor->file_count; i++)
        status = check_part(c, &anchor->files[i].part, whole);
    return status;
}

static enum ulp_status check_way(struct checking *c, const struct way *way, bool *whole) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < way->patch_count; i++) {
        for (size_t k = 0; !status && k < way->patches[i].part_count; k++)
            status = check_part(c, &way->patches[i].parts[k], whole);
    }
    return status;
}

/* Copies the map without what is damaged, and asks for a way through it. */
static enum ulp_status check_map(struct checking *c, const struct record *record) {
    struct arena arena = {0};
    struct record sound = *record;
    struct anchor *anchors = NULL;
    struct way *ways = NULL;
    enum ulp_status status = arena_zeroed(&arena, record->anchor_count, sizeof *anchors, &anchors);

    if (!status)
        status = arena_zeroed(&arena, record->way_count, sizeof *ways, &ways);
    sound.anchors = anchors;
    sound.ways = ways;
    sound.anchor_count = sound.way_count = 0;
    for (size_t i = 0; !status && i < record->anchor_count; i++) {
        bool whole = true;

        status = check_anchor(c, &record->anchors[i], &whole);
        if (whole)
            anchors[sound.anchor_count++] = record->anchors[i];
    }
    for (size_t i = 0; !status && i < record->way_count; i++) {
        bool whole = true;

        status = check_way(c, &record->ways[i], &whole);
        if (whole)
            ways[sound.way_count++] = record->ways[i];
    }
    if (!status)
        c->health.reachable = !plan_check(&sound);
    arena_release(&arena);
    return status;
}

/* So many missing records are looked for one by one. */
#define GAP_MAX 65536u

/* A record that is missing hides those behind it from who looks for the newest; a listing shows
 * them. */
static enum ulp_status find_last(const struct checking *c, uint64_t *ret_last) {
    uint64_t found;
    enum ulp_status status = log_last(c->store, c->run, ret_last);

    if (status && status != ULP_E_NO_RUN)
        return status;
    found = *ret_last;
    status = log_listed(c->store, c->run, 0, ret_last);
    if (*ret_last > found + GAP_MAX)
        *ret_last = found + GAP_MAX; /* a stray object is not a log */
    return status || *ret_last ? status
                               : fail(ULP_E_NO_RUN, "there is no run %s in %s", quote(c->run).text,
                                      quote(ulp_store_name(c->store)).text);
}

enum ulp_status run_check(struct ulp_store *store, const char *run, ulp_run_damage damage,
                          void *user, struct ulp_run_health *ret_health) {
    struct checking c = {.store = store, .run = run, .damage = damage, .user = user};
    struct log_entry last = {0};
    uint64_t head = 0;
    enum ulp_status status = find_last(&c, &head);

    for (uint64_t i = 1; !status && i <= head; i++)
        status = check_record(&c, i, &last);
    if (!status && last.record.sequence == head)
        status = check_map(&c, &last.record);
    log_entry_release(&last);
    if (!status)
        *ret_health = c.health;
    return status;
}
