// SPDX-License-Identifier: Apache-2.0
#include "chain/record.h"

#include "base/cursor.h"
#include "base/limits.h"
#include "base/quote.h"

#include <stdio.h>
#include <string.h>
#include <ulpsync/store.h>

static const uint8_t magic[8] = "ulpslog"; /* and version 0 */

enum ulp_status hash_of(const void *data, size_t bytes, struct hash *ret_hash) {
    struct sha256 *hash = NULL;
    enum ulp_status status = sha256_begin(&hash);

    if (!status)
        status = sha256_add(hash, data, bytes);
    if (!status)
        status = sha256_end(hash, ret_hash->bytes);
    sha256_free(hash);
    return status;
}

void record_key(const char *run, uint64_t sequence, char *key) {
    snprintf(key, ULP_KEY_BYTES_MAX, "%s/log/%020llu", run, (unsigned long long)sequence);
}

void part_key(const char *run, const struct hash *hash, char *key) {
    int length = snprintf(key, ULP_KEY_BYTES_MAX, "%s/part/", run);

    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(key + length + 2 * i, 3, "%02x", hash->bytes[i]);
}

/* ---- writing ---- */

static enum ulp_status put_part(struct buffer *out, const struct part *part) {
    enum ulp_status status = put_varint(out, part->bytes);

    return status ? status : buffer_append(out, part->hash.bytes, SHA256_BYTES);
}

static enum ulp_status put_way(struct buffer *out, const struct way *way) {
    const uint64_t numbers[] = {way->from,    way->to,       way->history,
                                way->changes, way->sequence, way->part_count};
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < sizeof numbers / sizeof numbers[0]; i++)
        status = put_varint(out, numbers[i]);
    for (size_t i = 0; !status && i < way->part_count; i++)
        status = put_part(out, &way->parts[i]);
    return status;
}

static enum ulp_status put_file(struct buffer *out, const struct anchor_file *file) {
    size_t length = strlen(file->name);
    enum ulp_status status = put_varint(out, length);

    if (!status)
        status = buffer_append(out, file->name, length);
    return status ? status : put_part(out, &file->part);
}

static enum ulp_status put_anchor(struct buffer *out, const struct anchor *anchor) {
    enum ulp_status status = put_varint(out, anchor->version);

    if (!status)
        status = buffer_append(out, anchor->root.bytes, ULP_ROOT_BYTES);
    if (!status)
        status = put_varint(out, anchor->file_count);
    for (size_t i = 0; !status && i < anchor->file_count; i++)
        status = put_file(out, &anchor->files[i]);
    return status;
}

static enum ulp_status put_head(struct buffer *out, const struct record *record) {
    const uint64_t numbers[] = {record->epoch, record->version, record->step, record->time_ms};
    enum ulp_status status = buffer_append(out, magic, sizeof magic);

    if (!status)
        status = buffer_append(out, record->run, RUN_ID_BYTES);
    if (!status)
        status = put_varint(out, record->sequence);
    if (!status)
        status = buffer_append(out, record->before.bytes, SHA256_BYTES);
    for (size_t i = 0; !status && i < sizeof numbers / sizeof numbers[0]; i++)
        status = put_varint(out, numbers[i]);
    return status ? status : buffer_append(out, record->root.bytes, ULP_ROOT_BYTES);
}

static enum ulp_status put_hash(struct buffer *out, size_t from) {
    struct hash hash;
    enum ulp_status status = hash_of(out->data + from, out->used - from, &hash);

    return status ? status : buffer_append(out, hash.bytes, SHA256_BYTES);
}

enum ulp_status record_write(const struct record *record, struct buffer *out) {
    const size_t from = out->used;
    enum ulp_status status = put_head(out, record);

    if (!status)
        status = put_varint(out, record->anchor_count);
    for (size_t i = 0; !status && i < record->anchor_count; i++)
        status = put_anchor(out, &record->anchors[i]);
    if (!status)
        status = put_varint(out, record->way_count);
    for (size_t i = 0; !status && i < record->way_count; i++)
        status = put_way(out, &record->ways[i]);
    return status ? status : put_hash(out, from);
}

/* ---- reading ---- */

static enum ulp_status malformed(const char *what) {
    return fail(ULP_E_RECORD, "a record of the log is malformed: %s", what);
}

static void take(struct cursor *cursor, uint8_t *to, size_t bytes) {
    const uint8_t *from = cursor_bytes(cursor, bytes);

    if (from)
        memcpy(to, from, bytes);
}

static void read_part(struct cursor *cursor, struct part *part) {
    part->bytes = cursor_varint(cursor);
    take(cursor, part->hash.bytes, SHA256_BYTES);
}

/* A name that may be used as a file's: plain, and not hidden. */
static bool file_name_allowed(const char *name, size_t length) {
    return length && length <= LIMIT_FILE_NAME_BYTES && name[0] != '.' &&
           !memchr(name, '/', length) && !memchr(name, 0, length);
}

static enum ulp_status read_file(struct cursor *cursor, struct arena *arena,
                                 struct anchor_file *file) {
    size_t length = (size_t)cursor_varint_upto(cursor, LIMIT_FILE_NAME_BYTES);
    const char *name = (const char *)cursor_bytes(cursor, length);

    if (!name || !file_name_allowed(name, length))
        return malformed("the name of a file");
    read_part(cursor, &file->part);
    return arena_text(arena, name, length, &file->name);
}

static enum ulp_status read_anchor(struct cursor *cursor, struct arena *arena,
                                   struct anchor *anchor) {
    struct anchor_file *files = NULL;
    enum ulp_status status;

    anchor->version = cursor_varint(cursor);
    take(cursor, anchor->root.bytes, ULP_ROOT_BYTES);
    anchor->file_count = (size_t)cursor_varint_upto(cursor, LIMIT_ANCHOR_FILES);
    status = arena_zeroed(arena, anchor->file_count, sizeof *files, &files);
    for (size_t i = 0; !status && i < anchor->file_count; i++) {
        status = read_file(cursor, arena, &files[i]);
        if (!status && i && strcmp(files[i - 1].name, files[i].name) >= 0)
            status = malformed("files out of order");
    }
    anchor->files = files;
    return status;
}

static enum ulp_status read_way(struct cursor *cursor, struct arena *arena, struct way *way) {
    struct part *parts = NULL;
    enum ulp_status status;

    way->from = cursor_varint(cursor);
    way->to = cursor_varint(cursor);
    way->history = cursor_varint_upto(cursor, 1) != 0;
    way->changes = cursor_varint(cursor);
    way->sequence = cursor_varint(cursor);
    way->part_count = (size_t)cursor_varint_upto(cursor, LIMIT_PARTS);
    if (cursor->failed || way->from >= way->to || !way->part_count)
        return malformed("a way that leads nowhere");
    status = arena_zeroed(arena, way->part_count, sizeof *parts, &parts);
    for (size_t i = 0; !status && i < way->part_count; i++)
        read_part(cursor, &parts[i]);
    way->parts = parts;
    return status;
}

/* Nothing else vouches for the newest record: without its own hash at the end a flipped bit would
 * be another record, and a follower that has seen it would refuse the right one for ever. */
static enum ulp_status check_hash(struct cursor *cursor) {
    struct hash hash;
    enum ulp_status status;

    if ((size_t)(cursor->end - cursor->at) < SHA256_BYTES)
        return malformed("it ends within its head");
    cursor->end -= SHA256_BYTES;
    status = hash_of(cursor->at, (size_t)(cursor->end - cursor->at), &hash);
    if (!status && memcmp(hash.bytes, cursor->end, SHA256_BYTES) != 0)
        status =
            fail(ULP_E_CHECKSUM, "a record of the log is damaged: its bytes have another hash");
    return status;
}

/* Before its hash: other versions may have none. */
static enum ulp_status check_magic(const uint8_t *bytes, size_t count) {
    if (count < sizeof magic || memcmp(bytes, magic, sizeof magic - 1) != 0)
        return malformed("it does not begin like one");
    if (bytes[sizeof magic - 1] != magic[sizeof magic - 1])
        return fail(ULP_E_VERSION, "a record of version %u; this library reads version 0",
                    bytes[sizeof magic - 1]);
    return ULP_OK;
}

static enum ulp_status read_head(struct cursor *cursor, struct record *record) {
    cursor_bytes(cursor, sizeof magic);
    take(cursor, record->run, RUN_ID_BYTES);
    record->sequence = cursor_varint(cursor);
    take(cursor, record->before.bytes, SHA256_BYTES);
    record->epoch = cursor_varint(cursor);
    record->version = cursor_varint(cursor);
    record->step = cursor_varint(cursor);
    record->time_ms = cursor_varint(cursor);
    take(cursor, record->root.bytes, ULP_ROOT_BYTES);
    return cursor->failed ? malformed("it ends within its head") : ULP_OK;
}

static enum ulp_status read_anchors(struct cursor *cursor, struct arena *arena,
                                    struct record *record) {
    struct anchor *anchors = NULL;
    enum ulp_status status;

    record->anchor_count = (size_t)cursor_varint_upto(cursor, LIMIT_ANCHORS);
    status = arena_zeroed(arena, record->anchor_count, sizeof *anchors, &anchors);
    record->anchors = anchors;
    for (size_t i = 0; !status && i < record->anchor_count; i++) {
        status = read_anchor(cursor, arena, &anchors[i]);
        if (!status && (anchors[i].version > record->version ||
                        (i && anchors[i - 1].version >= anchors[i].version)))
            status = malformed("anchors out of order");
    }
    return status;
}

static bool in_order(const struct way *a, const struct way *b) {
    return a->to < b->to || (a->to == b->to && a->from < b->from);
}

static enum ulp_status read_ways(struct cursor *cursor, struct arena *arena,
                                 struct record *record) {
    struct way *ways = NULL;
    enum ulp_status status;

    record->way_count = (size_t)cursor_varint_upto(cursor, LIMIT_WAYS);
    status = arena_zeroed(arena, record->way_count, sizeof *ways, &ways);
    record->ways = ways;
    for (size_t i = 0; !status && i < record->way_count; i++) {
        status = read_way(cursor, arena, &ways[i]);
        if (!status && (ways[i].to > record->version || ways[i].sequence > record->sequence ||
                        (i && !in_order(&ways[i - 1], &ways[i]))))
            status = malformed("ways out of order");
    }
    return status;
}

enum ulp_status record_read(const uint8_t *bytes, size_t count, struct arena *arena,
                            struct record *ret_record) {
    struct cursor cursor = {bytes, bytes + count, false};
    struct record record = {0};
    enum ulp_status status;

    if (count > LIMIT_RECORD_BYTES)
        return fail(ULP_E_LIMIT, "a record of %zu bytes; the limit is %u", count,
                    LIMIT_RECORD_BYTES);
    status = check_magic(bytes, count);
    if (!status)
        status = check_hash(&cursor);
    if (!status)
        status = read_head(&cursor, &record);
    if (!status)
        status = read_anchors(&cursor, arena, &record);
    if (!status)
        status = read_ways(&cursor, arena, &record);
    if (!status && (cursor.failed || cursor.at != cursor.end))
        status = malformed("it ends too early or too late");
    if (!status)
        *ret_record = record;
    return status;
}
