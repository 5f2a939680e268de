// SPDX-License-Identifier: Apache-2.0
/* What has really happened, seen from above: no actor knows any of this. */
#include "chain/map.h"
#include "digest/root.h"
#include "patch/fit.h"
#include "tests/sim/world.h"

#include <stdlib.h>
#include <string.h>

static void *grown(void *array, size_t count, size_t size, size_t *room) {
    if (count < *room)
        return array;
    *room = *room ? *room * 2 : 16;
    array = realloc(array, *room * size);
    if (!array)
        abort();
    return array;
}

/* ---- states ---- */

static const struct known_state *find_state(const struct truth *truth,
                                            const struct ulp_root *root) {
    for (size_t i = truth->state_count; i--;) {
        if (same_root(&truth->states[i].root, root))
            return &truth->states[i];
    }
    return NULL;
}

void truth_offer(struct world *world, const struct state *state) {
    struct truth *truth = &world->truth;
    struct known_state known = {.bits = malloc(world->shape.bytes)};

    if (!known.bits ||
        state_digest(state->tensors, world->shape.count, NULL, NULL, NULL, &known.root))
        abort();
    if (find_state(truth, &known.root)) {
        free(known.bits);
        return;
    }
    memcpy(known.bits, state->bits, world->shape.bytes);
    truth->states = grown(truth->states, truth->state_count, sizeof known, &truth->state_room);
    truth->states[truth->state_count++] = known;
}

bool truth_is_published(const struct world *world, uint64_t version, const uint8_t *bits) {
    const struct truth *truth = &world->truth;

    for (size_t i = 0; i < truth->record_count; i++) {
        const struct known_state *state = truth->records[i].version == version
                                              ? find_state(truth, &truth->records[i].root)
                                              : NULL;

        if (state && !memcmp(state->bits, bits, world->shape.bytes))
            return true;
    }
    return false;
}

/* ---- records ---- */

static const struct known_record *find_record(const struct truth *truth, uint64_t sequence) {
    for (size_t i = 0; i < truth->record_count; i++) {
        if (truth->records[i].sequence == sequence)
            return &truth->records[i];
    }
    return NULL;
}

/* In a log that can be relied on each record follows the one before it. */
static void check_succession(struct world *world, const struct log_entry *entry) {
    const struct record *record = &entry->record;
    const struct known_record *before = find_record(&world->truth, record->sequence - 1);
    const struct known_record *same = find_record(&world->truth, record->sequence);

    if (same && memcmp(&same->hash, &entry->hash, sizeof entry->hash) != 0)
        violated(world, "I4: record %llu was there twice, with different contents",
                 (unsigned long long)record->sequence);
    if (record->sequence > 1 && !before)
        violated(world, "I4: record %llu was added behind nothing",
                 (unsigned long long)record->sequence);
    if (before && record->version != before->version && record->version != before->version + 1)
        violated(world, "record %llu has version %llu, the one before it %llu",
                 (unsigned long long)record->sequence, (unsigned long long)record->version,
                 (unsigned long long)before->version);
    if (before && record->version == before->version && !same_root(&record->root, &before->root))
        violated(world, "I4: version %llu has two roots", (unsigned long long)record->version);
    if (!find_state(&world->truth, &record->root))
        violated(world, "I1: record %llu publishes a state that nobody has offered",
                 (unsigned long long)record->sequence);
}

/* What may be deleted by somebody who sleeps is never named again. */
static enum ulp_status check_folder(void *user, const struct part *part) {
    struct world *world = user;
    const struct record *before = &world->truth.head.record;

    if (part->folder < before->boundary && !map_names(before, part))
        violated(world, "I6: a part in folder %llu is named behind record %llu, which lets it go",
                 (unsigned long long)part->folder, (unsigned long long)before->sequence);
    return ULP_OK;
}

void truth_record(struct world *world, uint64_t sequence, const uint8_t *bytes, size_t count,
                  bool is_in_log) {
    struct truth *truth = &world->truth;
    struct log_entry entry = {0};
    struct known_record known = {.sequence = sequence};

    if (log_entry_parse(bytes, count, &entry)) {
        if (is_strict(world))
            violated(world, "record %llu cannot be read: %s", (unsigned long long)sequence,
                     ulp_last_error());
        return;
    }
    if (is_strict(world)) {
        check_succession(world, &entry);
        map_each_part(&entry.record, check_folder, world);
    }
    known.version = entry.record.version;
    known.hash = entry.hash;
    known.root = entry.record.root;
    truth->records = grown(truth->records, truth->record_count, sizeof known, &truth->record_room);
    truth->records[truth->record_count++] = known;
    if (is_in_log && sequence >= truth->head.record.sequence) {
        log_entry_release(&truth->head);
        truth->head = entry;
    } else {
        log_entry_release(&entry);
    }
}

void truth_free(struct truth *truth) {
    for (size_t i = 0; i < truth->state_count; i++)
        free(truth->states[i].bits);
    free(truth->states);
    free(truth->records);
    log_entry_release(&truth->head);
    *truth = (struct truth){0};
}

/* ---- I6 ---- */

static enum ulp_status check_part(void *user, const struct part *part) {
    struct world *world = user;
    char key[ULP_KEY_BYTES_MAX + 1];
    uint8_t bytes[16384];
    uint64_t total = 0;
    size_t got = 0;
    struct hash hash;

    part_key(RUN, part, key);
    if (ulp_store_read(world->inner, key, 0, bytes, sizeof bytes, &got, &total))
        violated(world, "I6: record %llu names %s, which is not there",
                 (unsigned long long)world->truth.head.record.sequence, key);
    else if (got != total || total != part->bytes || hash_of(bytes, got, &hash) ||
             memcmp(&hash, &part->hash, sizeof hash) != 0)
        violated(world, "I6: record %llu names %s, which holds something else",
                 (unsigned long long)world->truth.head.record.sequence, key);
    return ULP_OK;
}

/* Whoever starts at an anchor gets to the end. */
static void check_anchors(struct world *world) {
    const struct record *head = &world->truth.head.record;

    for (size_t i = 0; i < head->anchor_count; i++) {
        const struct held held = {.any = true, .version = head->anchors[i].version};
        struct arena arena = {0};
        struct plan plan;

        if (plan_make(head, &held, head->version, &arena, &plan))
            violated(world, "I6: record %llu has an anchor of version %llu that leads nowhere",
                     (unsigned long long)head->sequence, (unsigned long long)held.version);
        arena_release(&arena);
    }
}

void truth_check_parts(struct world *world) {
    if (!is_strict(world) || !world->truth.head.record.sequence)
        return;
    map_each_part(&world->truth.head.record, check_part, world);
    check_anchors(world);
}

struct wanted {
    const char *key;
    bool found;
};

static enum ulp_status is_wanted(void *user, const struct part *part) {
    struct wanted *wanted = user;
    char key[ULP_KEY_BYTES_MAX + 1];

    part_key(RUN, part, key);
    wanted->found = wanted->found || !strcmp(key, wanted->key);
    return ULP_OK;
}

void truth_check_removed(struct world *world, const char *key) {
    struct wanted wanted = {.key = key};

    if (!is_strict(world))
        return;
    if (strstr(key, "/log/"))
        violated(world, "I4: the record %s was removed", key);
    map_each_part(&world->truth.head.record, is_wanted, &wanted);
    if (wanted.found)
        violated(world, "I6: %s was removed, and record %llu names it", key,
                 (unsigned long long)world->truth.head.record.sequence);
}

/* ---- the log stays ---- */

static void check_record(struct world *world, uint64_t sequence, const struct hash *hash) {
    struct log_entry entry = {0};

    if (log_read(world->inner, RUN, sequence, &entry))
        violated(world, "I4: record %llu has disappeared", (unsigned long long)sequence);
    else if (memcmp(&entry.hash, hash, sizeof *hash) != 0)
        violated(world, "I4: record %llu has changed", (unsigned long long)sequence);
    log_entry_release(&entry);
}

void truth_check_end(struct world *world) {
    struct ulp_run_health health = {0};

    if (!is_strict(world) || !world->truth.record_count)
        return;
    for (size_t i = 0; i < world->truth.record_count; i++)
        check_record(world, world->truth.records[i].sequence, &world->truth.records[i].hash);
    truth_check_parts(world);
    if (ulp_run_check(world->inner, RUN, NULL, NULL, &health))
        violated(world, "the run cannot be checked: %s", ulp_last_error());
    else if (health.damaged || !health.reachable)
        violated(world, "I6: in the end %llu objects are damaged, and the newest version %s",
                 (unsigned long long)health.damaged,
                 health.reachable ? "can be reached" : "cannot be reached");
}
