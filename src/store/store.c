// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include "base/memory.h"
#include "base/quote.h"

#include <stdbool.h>
#include <string.h>

/* What a stream reads at a time where reading is all there is. */
#define STREAM_PIECE_BYTES ((size_t)8 << 20)

struct ulp_store {
    const struct ulp_store_ops *ops;
    void *self;
    char *name;
};

struct ulp_store_writer {
    struct ulp_store *store;
    void *writer;
    enum ulp_status failed; /* what came of the first piece that was not written, and why */
    struct error_note note;
};

static bool part_is_allowed(const char *part, size_t length) {
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    return length && length <= ULP_KEY_PART_BYTES_MAX && part[0] != '.' &&
           strspn(part, allowed) >= length;
}

enum ulp_status key_check(const char *key) {
    size_t length = strlen(key);

    for (const char *part = key; length <= ULP_KEY_BYTES_MAX;) {
        const char *slash = strchr(part, '/');
        size_t bytes = slash ? (size_t)(slash - part) : strlen(part);

        if (!part_is_allowed(part, bytes))
            break;
        if (!slash)
            return ULP_OK;
        part = slash + 1;
    }
    return fail(ULP_E_NAME,
                "%s is not a key: parts of letters, digits, '.', '-', '_', joined by '/'",
                quote(key).text);
}

enum ulp_status store_argument_missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_store_new(const struct ulp_store_ops *ops, void *self, const char *name,
                              struct ulp_store **ret_store) {
    struct ulp_store *store = NULL;
    enum ulp_status status;

    if (!ops)
        return store_argument_missing(__func__);
    status =
        name && ret_store ? mem_zeroed(1, sizeof *store, &store) : store_argument_missing(__func__);
    if (!status)
        status = mem_copy_text(name, &store->name);
    if (status) {
        mem_free(store);
        ops->free(self);
        return status;
    }
    store->ops = ops;
    store->self = self;
    *ret_store = store;
    return ULP_OK;
}

/* The length of `scheme://` at the beginning, or 0: a path may contain "://" further on. */
static size_t scheme_length(const char *url) {
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-";
    size_t length = strspn(url, allowed);

    return length && !strncmp(url + length, "://", 3) ? length + 3 : 0;
}

static bool has_scheme(const char *url, size_t scheme, const char *name) {
    return scheme == strlen(name) && !strncmp(url, name, scheme);
}

enum ulp_status ulp_store_open_with(const char *url, const struct ulp_store_options *options,
                                    struct ulp_store **ret_store) {
    static const struct ulp_store_options usual = {0};
    size_t scheme;

    if (!url || !ret_store)
        return store_argument_missing(__func__);
    if (!options)
        options = &usual;
    scheme = scheme_length(url);
    if (has_scheme(url, scheme, "s3://"))
        return store_s3_new(url, options, ret_store);
    if (has_scheme(url, scheme, "http://") || has_scheme(url, scheme, "https://"))
        return store_http_new(url, options, ret_store);
    if (scheme && !has_scheme(url, scheme, "file://"))
        return fail(ULP_E_UNSUPPORTED,
                    "%s: a store is a directory, or at file://, s3://, https:// or http://",
                    quote(url).text);
    if (scheme && url[scheme] != '/') /* the name of a host would stand there */
        return fail(ULP_E_USAGE, "%s: write file:// and a path that begins with '/'",
                    quote(url).text);
    return store_directory_new(url + scheme, ret_store);
}

enum ulp_status ulp_store_open(const char *url, struct ulp_store **ret_store) {
    return ulp_store_open_with(url, NULL, ret_store);
}

void ulp_store_free(struct ulp_store *store) {
    if (!store)
        return;
    store->ops->free(store->self);
    mem_free(store->name);
    mem_free(store);
}

const char *ulp_store_name(const struct ulp_store *store) {
    return store ? store->name : "";
}

/* As key_check(), and says whose key it was to be, or which function lacks an argument: this one, or
 * one for which `others` says so. */
static enum ulp_status check(const struct ulp_store *store, const char *key, bool others,
                             const char *function) {
    enum ulp_status status;

    if (!store || !key || !others)
        return store_argument_missing(function);
    status = key_check(key);
    return status ? fail(status, "store %s: %s", quote(store->name).text, ulp_last_error())
                  : ULP_OK;
}

enum ulp_status ulp_store_read(struct ulp_store *store, const char *key, uint64_t offset,
                               void *data, size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    enum ulp_status status = check(store, key, (data || !bytes) && ret_read && ret_total, __func__);

    return status ? status
                  : store->ops->read(store->self, key, offset, data, bytes, ret_read, ret_total);
}

/* At least one read, so that an object is looked for even if nothing of it is wanted. */
enum ulp_status store_stream_by_reads(const struct ulp_store_ops *ops, void *self, const char *key,
                                      uint64_t offset, uint64_t bytes, ulp_store_piece piece,
                                      void *user, uint64_t *ret_total) {
    const size_t room = bytes < STREAM_PIECE_BYTES ? (size_t)bytes : STREAM_PIECE_BYTES;
    uint64_t done = 0, total = 0;
    uint8_t *data = NULL;
    size_t want, got;
    enum ulp_status status = mem_resize(&data, room, 1);

    do {
        want = bytes - done < room ? (size_t)(bytes - done) : room;
        got = 0;
        if (!status)
            status = ops->read(self, key, offset + done, data, want, &got, &total);
        if (!status && got)
            status = piece(user, offset + done, data, got);
        done += got;
    } while (!status && got && done < bytes);
    mem_free(data);
    if (!status)
        *ret_total = total;
    return status;
}

enum ulp_status ulp_store_stream(struct ulp_store *store, const char *key, uint64_t offset,
                                 uint64_t bytes, ulp_store_piece piece, void *user,
                                 uint64_t *ret_total) {
    enum ulp_status status = check(store, key, piece && ret_total, __func__);

    if (status)
        return status;
    if (bytes > UINT64_MAX - offset) /* to the end, then */
        bytes = UINT64_MAX - offset;
    if (!store->ops->stream)
        return store_stream_by_reads(store->ops, store->self, key, offset, bytes, piece, user,
                                     ret_total);
    return store->ops->stream(store->self, key, offset, bytes, piece, user, ret_total);
}

enum ulp_status ulp_store_create(struct ulp_store *store, const char *key, const void *data,
                                 size_t bytes) {
    enum ulp_status status = check(store, key, data || !bytes, __func__);

    return status ? status : store->ops->create(store->self, key, data, bytes);
}

enum ulp_status ulp_store_stat(struct ulp_store *store, const char *key, uint64_t *ret_bytes) {
    enum ulp_status status = check(store, key, ret_bytes, __func__);

    return status ? status : store->ops->stat(store->self, key, ret_bytes);
}

/* A prefix is the beginning of keys, so it may end within a part. */
enum ulp_status ulp_store_list(struct ulp_store *store, const char *prefix, const char *after,
                               ulp_store_entry entry, void *user) {
    if (!store || !prefix || !after || !entry)
        return store_argument_missing(__func__);
    return store->ops->list(store->self, prefix, after, entry, user);
}

enum ulp_status ulp_store_remove(struct ulp_store *store, const char *key) {
    enum ulp_status status = check(store, key, true, __func__);

    return status ? status : store->ops->remove(store->self, key);
}

enum ulp_status ulp_store_put_begin(struct ulp_store *store, const char *key,
                                    struct ulp_store_writer **ret_writer) {
    struct ulp_store_writer *writer = NULL;
    enum ulp_status status = check(store, key, ret_writer, __func__);

    if (!status)
        status = mem_zeroed(1, sizeof *writer, &writer);
    if (!status) {
        writer->store = store;
        status = store->ops->put_begin(store->self, key, &writer->writer);
    }
    if (status) {
        mem_free(writer);
        return status;
    }
    *ret_writer = writer;
    return ULP_OK;
}

static enum ulp_status failed_before(const struct ulp_store_writer *writer) {
    if (writer->failed)
        error_restore(&writer->note);
    return writer->failed;
}

enum ulp_status ulp_store_put_write(struct ulp_store_writer *writer, const void *data,
                                    size_t bytes) {
    const struct ulp_store *store;

    if (!writer || (!data && bytes))
        return store_argument_missing(__func__);
    store = writer->store;
    if (failed_before(writer))
        return writer->failed;
    writer->failed = store->ops->put_write(store->self, writer->writer, data, bytes);
    if (writer->failed)
        error_save(&writer->note);
    return writer->failed;
}

/* An object that lacks a piece is not kept, whatever the caller says. */
enum ulp_status ulp_store_put_end(struct ulp_store_writer *writer, int keep) {
    const struct ulp_store *store;
    enum ulp_status status;

    if (!writer)
        return store_argument_missing(__func__);
    store = writer->store;
    status = store->ops->put_end(store->self, writer->writer, keep && !writer->failed);
    if (!status && keep)
        status = failed_before(writer);
    mem_free(writer);
    return status;
}

enum ulp_status ulp_store_put(struct ulp_store *store, const char *key, const void *data,
                              size_t bytes) {
    struct ulp_store_writer *writer = NULL;
    struct error_note note;
    enum ulp_status status = ulp_store_put_begin(store, key, &writer);

    if (status)
        return status;
    status = ulp_store_put_write(writer, data, bytes);
    if (!status)
        return ulp_store_put_end(writer, 1);
    error_save(&note);
    ulp_store_put_end(writer, 0);
    error_restore(&note);
    return status;
}
