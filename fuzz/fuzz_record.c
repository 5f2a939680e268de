// SPDX-License-Identifier: Apache-2.0
/*
 * A record of a run's log from any bytes, with the hash behind them that they need. What is
 * accepted is in order, and written again it is the same to the byte. A way through its map, if
 * there is one, leads to its version. Whoever trusts nobody, or one key, gets an answer.
 */
#include "base/limits.h"
#include "chain/map.h"
#include "chain/plan.h"
#include "chain/trust.h"
#include "fuzz/target.h"

#include <string.h>

static bool is_refusal(enum ulp_status status) {
    return status == ULP_E_RECORD || status == ULP_E_VERSION || status == ULP_E_LIMIT ||
           status == ULP_E_CHECKSUM || status == ULP_E_JUMP || status == ULP_E_SIGNATURE;
}

static void check_numbers(const struct record *record) {
    MUST(record->sequence && record->version < record->sequence);
    MUST(record->epoch < record->sequence && record->boundary <= record->sequence);
    for (size_t i = 0; i < record->handover_count; i++) {
        MUST(record->handovers[i].sequence <= record->sequence);
        MUST(!i || record->handovers[i - 1].sequence < record->handovers[i].sequence);
    }
    MUST(!record->handover_count || record->is_signed);
}

static void check_order(const struct record *record) {
    for (size_t i = 0; i < record->anchor_count; i++) {
        MUST(record->anchors[i].version <= record->version);
        MUST(!i || record->anchors[i - 1].version < record->anchors[i].version);
    }
    for (size_t i = 0; i < record->way_count; i++) {
        const struct way *way = &record->ways[i];

        MUST(way->from < way->to && way->to <= record->version && way->patch_count);
        MUST(way->sequence <= record->sequence);
        MUST(!i || record->ways[i - 1].to <= way->to);
        MUST(map_way(record, way->from, way->to) == way); /* none twice */
    }
}

static enum ulp_status check_part(void *user, const struct part *part) {
    MUST(map_names(user, part));
    return ULP_OK;
}

static void check_plan(const struct record *record, struct arena *arena) {
    struct plan plan = {0};
    uint64_t at;

    if (plan_make(record, &(struct held){0}, record->version, arena, &plan))
        return;
    MUST(!plan_check(record));
    MUST(plan.anchor && !*plan.anchor->reference);
    at = plan.anchor->version;
    for (size_t i = 0; i < plan.way_count; i++) {
        MUST(plan.ways[i]->from == at);
        at = plan.ways[i]->to;
    }
    MUST(at == record->version);
}

/* Nothing here was signed by anybody, unless it stands in the corpus. */
static void check_trust(const struct record *record, const struct buffer *bytes) {
    static const struct ulp_public_key stranger = {{9, 9, 9}};
    const struct trust one = {&stranger, 1};
    enum ulp_status status =
        trust_check(&(struct trust){0}, NULL, record, bytes->data, bytes->used);

    MUST(record->is_signed ? !status || status == ULP_E_SIGNATURE : !status);
    status = trust_check(&one, NULL, record, bytes->data, bytes->used);
    MUST(status == (record->is_signed ? ULP_E_SIGNATURE : ULP_E_UNSIGNED));
}

/* A signature cannot be made again, so all up to the mark that says whether there is one. */
static void check_written(const struct record *record, const struct buffer *bytes) {
    struct buffer again = BUFFER(LIMIT_RECORD_BYTES);
    size_t mark;

    MUST(!record_write(record, NULL, &again));
    mark = again.used - SHA256_BYTES - 1;
    if (record->is_signed) {
        MUST(again.used + ED25519_KEY_BYTES + ED25519_SIGNATURE_BYTES == bytes->used);
        MUST(!memcmp(again.data, bytes->data, mark) && bytes->data[mark] == 1);
    } else {
        MUST(again.used == bytes->used && !memcmp(again.data, bytes->data, bytes->used));
    }
    buffer_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buffer bytes = BUFFER(LIMIT_RECORD_BYTES);
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
        check_numbers(&record);
        check_order(&record);
        check_written(&record, &bytes);
        check_trust(&record, &bytes);
        check_plan(&record, &arena);
        MUST(!map_each_part(&record, check_part, &record));
    }
    arena_release(&arena);
    buffer_release(&bytes);
    return 0;
}
