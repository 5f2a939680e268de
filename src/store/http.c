// SPDX-License-Identifier: Apache-2.0
/* A store on a web server, for reading: whatever puts the files of a run behind a URL will do. */
#include "base/memory.h"
#include "base/quote.h"
#include "store/remote.h"

#include <string.h>

static enum ulp_status only_read(const struct remote *remote, const char *what) {
    return fail(ULP_E_UNSUPPORTED,
                "store %s: over plain HTTP objects can be read, but not %s; use s3:// or a "
                "directory for that",
                quote(remote->name).text, what);
}

static enum ulp_status http_read(void *self, const char *key, uint64_t offset, void *data,
                                 size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    return remote_read(self, key, offset, data, bytes, ret_read, ret_total, NULL);
}

static enum ulp_status http_stream(void *self, const char *key, uint64_t offset, uint64_t bytes,
                                   ulp_store_piece piece, void *user, uint64_t *ret_total) {
    return remote_stream(self, key, offset, bytes, piece, user, ret_total);
}

static enum ulp_status http_stat(void *self, const char *key, uint64_t *ret_bytes) {
    return remote_stat(self, key, ret_bytes);
}

static enum ulp_status http_create(void *self, const char *key, const void *data, size_t bytes) {
    (void)key;
    (void)data;
    (void)bytes;
    return only_read(self, "created");
}

static enum ulp_status http_put_begin(void *self, const char *key, void **ret_writer) {
    (void)key;
    (void)ret_writer;
    return only_read(self, "written");
}

static enum ulp_status http_put_write(void *self, void *writer, const void *data, size_t bytes) {
    (void)writer;
    (void)data;
    (void)bytes;
    return only_read(self, "written");
}

static enum ulp_status http_put_end(void *self, void *writer, int keep) {
    (void)writer;
    (void)keep;
    return only_read(self, "written");
}

static enum ulp_status http_list(void *self, const char *prefix, const char *after,
                                 ulp_store_entry entry, void *user) {
    (void)prefix;
    (void)after;
    (void)entry;
    (void)user;
    return only_read(self, "listed");
}

static enum ulp_status http_remove(void *self, const char *key) {
    (void)key;
    return only_read(self, "removed");
}

static void http_free(void *self) {
    remote_release(self);
    mem_free(self);
}

/* Without the slashes at its end. */
static enum ulp_status base_of(const char *url, struct buffer *base) {
    size_t length = strlen(url);

    if (url[strcspn(url, "?#")])
        return fail(ULP_E_USAGE, "%s: the address of a store ends with a path, not with a query",
                    http_show_url(url).text);
    while (length && url[length - 1] == '/')
        length--;
    return buffer_append(base, url, length);
}

enum ulp_status store_http_new(const char *url, const struct ulp_store_options *options,
                               struct ulp_store **ret_store) {
    static const struct ulp_store_ops ops = {
        .read = http_read,
        .create = http_create,
        .put_begin = http_put_begin,
        .put_write = http_put_write,
        .put_end = http_put_end,
        .stat = http_stat,
        .list = http_list,
        .remove = http_remove,
        .free = http_free,
        .stream = http_stream,
    };
    struct buffer base = BUFFER(HTTP_URL_BYTES_MAX);
    struct remote *remote = NULL;
    enum ulp_status status = http_url_check(url);

    if (!status)
        status = base_of(url, &base);
    if (!status)
        status = mem_zeroed(1, sizeof *remote, &remote);
    if (!status)
        status = remote_open(REMOTE_WEB, url, buffer_text(&base), "", "", options, remote);
    buffer_release(&base);
    if (status) {
        mem_free(remote);
        return status;
    }
    return ulp_store_new(&ops, remote, url, ret_store);
}
