// SPDX-License-Identifier: Apache-2.0
/* Reading a record that somebody left in a store: strict, and bounded by the limits. */
#include "chain/record.h"

#include "base/cursor.h"
#include "base/limits.h"
#include "chain/record_bytes.h"

#include <string.h>

static enum ulp_status malformed(const char *what) {
    return fail(ULP_E_RECORD, "a record of the log is malformed: %s", what);
}

static void take(struct cursor *cursor, void *to, size_t bytes) {
    const uint8_t *from = cursor_bytes(cursor, bytes);

    if (from)
        memcpy(to, from, bytes);
}

static void read_part(struct cursor *cursor, struct part *part) {
    part->folder = cursor_varint(cursor);
    part->bytes = cursor_varint(cursor);
    take(cursor, part->hash.bytes, SHA256_BYTES);
}

/* ---- anchors ---- */

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

static enum ulp_status read_files(struct cursor *cursor, struct arena *arena,
                                  struct anchor *anchor) {
    struct anchor_file *files = NULL;
    enum ulp_status status;

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

static enum ulp_status read_anchor(struct cursor *cursor, struct arena *arena,
                                   struct anchor *anchor) {
    size_t length;
    const char *reference;
    enum ulp_status status;

    anchor->version = cursor_varint(cursor);
    take(cursor, anchor->root.bytes, ULP_ROOT_BYTES);
    length = (size_t)cursor_varint_upto(cursor, LIMIT_REFERENCE_BYTES);
    reference = (const char *)cursor_bytes(cursor, length);
    if (!reference || memchr(reference, 0, length))
        return malformed("the reference of an anchor");
    if (length)
        take(cursor, anchor->content.bytes, SHA256_BYTES);
    status = arena_text(arena, reference, length, &anchor->reference);
    return status ? status : read_files(cursor, arena, anchor);
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

/* ---- ways ---- */

/* `left` is how many parts the way may still have. */
static enum ulp_status read_patch(struct cursor *cursor, struct arena *arena, size_t *left,
                                  struct stored_patch *patch) {
    struct part *parts = NULL;
    enum ulp_status status;

    patch->part_count = (size_t)cursor_varint_upto(cursor, *left);
    if (cursor->failed)
        return malformed("a patch with too many parts");
    *left -= patch->part_count;
    status = arena_zeroed(arena, patch->part_count, sizeof *parts, &parts);
    for (size_t i = 0; !status && i < patch->part_count; i++)
        read_part(cursor, &parts[i]);
    patch->parts = parts;
    return status;
}

static enum ulp_status read_way(struct cursor *cursor, struct arena *arena, struct way *way) {
    struct stored_patch *patches = NULL;
    size_t left = LIMIT_PARTS;
    enum ulp_status status;

    way->from = cursor_varint(cursor);
    way->to = cursor_varint(cursor);
    way->history = cursor_varint_upto(cursor, 1) != 0;
    way->changes = cursor_varint(cursor);
    way->sequence = cursor_varint(cursor);
    way->patch_count = (size_t)cursor_varint_upto(cursor, LIMIT_TILES + 1);
    if (cursor->failed || way->from >= way->to || !way->patch_count)
        return malformed("a way that leads nowhere");
    status = arena_zeroed(arena, way->patch_count, sizeof *patches, &patches);
    for (size_t i = 0; !status && i < way->patch_count; i++)
        status = read_patch(cursor, arena, &left, &patches[i]);
    way->patches = patches;
    if (!status && left == LIMIT_PARTS) /* single tiles may have none, but not all of them */
        status = malformed("a way without parts");
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

/* ---- keys ---- */

static enum ulp_status read_handovers(struct cursor *cursor, struct arena *arena,
                                      struct record *record) {
    struct handover *handovers = NULL;
    enum ulp_status status;

    record->handover_count = (size_t)cursor_varint_upto(cursor, LIMIT_HANDOVERS);
    status = arena_zeroed(arena, record->handover_count, sizeof *handovers, &handovers);
    record->handovers = handovers;
    for (size_t i = 0; !status && i < record->handover_count; i++) {
        struct handover *handover = &handovers[i];

        handover->sequence = cursor_varint_upto(cursor, record->sequence);
        take(cursor, handover->from.bytes, ED25519_KEY_BYTES);
        take(cursor, handover->to.bytes, ED25519_KEY_BYTES);
        take(cursor, handover->signature, sizeof handover->signature);
        if (i && (handovers[i - 1].sequence >= handover->sequence ||
                  memcmp(&handovers[i - 1].to, &handover->from, sizeof handover->from) != 0))
            status = malformed("handovers that do not follow each other");
    }
    return status;
}

/* Who hands over is followed by who signs. */
static enum ulp_status read_signature(struct cursor *cursor, struct record *record) {
    record->is_signed = cursor_varint_upto(cursor, 1) != 0;
    if (record->is_signed) {
        take(cursor, record->signer.bytes, ED25519_KEY_BYTES);
        cursor_bytes(cursor, ED25519_SIGNATURE_BYTES);
    }
    if (cursor->failed || cursor->at != cursor->end)
        return malformed("it ends too early or too late");
    if (record->handover_count &&
        (!record->is_signed || memcmp(&record->handovers[record->handover_count - 1].to,
                                      &record->signer, sizeof record->signer) != 0))
        return fail(ULP_E_SIGNATURE,
                    "a record is signed by another key than the one that was handed over to");
    return ULP_OK;
}

/* ---- all of it ---- */

/* Nothing else vouches for an unsigned record: without its own hash at the end a flipped bit would
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
    if (count < RECORD_MAGIC_BYTES || memcmp(bytes, record_magic, RECORD_MAGIC_BYTES - 1) != 0)
        return malformed("it does not begin like one");
    if (bytes[RECORD_MAGIC_BYTES - 1] != record_magic[RECORD_MAGIC_BYTES - 1])
        return fail(ULP_E_VERSION, "a record of version %u; this library reads version 0",
                    bytes[RECORD_MAGIC_BYTES - 1]);
    return ULP_OK;
}

static enum ulp_status read_head(struct cursor *cursor, struct record *record) {
    uint64_t ancestors[ANCESTORS_MAX];

    cursor_bytes(cursor, RECORD_MAGIC_BYTES);
    take(cursor, record->run, RUN_ID_BYTES);
    record->sequence = cursor_varint(cursor);
    if (!record->sequence)
        return malformed("it has no number");
    take(cursor, record->ancestors,
         ancestors_of(record->sequence, ancestors) * sizeof record->ancestors[0]);
    record->epoch = cursor_varint(cursor);
    record->version = cursor_varint(cursor);
    record->step = cursor_varint(cursor);
    record->time_ms = cursor_varint(cursor);
    take(cursor, record->root.bytes, ULP_ROOT_BYTES);
    record->elements = cursor_varint(cursor);
    record->boundary = cursor_varint_upto(cursor, record->sequence);
    if (cursor->failed)
        return malformed("it ends within its head");
    if (record->version >= record->sequence || record->epoch >= record->sequence)
        return fail(ULP_E_JUMP, "record %llu speaks of version %llu: some were left out",
                    (unsigned long long)record->sequence, (unsigned long long)record->version);
    return ULP_OK;
}

enum ulp_status record_read(const uint8_t *bytes, size_t count, struct arena *arena,
                            struct record *ret_record) {
    struct cursor cursor = {bytes, bytes + count, false};
    struct record record = {0};
    enum ulp_status status;

    if (count > LIMIT_RECORD_BYTES)
        return malformed("it is longer than a record may be");
    status = check_magic(bytes, count);
    if (!status)
        status = check_hash(&cursor);
    if (!status)
        status = read_head(&cursor, &record);
    if (!status)
        status = read_handovers(&cursor, arena, &record);
    if (!status)
        status = read_anchors(&cursor, arena, &record);
    if (!status)
        status = read_ways(&cursor, arena, &record);
    if (!status)
        status = read_signature(&cursor, &record);
    if (!status)
        *ret_record = record;
    return status;
}
