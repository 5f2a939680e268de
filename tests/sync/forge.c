// SPDX-License-Identifier: Apache-2.0
#include "tests/sync/forge.h"

#include "base/limits.h"
#include "chain/map.h"

static void put(struct ulp_store *store, const struct record *record, const struct ulp_key *key,
                uint64_t sequence) {
    struct buffer bytes = BUFFER(LIMIT_RECORD_BYTES);
    char name[ULP_KEY_BYTES_MAX + 1];

    assert_ok(record_write(record, key, &bytes));
    record_key(RUN, sequence, name);
    assert_ok(ulp_store_put(store, name, bytes.data, bytes.used));
    buffer_release(&bytes);
}

void forge(struct ulp_store *store, uint64_t sequence, const struct ulp_key *key,
           record_change change) {
    struct log_entry entry = {0};

    assert_ok(log_read(store, RUN, sequence, &entry));
    change(&entry.record);
    put(store, &entry.record, key, sequence);
    log_entry_release(&entry);
}

struct log_entry newest_record(struct ulp_store *store) {
    struct log_entry entry = {0};
    uint64_t last = 0;

    assert_ok(log_last(store, RUN, &last));
    assert_ok(log_read(store, RUN, last, &entry));
    return entry;
}

void forge_next(struct ulp_store *store, const struct ulp_key *key, record_change change) {
    struct log_entry entry = newest_record(store);
    struct record record;

    record_succeed(&entry.record, &entry.hash, &record);
    change(&record);
    put(store, &record, key, entry.record.sequence + 1);
    log_entry_release(&entry);
}

void unchanged(struct record *record) {
    (void)record;
}

void announce(struct record *record) {
    record->boundary = record->sequence;
}

/* ULP_E_EXISTS once a part has this key. */
static enum ulp_status has_key(void *user, const struct part *part) {
    char key[ULP_KEY_BYTES_MAX + 1];

    part_key(RUN, part, key);
    return strcmp(key, user) ? ULP_OK : ULP_E_EXISTS;
}

void remove_useless_parts(struct ulp_store *store) {
    struct log_entry entry = newest_record(store);
    struct objects objects = objects_of(store);

    for (size_t i = 0; i < objects.count; i++) {
        if (strstr(objects.list[i].key, RUN "/part/") &&
            map_each_part(&entry.record, has_key, objects.list[i].key) == ULP_OK)
            assert_ok(ulp_store_remove(store, objects.list[i].key));
    }
    objects_free(&objects);
    log_entry_release(&entry);
}
