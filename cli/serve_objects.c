// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_objects.h"

#include "cli/http_range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_DIGITS 20u
#define HASH_DIGITS 64u
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* ---- which paths are objects ---- */

bool serve_run_name(const struct serve_objects *objects, const char *name) {
    const size_t length = strlen(name);

    return length && length <= ULP_KEY_PART_BYTES_MAX && name[0] != '.' &&
           strspn(name, LETTERS) == length && (!objects->run || !strcmp(name, objects->run));
}

static bool is_of(const char *text, const char *characters, size_t length) {
    return strlen(text) == length && strspn(text, characters) == length;
}

/* RUN/log/SEQUENCE or RUN/part/FOLDER/HASH; `ret_hash` is NULL for the former. */
static bool is_object(const struct serve_objects *objects, const char *path,
                      char key[ULP_KEY_BYTES_MAX + 1], const char **ret_hash) {
    static const char digits[] = "0123456789", hexadecimal[] = "0123456789abcdef";
    char name[ULP_KEY_PART_BYTES_MAX + 1], folder[SEQUENCE_DIGITS + 1];
    const size_t length = path[0] == '/' ? strcspn(path + 1, "/") : 0;
    const char *rest = path + 1 + length;

    if (!length || length > ULP_KEY_PART_BYTES_MAX || strlen(path + 1) > ULP_KEY_BYTES_MAX)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)length, path + 1);
    snprintf(key, ULP_KEY_BYTES_MAX + 1, "%s", path + 1);
    *ret_hash = NULL;
    if (!serve_run_name(objects, name))
        return false;
    if (!strncmp(rest, "/log/", 5))
        return is_of(rest + 5, digits, SEQUENCE_DIGITS);
    if (strncmp(rest, "/part/", 6) != 0 || strlen(rest) != 6 + SEQUENCE_DIGITS + 1 + HASH_DIGITS ||
        rest[6 + SEQUENCE_DIGITS] != '/')
        return false;
    snprintf(folder, sizeof folder, "%s", rest + 6);
    *ret_hash = key + strlen(key) - HASH_DIGITS;
    return is_of(folder, digits, SEQUENCE_DIGITS) && is_of(*ret_hash, hexadecimal, HASH_DIGITS);
}

/* ---- reading one ---- */

struct reader {
    struct ulp_store *store;
    uint64_t first, total;
    char key[ULP_KEY_BYTES_MAX + 1];
};

/* An object that is not what it was when the head was sent is not sent on. */
static enum ulp_status read_object(void *user, uint64_t offset, void *data, size_t bytes) {
    const struct reader *reader = user;
    size_t got = 0;
    uint64_t total = 0;
    enum ulp_status status = ulp_store_read(reader->store, reader->key, reader->first + offset,
                                            data, bytes, &got, &total);

    if (!status && (got != bytes || total != reader->total))
        return ulp_fail(ULP_E_FILE_CHANGED, "'%s' was replaced while it was sent", reader->key);
    return status;
}

static void read_from(const struct serve_objects *objects, const char *key, uint64_t first,
                      uint64_t length, uint64_t total, struct http_reply *reply) {
    struct reader *reader = malloc(sizeof *reader);

    if (!reader) {
        serve_failure(ULP_E_NOMEM, reply);
        return;
    }
    *reader = (struct reader){.store = objects->store, .first = first, .total = total};
    snprintf(reader->key, sizeof reader->key, "%s", key);
    reply->read = read_object;
    reply->free = free;
    reply->user = reader;
    reply->length = length;
}

/* ---- answers ---- */

void serve_failure(enum ulp_status status, struct http_reply *reply) {
    switch (status) {
    case ULP_E_NOT_FOUND:
    case ULP_E_NO_RUN:
    case ULP_E_NAME:
    case ULP_E_FILE_KIND: /* a link, a FIFO, a directory: no object */
        http_reply_line(reply, 404, "there is no such thing here");
        break;
    case ULP_E_PERMISSION:
        http_reply_line(reply, 403, "the server may not read this");
        break;
    default:
        http_reply_line(reply, 500, "the server could not read this");
    }
}

bool serve_unchanged(const struct http_asked *asked, const char *etag) {
    const size_t length = strlen(etag);

    for (const char *at = asked->if_none_match; at && (at = strchr(at, '"')); at++) {
        if (!strncmp(at + 1, etag, length) && at[1 + length] == '"')
            return true;
    }
    return false;
}

/* "If-Range" is for who has a part of the same object: anything but its tag asks for all of it. */
static bool range_holds(const struct http_asked *asked, const char *etag) {
    const char *tag = asked->if_range;
    const size_t length = etag ? strlen(etag) : 0;

    return !tag || (etag && tag[0] == '"' && !strncmp(tag + 1, etag, length) &&
                    !strcmp(tag + 1 + length, "\""));
}

/* Parts are named by their contents and never change. Whoever kept a record, or that there is none
 * yet, would be late. */
static void add_headers(const char *hash, struct http_reply *reply) {
    http_reply_header(reply, "Content-Type", "application/octet-stream");
    http_reply_header(reply, "Accept-Ranges", "bytes");
    http_reply_header(reply, "Cache-Control",
                      hash ? "public, max-age=31536000, immutable" : "no-store");
    if (hash)
        http_reply_header(reply, "ETag", "\"%s\"", hash);
}

static void answer(const struct serve_objects *objects, const struct http_asked *asked,
                   const char *key, const char *hash, uint64_t total, struct http_reply *reply) {
    const bool ranged = !asked->head && range_holds(asked, hash);
    uint64_t first = 0, length = total;
    const enum http_ranged range = http_range(ranged ? asked->range : NULL, total, &first, &length);

    if (range == HTTP_NO_SUCH_PART) {
        http_reply_line(reply, 416, "the object has no such bytes");
        http_reply_header(reply, "Content-Range", "bytes */%llu", (unsigned long long)total);
        return;
    }
    reply->code = range == HTTP_PART ? 206 : 200;
    add_headers(hash, reply);
    if (range == HTTP_PART)
        http_reply_header(reply, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)first,
                          (unsigned long long)(first + length - 1), (unsigned long long)total);
    read_from(objects, key, first, length, total, reply);
}

bool serve_object(const struct serve_objects *objects, const struct http_asked *asked,
                  struct http_reply *reply) {
    char key[ULP_KEY_BYTES_MAX + 1];
    const char *hash = NULL;
    uint64_t total = 0;
    enum ulp_status status;

    if (!is_object(objects, asked->path, key, &hash))
        return false;
    status = ulp_store_stat(objects->store, key, &total);
    if (status) {
        serve_failure(status, reply);
    } else if (hash && serve_unchanged(asked, hash)) {
        reply->code = 304;
        add_headers(hash, reply);
    } else {
        answer(objects, asked, key, hash, total, reply);
    }
    return true;
}
