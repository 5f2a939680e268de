// SPDX-License-Identifier: Apache-2.0
/*
 * A record of a run's log from any bytes, with the hash behind them that they need. What is
 * accepted is in order, and written again it is the same to the byte. A way through its map, if
 * there is one, leads to its version.
 */
#include "base/limits.h"
#include "chain/plan.h"
#include "fuzz/target.h"

#include <string.h>

static bool is_refusal(enum ulp_status status) {
    return status == ULP_E_RECORD || status == ULP_E_VERSION || status == ULP_E_LIMIT ||
           status == ULP_E_CHECKSUM;
}

static void check_order(const struct record *record) {
    for (size_t i = 0; i < record->anchor_count; i++) {
        MUST(record->anchors[i].version <= record->version);
        MUST(!i || record->anchors[i - 1].version < record->anchors[i].version);
    }
    for (size_t i = 0; i < record->way_count; i++) {
        const struct way *way = &record->ways[i];

        MUST(way->from < way->to && way->to <= record->version && way->part_count);
        MUST(!i || record->ways[i - 1].to <= way->to);
    }
}

static void check_plan(const struct record *record, struct arena *arena) {
    struct plan plan = {0};
    uint64_t at;

    if (plan_make(record, &(struct held){0}, record->version, arena, &plan))
        return;
    MUST(plan.anchor);
    at = plan.anchor->version;
    for (size_t i = 0; i < plan.way_count; i++) {
        MUST(plan.ways[i]->from == at);
        at = plan.ways[i]->to;
    }
    MUST(at == record->version);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buffer bytes = BUFFER(LIMIT_RECORD_BYTES), again = BUFFER(LIMIT_RECORD_BYTES);
    struct arena arena = {0};
    struct record record;
    struct hash hash;
    enum ulp_status status;

    if (size > LIMIT_RECORD_BYTES / 2)
        return 0;
    MUST(!hash_of(data, size, &hash));
    MUST(!buffer_append(&bytes, data, size) && !buffer_append(&bytes, &hash, sizeof hash));
    status = record_read(bytes.data, bytes.used, &arena, &record);
    MUST(!status || is_refusal(status));
    if (!status) {
        check_order(&record);
        check_plan(&record, &arena);
        MUST(!record_write(&record, &again));
        MUST(again.used == bytes.used && !memcmp(again.data, bytes.data, bytes.used));
    }
    arena_release(&arena);
    buffer_release(&bytes);
    buffer_release(&again);
    return 0;
}
