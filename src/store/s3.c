// SPDX-License-Identifier: Apache-2.0
/* A store in a bucket of S3, or of something that speaks like it. */
#include "store/s3.h"

#include "base/memory.h"
#include "base/quote.h"

static enum ulp_status s3_read(void *self, const char *key, uint64_t offset, void *data,
                               size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    return remote_read(self, key, offset, data, bytes, ret_read, ret_total, NULL);
}

static enum ulp_status s3_stream(void *self, const char *key, uint64_t offset, uint64_t bytes,
                                 ulp_store_piece piece, void *user, uint64_t *ret_total) {
    /* who asks for more than there can be wants all of it, however little that is */
    return bytes >= REMOTE_WIDE_BYTES && bytes < INT64_MAX - offset
               ? remote_stream_wide(self, key, offset, bytes, piece, user, ret_total)
               : remote_stream(self, key, offset, bytes, piece, user, ret_total);
}

static enum ulp_status s3_stat(void *self, const char *key, uint64_t *ret_bytes) {
    return remote_stat(self, key, ret_bytes);
}

/* Who is told that there is an object relies on it, so it is looked up: some servers refuse whatever
 * is asked of them with this condition, and some because two write at the same moment. */
static enum ulp_status look_at_refusal(struct remote *remote, const struct remote_request *request,
                                       const struct http_response *response) {
    uint64_t bytes = 0;
    enum ulp_status status = remote_stat(remote, request->key, &bytes);

    if (status && status != ULP_E_NOT_FOUND)
        return status;
    if (!status)
        return fail(ULP_E_EXISTS, "store %s: there is an object %s already",
                    quote(remote->name).text, quote(request->key).text);
    return fail(ULP_E_IO,
                "store %s: creating %s was refused with %u, though there is no such object; try "
                "ulp_store_check()",
                quote(remote->name).text, quote(request->key).text, response->code);
}

/*
 * The same bytes are sent until there is an answer. If the answer to one that arrived was lost, the
 * next attempt finds our own object there, which is told as what it looks like: the caller, who
 * has to compare bytes anyway, finds that they are his own.
 */
static enum ulp_status s3_create(void *self, const char *key, const void *data, size_t bytes) {
    struct remote *remote = self;
    const struct remote_request request = {.method = "PUT",
                                           .key = key,
                                           .body = data,
                                           .body_bytes = bytes,
                                           .if_none = true,
                                           .answer_bytes_max = LIMIT_ERROR_BYTES};
    struct http_response response = {0};
    enum ulp_status status = remote_send(remote, &request, &response);

    if (!status && (response.code == 412 || response.code == 409))
        status = look_at_refusal(remote, &request, &response);
    else if (!status && !http_success(&response))
        status = remote_failed(remote, &request, &response);
    http_response_release(&response);
    return status;
}

static enum ulp_status s3_remove(void *self, const char *key) {
    const struct remote_request request = {
        .method = "DELETE", .key = key, .answer_bytes_max = LIMIT_ERROR_BYTES};
    struct http_response response = {0};
    enum ulp_status status = remote_send(self, &request, &response);

    if (!status && !http_success(&response)) {
        status = remote_failed(self, &request, &response);
        if (status == ULP_E_NOT_FOUND)
            status = ULP_OK;
    }
    http_response_release(&response);
    return status;
}

static void s3_free(void *self) {
    remote_release(self);
    mem_free(self);
}

enum ulp_status store_s3_new(const char *url, const struct ulp_store_options *options,
                             struct ulp_store **ret_store) {
    static const struct ulp_store_ops ops = {
        .read = s3_read,
        .create = s3_create,
        .put_begin = s3_put_begin,
        .put_write = s3_put_write,
        .put_end = s3_put_end,
        .stat = s3_stat,
        .list = s3_list,
        .remove = s3_remove,
        .free = s3_free,
        .stream = s3_stream,
    };
    struct ulp_store_options known = *options;
    struct s3_place place = {.anonymous = false};
    struct remote *remote = NULL;
    enum ulp_status status = s3_place_find(url, options, &place);

    if (status)
        return status;
    known.anonymous = place.anonymous;
    status = mem_zeroed(1, sizeof *remote, &remote);
    if (!status)
        status =
            remote_open(REMOTE_S3, buffer_text(&place.name), buffer_text(&place.base),
                        buffer_text(&place.prefix), buffer_text(&place.region), &known, remote);
    if (status)
        mem_free(remote);
    else
        status = ulp_store_new(&ops, remote, buffer_text(&place.name), ret_store);
    s3_place_release(&place);
    return status;
}
