// SPDX-License-Identifier: Apache-2.0
/* Writing records, and what records and their parts are called. */
#include "chain/record.h"

#include "base/cursor.h"
#include "base/limits.h"
#include "chain/record_bytes.h"
#include "hash/hmac.h"
#include "hash/key.h"

#include <stdio.h>
#include <string.h>
#include <ulpsync/store.h>

const uint8_t record_magic[RECORD_MAGIC_BYTES] = "ulpslog"; /* and version 0 */

enum ulp_status hash_of(const void *data, size_t bytes, struct hash *ret_hash) {
    return sha256_of(data, bytes, ret_hash->bytes);
}

void record_key(const char *run, uint64_t sequence, char *key) {
    snprintf(key, ULP_KEY_BYTES_MAX, "%s/log/%020llu", run, (unsigned long long)sequence);
}

void part_key(const char *run, const struct part *part, char *key) {
    int length =
        snprintf(key, ULP_KEY_BYTES_MAX, "%s/part/%020llu/", run, (unsigned long long)part->folder);

    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(key + length + 2 * i, 3, "%02x", part->hash.bytes[i]);
}

uint64_t anchor_bytes(const struct anchor *anchor) {
    uint64_t bytes = 0;

    for (size_t i = 0; i < anchor->file_count; i++)
        bytes = add_bytes(bytes, anchor->files[i].part.bytes);
    return bytes;
}

uint64_t way_bytes(const struct way *way) {
    uint64_t bytes = 0;

    for (size_t i = 0; i < way->patch_count; i++) {
        for (size_t k = 0; k < way->patches[i].part_count; k++)
            bytes = add_bytes(bytes, way->patches[i].parts[k].bytes);
    }
    return bytes;
}

/* ---- following one another ---- */

size_t ancestors_of(uint64_t sequence, uint64_t ret_sequences[ANCESTORS_MAX]) {
    const uint64_t before = sequence - 1;
    size_t count = 0;

    for (unsigned k = 0; k < 64 && before >> k; k++) {
        uint64_t aligned = before >> k << k;

        if (!count || aligned != ret_sequences[count - 1])
            ret_sequences[count++] = aligned;
    }
    return count;
}

/* Every ancestor of a record but the one before it is an ancestor of that one too. */
void record_succeed(const struct record *before, const struct hash *hash, struct record *ret_next) {
    uint64_t theirs[ANCESTORS_MAX], ours[ANCESTORS_MAX];
    size_t their_count = ancestors_of(before->sequence, theirs);
    size_t our_count = ancestors_of(before->sequence + 1, ours);
    struct record next = *before;

    memset(next.ancestors, 0, sizeof next.ancestors);
    next.sequence++;
    next.ancestors[0] = *hash;
    for (size_t i = 1, k = 0; i < our_count; i++) {
        while (k < their_count && theirs[k] != ours[i])
            k++;
        if (k < their_count)
            next.ancestors[i] = before->ancestors[k];
    }
    *ret_next = next;
}

/* ---- writing ---- */

static enum ulp_status put_numbers(struct buffer *out, const uint64_t *numbers, size_t count) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < count; i++)
        status = put_varint(out, numbers[i]);
    return status;
}

static enum ulp_status put_part(struct buffer *out, const struct part *part) {
    enum ulp_status status = put_numbers(out, (uint64_t[]){part->folder, part->bytes}, 2);

    return status ? status : buffer_append(out, part->hash.bytes, SHA256_BYTES);
}

static enum ulp_status put_patch(struct buffer *out, const struct stored_patch *patch) {
    enum ulp_status status = put_varint(out, patch->part_count);

    for (size_t i = 0; !status && i < patch->part_count; i++)
        status = put_part(out, &patch->parts[i]);
    return status;
}

static enum ulp_status put_way(struct buffer *out, const struct way *way) {
    const uint64_t numbers[] = {way->from,    way->to,       way->history,
                                way->changes, way->sequence, way->patch_count};
    enum ulp_status status = put_numbers(out, numbers, sizeof numbers / sizeof numbers[0]);

    for (size_t i = 0; !status && i < way->patch_count; i++)
        status = put_patch(out, &way->patches[i]);
    return status;
}

static enum ulp_status put_text(struct buffer *out, const char *text) {
    size_t length = strlen(text);
    enum ulp_status status = put_varint(out, length);

    return status ? status : buffer_append(out, text, length);
}

static enum ulp_status put_anchor(struct buffer *out, const struct anchor *anchor) {
    enum ulp_status status = put_varint(out, anchor->version);

    if (!status)
        status = buffer_append(out, anchor->root.bytes, ULP_ROOT_BYTES);
    if (!status)
        status = put_text(out, anchor->reference);
    if (!status && *anchor->reference)
        status = buffer_append(out, anchor->content.bytes, SHA256_BYTES);
    if (!status)
        status = put_varint(out, anchor->file_count);
    for (size_t i = 0; !status && i < anchor->file_count; i++) {
        status = put_text(out, anchor->files[i].name);
        if (!status)
            status = put_part(out, &anchor->files[i].part);
    }
    return status;
}

static enum ulp_status put_handover(struct buffer *out, const struct handover *handover) {
    enum ulp_status status = put_varint(out, handover->sequence);

    if (!status)
        status = buffer_append(out, handover->from.bytes, ED25519_KEY_BYTES);
    if (!status)
        status = buffer_append(out, handover->to.bytes, ED25519_KEY_BYTES);
    return status ? status : buffer_append(out, handover->signature, sizeof handover->signature);
}

static enum ulp_status put_head(struct buffer *out, const struct record *record) {
    const uint64_t numbers[] = {record->epoch, record->version, record->step, record->time_ms};
    uint64_t ancestors[ANCESTORS_MAX];
    const size_t count = ancestors_of(record->sequence, ancestors);
    enum ulp_status status = buffer_append(out, record_magic, sizeof record_magic);

    if (!status)
        status = buffer_append(out, record->run, RUN_ID_BYTES);
    if (!status)
        status = put_varint(out, record->sequence);
    if (!status)
        status = buffer_append(out, record->ancestors, count * sizeof record->ancestors[0]);
    if (!status)
        status = put_numbers(out, numbers, sizeof numbers / sizeof numbers[0]);
    if (!status)
        status = buffer_append(out, record->root.bytes, ULP_ROOT_BYTES);
    return status ? status : put_numbers(out, (uint64_t[]){record->elements, record->boundary}, 2);
}

static enum ulp_status put_map(struct buffer *out, const struct record *record) {
    enum ulp_status status = put_varint(out, record->handover_count);

    for (size_t i = 0; !status && i < record->handover_count; i++)
        status = put_handover(out, &record->handovers[i]);
    if (!status)
        status = put_varint(out, record->anchor_count);
    for (size_t i = 0; !status && i < record->anchor_count; i++)
        status = put_anchor(out, &record->anchors[i]);
    if (!status)
        status = put_varint(out, record->way_count);
    for (size_t i = 0; !status && i < record->way_count; i++)
        status = put_way(out, &record->ways[i]);
    return status;
}

static enum ulp_status put_signature(struct buffer *out, size_t from, const struct ulp_key *key) {
    uint8_t signature[ED25519_SIGNATURE_BYTES];
    enum ulp_status status = put_varint(out, key ? 1 : 0);

    if (status || !key)
        return status;
    status = buffer_append(out, key->public_key.bytes, sizeof key->public_key.bytes);
    if (!status)
        status = key_sign(key, out->data + from, out->used - from, signature);
    return status ? status : buffer_append(out, signature, sizeof signature);
}

static enum ulp_status put_hash(struct buffer *out, size_t from) {
    struct hash hash;
    enum ulp_status status = hash_of(out->data + from, out->used - from, &hash);

    return status ? status : buffer_append(out, hash.bytes, SHA256_BYTES);
}

enum ulp_status record_write(const struct record *record, const struct ulp_key *key,
                             struct buffer *out) {
    const size_t from = out->used;
    enum ulp_status status = put_head(out, record);

    if (!status)
        status = put_map(out, record);
    if (!status)
        status = put_signature(out, from, key);
    return status ? status : put_hash(out, from);
}
