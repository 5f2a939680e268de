// SPDX-License-Identifier: Apache-2.0
#include "sync/contribution.h"

#include "base/cursor.h"
#include "base/limits.h"

#include <string.h>

#define MAGIC_BYTES 8u

static const uint8_t magic[MAGIC_BYTES] = "ulpcont"; /* and version 0 */

/* ---- writing ---- */

static enum ulp_status put_part(struct buffer *out, const struct part *part) {
    enum ulp_status status = put_varint(out, part->folder);

    if (!status)
        status = put_varint(out, part->bytes);
    return status ? status : buffer_append(out, part->hash.bytes, SHA256_BYTES);
}

static enum ulp_status put_patch(struct buffer *out, const struct contributed_patch *patch) {
    enum ulp_status status = put_varint(out, patch->tile);

    if (!status)
        status = put_varint(out, patch->changes);
    if (!status)
        status = buffer_append(out, patch->seal.bytes, SHA256_BYTES);
    if (!status)
        status = put_varint(out, patch->stored.part_count);
    for (size_t i = 0; !status && i < patch->stored.part_count; i++)
        status = put_part(out, &patch->stored.parts[i]);
    return status;
}

enum ulp_status contribution_write(const struct contribution *c, struct buffer *out) {
    const size_t from = out->used;
    struct hash hash;
    enum ulp_status status = buffer_append(out, magic, sizeof magic);

    if (!status)
        status = buffer_append(out, c->run, RUN_ID_BYTES);
    if (!status)
        status = put_varint(out, c->version);
    if (!status)
        status = buffer_append(out, c->root.bytes, ULP_ROOT_BYTES);
    if (!status)
        status = put_varint(out, c->step);
    if (!status)
        status = put_varint(out, c->tiles);
    if (!status)
        status = put_varint(out, c->count);
    for (size_t i = 0; !status && i < c->count; i++)
        status = put_patch(out, &c->patches[i]);
    if (!status)
        status = hash_of(out->data + from, out->used - from, &hash);
    return status ? status : buffer_append(out, hash.bytes, SHA256_BYTES);
}

/* ---- reading ---- */

static enum ulp_status malformed(const char *what) {
    return fail(ULP_E_RECORD, "a contribution is malformed: %s", what);
}

static void take(struct cursor *cursor, void *to, size_t bytes) {
    const uint8_t *from = cursor_bytes(cursor, bytes);

    if (from)
        memcpy(to, from, bytes);
}

static enum ulp_status read_patch(struct cursor *cursor, struct arena *arena, unsigned tiles,
                                  struct contributed_patch *patch) {
    struct part *parts = NULL;
    enum ulp_status status;

    patch->tile = (unsigned)cursor_varint_upto(cursor, tiles);
    patch->changes = cursor_varint(cursor);
    take(cursor, patch->seal.bytes, SHA256_BYTES);
    patch->stored.part_count = (size_t)cursor_varint_upto(cursor, LIMIT_PARTS);
    if (cursor->failed || !patch->stored.part_count)
        return malformed("a patch without parts, or of a tile that there is not");
    status = arena_zeroed(arena, patch->stored.part_count, sizeof *parts, &parts);
    for (size_t i = 0; !status && i < patch->stored.part_count; i++) {
        parts[i].folder = cursor_varint(cursor);
        parts[i].bytes = cursor_varint(cursor);
        take(cursor, parts[i].hash.bytes, SHA256_BYTES);
    }
    patch->stored.parts = parts;
    return status;
}

static enum ulp_status read_body(struct cursor *cursor, struct arena *arena,
                                 struct contribution *c) {
    enum ulp_status status = ULP_OK;

    cursor_bytes(cursor, MAGIC_BYTES);
    take(cursor, c->run, RUN_ID_BYTES);
    c->version = cursor_varint(cursor);
    take(cursor, c->root.bytes, ULP_ROOT_BYTES);
    c->step = cursor_varint(cursor);
    c->tiles = (unsigned)cursor_varint_upto(cursor, LIMIT_TILES);
    c->count = (size_t)cursor_varint_upto(cursor, CONTRIBUTION_PATCHES_MAX);
    if (cursor->failed || !c->tiles || !c->count)
        return malformed("its head");
    for (size_t i = 0; !status && i < c->count; i++)
        status = read_patch(cursor, arena, c->tiles, &c->patches[i]);
    if (!status && (cursor->failed || cursor->at != cursor->end))
        status = malformed("it ends too early or too late");
    return status;
}

enum ulp_status contribution_read(const uint8_t *bytes, size_t count, struct arena *arena,
                                  struct contribution *ret_contribution) {
    struct cursor cursor = {bytes, bytes + count, false};
    struct contribution contribution = {0};
    struct hash hash;
    enum ulp_status status;

    if (count > LIMIT_CONTRIBUTION_BYTES)
        return fail(ULP_E_LIMIT, "a contribution of %zu bytes; the limit is %u", count,
                    LIMIT_CONTRIBUTION_BYTES);
    if (count < MAGIC_BYTES + SHA256_BYTES || memcmp(bytes, magic, MAGIC_BYTES - 1) != 0)
        return malformed("it does not begin like one");
    if (bytes[MAGIC_BYTES - 1] != magic[MAGIC_BYTES - 1])
        return fail(ULP_E_VERSION, "a contribution of version %u; this library reads version 0",
                    bytes[MAGIC_BYTES - 1]);
    cursor.end -= SHA256_BYTES;
    status = hash_of(bytes, count - SHA256_BYTES, &hash);
    if (!status && memcmp(hash.bytes, cursor.end, SHA256_BYTES) != 0)
        status = fail(ULP_E_CHECKSUM, "a contribution is damaged: its bytes have another hash");
    if (!status)
        status = read_body(&cursor, arena, &contribution);
    if (!status)
        *ret_contribution = contribution;
    return status;
}
