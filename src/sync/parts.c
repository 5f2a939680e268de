// SPDX-License-Identifier: Apache-2.0
#include "sync/parts.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/quote.h"

#include <string.h>

/* What is fetched or sent at a time. */
#define PIECE_BYTES ((size_t)8 << 20)

/* What is there under its name may have been damaged since, so it is read before it is relied on.
 * */
static bool is_stored(struct ulp_store *store, const char *run, const char *key,
                      const struct part *part) {
    uint64_t there = 0;

    return !ulp_store_stat(store, key, &there) && there == part->bytes &&
           !part_visit(store, run, part, NULL, NULL);
}

static enum ulp_status send(struct ulp_store *store, const char *key, const uint8_t *data,
                            size_t bytes) {
    struct ulp_store_writer *writer = NULL;
    struct error_note note;
    enum ulp_status status = ulp_store_put_begin(store, key, &writer);

    if (status)
        return status;
    for (size_t at = 0; !status && at < bytes; at += PIECE_BYTES)
        status = ulp_store_put_write(writer, data + at,
                                     bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES);
    if (!status)
        return ulp_store_put_end(writer, 1);
    error_save(&note);
    ulp_store_put_end(writer, 0);
    error_restore(&note);
    return status;
}

enum ulp_status part_put(struct ulp_store *store, const char *run, const void *data, size_t bytes,
                         struct part *ret_part, uint64_t *stored) {
    struct part part = {.bytes = bytes};
    char key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status = hash_of(data, bytes, &part.hash);

    if (status)
        return status;
    part_key(run, &part.hash, key);
    if (!is_stored(store, run, key, &part)) {
        status = send(store, key, data, bytes);
        *stored += status ? 0 : bytes;
    }
    if (!status)
        *ret_part = part;
    return status;
}

/* ---- fetching ---- */

static enum ulp_status missing(const char *key, enum ulp_status status) {
    if (status == ULP_E_NOT_FOUND)
        return fail(ULP_E_PART, "the part %s is missing from the store", quote(key).text);
    return status;
}

static enum ulp_status fetch_pieces(struct ulp_store *store, const char *key,
                                    const struct part *part, uint8_t *piece, struct sha256 *hash,
                                    part_piece fn, void *user) {
    enum ulp_status status = ULP_OK;
    uint64_t at = 0;

    while (!status && at < part->bytes) {
        uint64_t left = part->bytes - at, total = 0;
        size_t want = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, got = 0;

        status = missing(key, ulp_store_read(store, key, at, piece, want, &got, &total));
        if (!status && (total != part->bytes || got != want))
            status = fail(ULP_E_PART, "the part %s has not the length that it should have",
                          quote(key).text);
        if (!status)
            status = sha256_add(hash, piece, got);
        if (!status && fn)
            status = fn(user, at, piece, got);
        at += got;
    }
    return status;
}

enum ulp_status part_visit(struct ulp_store *store, const char *run, const struct part *part,
                           part_piece fn, void *user) {
    char key[ULP_KEY_BYTES_MAX + 1];
    struct sha256 *hash = NULL;
    struct hash found;
    uint8_t *piece = NULL;
    enum ulp_status status = sha256_begin(&hash);

    part_key(run, &part->hash, key);
    if (!status)
        status = mem_resize(&piece, PIECE_BYTES, 1);
    if (!status)
        status = fetch_pieces(store, key, part, piece, hash, fn, user);
    if (!status)
        status = sha256_end(hash, found.bytes);
    if (!status && memcmp(&found, &part->hash, sizeof found) != 0)
        status = fail(ULP_E_PART, "the part %s is damaged: its bytes have another hash",
                      quote(key).text);
    sha256_free(hash);
    mem_free(piece);
    return status;
}

static enum ulp_status append(void *user, uint64_t offset, const void *data, size_t bytes) {
    (void)offset;
    return buffer_append(user, data, bytes);
}

enum ulp_status part_get(struct ulp_store *store, const char *run, const struct part *part,
                         struct buffer *into) {
    const size_t before = into->used;
    enum ulp_status status = part_visit(store, run, part, append, into);

    if (status)
        buffer_cut(into, before);
    return status;
}

static enum ulp_status put_into_file(void *user, uint64_t offset, const void *data, size_t bytes) {
    return file_writer_put(user, offset, data, bytes);
}

enum ulp_status part_get_file(struct ulp_store *store, const char *run, const struct part *part,
                              const char *path) {
    struct file_writer file = {0};
    enum ulp_status status = file_writer_open(path, 0, &file);

    if (!status)
        status = part_visit(store, run, part, put_into_file, &file);
    if (!status)
        status = file_writer_commit(&file, ULP_COMMIT_NEW);
    file_writer_release(&file);
    return status;
}
