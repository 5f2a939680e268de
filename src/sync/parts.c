// SPDX-License-Identifier: Apache-2.0
#include "sync/parts.h"

#include "base/file.h"
#include "base/quote.h"

#include <string.h>

/* What is sent at a time. */
#define PIECE_BYTES ((size_t)8 << 20)

/* ---- sending ---- */

enum ulp_status piece_read(const struct piece_reader *reader, const struct piece *piece,
                           const struct ulp_sink *sink) {
    return reader ? reader->read(reader->user, piece->data, piece->bytes, sink)
                  : sink->write(sink->user, piece->data, piece->bytes);
}

static enum ulp_status hash_bytes(void *user, const void *data, size_t bytes) {
    return sha256_add(user, data, bytes);
}

static enum ulp_status hash_pieces(const struct piece *pieces, size_t count,
                                   const struct piece_reader *reader, struct part *part) {
    struct sha256 *hash = NULL;
    enum ulp_status status = sha256_begin(&hash);
    const struct ulp_sink sink = {hash_bytes, hash};

    part->bytes = 0;
    for (size_t i = 0; !status && i < count; i++) {
        status = piece_read(reader, &pieces[i], &sink);
        part->bytes += pieces[i].bytes;
    }
    if (!status)
        status = sha256_end(hash, part->hash.bytes);
    sha256_free(hash);
    return status;
}

static enum ulp_status send_bytes(void *user, const void *data, size_t bytes) {
    enum ulp_status status = ULP_OK;

    for (size_t at = 0; !status && at < bytes; at += PIECE_BYTES) {
        size_t left = bytes - at;

        status = ulp_store_put_write(user, (const uint8_t *)data + at,
                                     left < PIECE_BYTES ? left : PIECE_BYTES);
    }
    return status;
}

static enum ulp_status send(struct ulp_store *store, const char *key, const struct piece *pieces,
                            size_t count, const struct piece_reader *reader) {
    struct ulp_store_writer *writer = NULL;
    struct error_note note;
    enum ulp_status status = ulp_store_put_begin(store, key, &writer);
    const struct ulp_sink sink = {send_bytes, writer};

    if (status)
        return status;
    for (size_t i = 0; !status && i < count; i++)
        status = piece_read(reader, &pieces[i], &sink);
    if (!status)
        return ulp_store_put_end(writer, 1);
    error_save(&note);
    ulp_store_put_end(writer, 0);
    error_restore(&note);
    return status;
}

enum ulp_status part_put_read(struct ulp_store *store, const char *run, uint64_t folder,
                              const struct piece *pieces, size_t count,
                              const struct piece_reader *reader, struct part *ret_part) {
    struct part part = {.folder = folder};
    char key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status = hash_pieces(pieces, count, reader, &part);

    if (status)
        return status;
    part_key(run, &part, key);
    status = send(store, key, pieces, count, reader);
    if (!status)
        *ret_part = part;
    return status;
}

enum ulp_status part_put(struct ulp_store *store, const char *run, uint64_t folder,
                         const struct piece *pieces, size_t count, struct part *ret_part) {
    return part_put_read(store, run, folder, pieces, count, NULL, ret_part);
}

/* ---- fetching ---- */

/* A part on its way: hashed, and handed on if somebody wants it. */
struct arriving {
    struct sha256 *hash;
    uint64_t bytes;
    ulp_store_piece fn;
    void *user;
};

static enum ulp_status take_piece(void *user, uint64_t offset, const void *data, size_t bytes) {
    struct arriving *arriving = user;
    enum ulp_status status = sha256_add(arriving->hash, data, bytes);

    arriving->bytes += bytes;
    return status || !arriving->fn ? status : arriving->fn(arriving->user, offset, data, bytes);
}

/* One stream of the store, also for an empty part, which is looked for too. */
static enum ulp_status fetch(struct ulp_store *store, const char *key, const struct part *part,
                             struct arriving *arriving) {
    uint64_t total = 0;
    enum ulp_status status =
        ulp_store_stream(store, key, 0, part->bytes, take_piece, arriving, &total);

    if (status == ULP_E_NOT_FOUND)
        return fail(ULP_E_PART_MISSING, "the part %s is missing from the store", quote(key).text);
    if (!status && (total != part->bytes || arriving->bytes != total))
        return fail(ULP_E_PART, "the part %s has not the length that it should have",
                    quote(key).text);
    return status;
}

static enum ulp_status visit(struct ulp_store *store, const char *run, const struct part *part,
                             ulp_store_piece fn, void *user) {
    char key[ULP_KEY_BYTES_MAX + 1];
    struct arriving arriving = {.fn = fn, .user = user};
    struct hash found;
    enum ulp_status status = sha256_begin(&arriving.hash);

    part_key(run, part, key);
    if (!status)
        status = fetch(store, key, part, &arriving);
    if (!status)
        status = sha256_end(arriving.hash, found.bytes);
    if (!status && memcmp(&found, &part->hash, sizeof found) != 0)
        status = fail(ULP_E_PART, "the part %s is damaged: its bytes have another hash",
                      quote(key).text);
    sha256_free(arriving.hash);
    return status;
}

static enum ulp_status append(void *user, uint64_t offset, const void *data, size_t bytes) {
    (void)offset;
    return spool_append(user, data, bytes);
}

enum ulp_status part_get(struct ulp_store *store, const char *run, const struct part *part,
                         struct spool *into) {
    return visit(store, run, part, append, into);
}

static enum ulp_status put_into_file(void *user, uint64_t offset, const void *data, size_t bytes) {
    return file_writer_put(user, offset, data, bytes);
}

enum ulp_status part_get_file(struct ulp_store *store, const char *run, const struct part *part,
                              const char *path) {
    struct file_writer file = {0};
    enum ulp_status status = file_writer_open(path, 0, &file);

    if (!status)
        status = visit(store, run, part, put_into_file, &file);
    if (!status)
        status = file_writer_commit(&file, ULP_COMMIT_NEW);
    file_writer_release(&file);
    return status;
}

static enum ulp_status pass_on(void *user, uint64_t offset, const void *data, size_t bytes) {
    (void)offset;
    return ulp_store_put_write(user, data, bytes);
}

enum ulp_status part_relay(struct ulp_store *from, struct ulp_store *to, const char *run,
                           const struct part *part) {
    struct ulp_store_writer *writer = NULL;
    struct error_note note;
    char key[ULP_KEY_BYTES_MAX + 1];
    enum ulp_status status;

    part_key(run, part, key);
    status = ulp_store_put_begin(to, key, &writer);
    if (status)
        return status;
    status = visit(from, run, part, pass_on, writer);
    if (!status)
        return ulp_store_put_end(writer, 1);
    error_save(&note);
    ulp_store_put_end(writer, 0);
    error_restore(&note);
    return status;
}

enum ulp_status part_verify(struct ulp_store *store, const char *run, const struct part *part) {
    return visit(store, run, part, NULL, NULL);
}
