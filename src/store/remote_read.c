// SPDX-License-Identifier: Apache-2.0
/* Reading over one connection: one request for whatever is wanted, and after a broken connection
 * another one for what is missing. remote_wide.c reads long objects by several of these. */
#include "base/checked.h"
#include "base/memory.h"
#include "base/quote.h"
#include "store/cache_files.h"
#include "store/remote.h"

#include <string.h>

/* What a stream hands over at a time: libcurl's pieces are small. */
#define STREAM_BYTES ((size_t)1 << 20)

/* So much, and patience begins anew. */
#define PROGRESS_BYTES (UINT64_C(8) << 20)

struct fetch {
    struct remote *remote;
    const char *key;
    uint64_t offset, bytes; /* wanted */
    uint64_t done;          /* of these, also in earlier attempts */
    uint64_t total;
    bool total_known;
    char etag[HTTP_TEXT_BYTES];

    /* this attempt: what comes before what is wanted, and how much of that is to come */
    uint64_t skip, expected;
    bool exact;       /* more than that is not sent */
    bool ends_itself; /* only the end tells how long the object is */
    uint64_t seen;
    bool enough;

    /* either memory for all of it, or somebody who takes pieces */
    uint8_t *data;
    ulp_store_piece piece;
    void *user;
    struct buffer waiting;
};

static enum ulp_status bad(const struct fetch *fetch, const char *why) {
    return fail(ULP_E_IO, "store %s: %s: %s", quote(fetch->remote->name).text,
                quote(fetch->key).text, why);
}

/* ---- what is handed over ---- */

static enum ulp_status flush(struct fetch *fetch) {
    const uint64_t at = fetch->offset + fetch->done - fetch->waiting.used;
    enum ulp_status status = ULP_OK;

    if (fetch->waiting.used)
        status = fetch->piece(fetch->user, at, fetch->waiting.data, fetch->waiting.used);
    buffer_clear(&fetch->waiting);
    return status;
}

static enum ulp_status hand_over(struct fetch *fetch, const uint8_t *data, size_t bytes) {
    enum ulp_status status = ULP_OK;

    if (fetch->data) {
        memcpy(fetch->data + fetch->done, data, bytes);
        fetch->done += bytes;
        return ULP_OK;
    }
    while (!status && bytes) {
        const size_t room = STREAM_BYTES - fetch->waiting.used, take = bytes < room ? bytes : room;

        status = buffer_append(&fetch->waiting, data, take);
        if (!status)
            fetch->done += take;
        data += take;
        bytes -= take;
        if (!status && fetch->waiting.used == STREAM_BYTES)
            status = flush(fetch);
    }
    return status;
}

static enum ulp_status hear_piece(void *user, const void *data, size_t bytes) {
    struct fetch *fetch = user;
    const uint8_t *from = data;
    const size_t skipped = (size_t)smaller(fetch->skip, bytes);
    const size_t take = (size_t)smaller(bytes - skipped, fetch->bytes - fetch->done);
    enum ulp_status status;

    if (fetch->exact && bytes > fetch->expected - fetch->seen)
        return bad(fetch, "the answer is longer than it says");
    status = hand_over(fetch, from + skipped, take);
    fetch->skip -= skipped;
    fetch->seen += bytes;
    fetch->enough = !status && fetch->done == fetch->bytes && !fetch->ends_itself;
    /* the rest of an object that is longer than what was asked for is not read */
    if (fetch->enough && skipped + take < bytes)
        return fail(ULP_E_CANCELLED, "enough");
    return status;
}

/* ---- whether it is what was asked for ---- */

static enum ulp_status check_same(struct fetch *fetch, const struct http_response *response,
                                  uint64_t total) {
    const bool other = fetch->total_known && fetch->total != total;
    const bool replaced =
        *fetch->etag && *response->etag && strcmp(fetch->etag, response->etag) != 0;

    if (other || (replaced && fetch->done))
        return fail(ULP_E_FILE_CHANGED, "store %s: %s was replaced while it was read",
                    quote(fetch->remote->name).text, quote(fetch->key).text);
    memcpy(fetch->etag, response->etag, sizeof fetch->etag);
    fetch->total = total;
    fetch->total_known = true;
    return ULP_OK;
}

static enum ulp_status accept_part(struct fetch *fetch, const struct http_response *response) {
    const struct http_range *range = &response->range;
    const uint64_t first = fetch->offset + fetch->done;
    const uint64_t last = fetch->offset + fetch->bytes - 1;

    if (!range->given || range->none || !range->all_known || range->first != first ||
        range->last != smaller(last, range->total - 1) ||
        (response->has_length && response->length != range->last - range->first + 1))
        return bad(fetch, "the server sends another range than the one that was asked for");
    fetch->expected = range->last - range->first + 1;
    fetch->exact = true;
    return check_same(fetch, response, range->total);
}

/* A web server may send more than what was asked for, up to a limit. */
static enum ulp_status accept_web(struct fetch *fetch, const struct http_response *response) {
    const uint64_t first = fetch->offset + fetch->done, last = first + (fetch->bytes - fetch->done);
    enum ulp_status status;

    fetch->skip = first;
    fetch->ends_itself = !response->has_length;
    if (fetch->ends_itself)
        return ULP_OK;
    if (response->length > first && first > LIMIT_UNASKED_BYTES)
        return bad(fetch, "the server cannot send ranges, and the object is too long to be sent "
                          "whole");
    fetch->expected = smaller(response->length, last);
    status = check_same(fetch, response, response->length);
    if (status || response->length > first)
        return status;
    fetch->enough = true; /* nothing of it is wanted */
    return fail(ULP_E_CANCELLED, "enough");
}

static enum ulp_status accept_whole(struct fetch *fetch, const struct http_response *response) {
    if (fetch->remote->kind == REMOTE_WEB)
        return accept_web(fetch, response);
    if (fetch->offset + fetch->done || !response->has_length || response->length > fetch->bytes)
        return bad(fetch, "the server sends the whole object where a range was asked for");
    fetch->expected = response->length;
    fetch->exact = true;
    return check_same(fetch, response, response->length);
}

static enum ulp_status hear_head(void *user, const struct http_response *response) {
    struct fetch *fetch = user;

    fetch->skip = fetch->seen = fetch->expected = 0;
    fetch->ends_itself = fetch->exact = fetch->enough = false;
    if (response->encoded)
        return bad(fetch, "the server sends it compressed, which was not asked for");
    if (response->odd)
        return bad(fetch, "the head of the answer makes no sense");
    if (response->code == 206)
        return accept_part(fetch, response);
    if (response->code == 200)
        return accept_whole(fetch, response);
    return bad(fetch, "the answer is neither the object nor a part of it");
}

/* ---- asking ---- */

static struct remote_request request_of(struct fetch *fetch) {
    const bool web = fetch->remote->kind == REMOTE_WEB;
    const uint64_t first = fetch->offset + fetch->done, left = fetch->bytes - fetch->done;

    return (struct remote_request){
        .method = "GET",
        .key = fetch->key,
        .ranged = true,
        .first = first,
        .last = first + left - 1,
        .fresh = web && !cache_name(fetch->key), /* what has no hash in its name can change */
        .follows = true,
        .answer_bytes_max =
            web ? smaller(first, LIMIT_UNASKED_BYTES) + left + LIMIT_UNASKED_BYTES : left,
        .timed_bytes = left,
        .accept = hear_head,
        .piece = hear_piece,
        .user = fetch};
}

/* The object is not as long as the offset; where the server does not say how long it is, it is
 * asked, unless there cannot be anything. */
static enum ulp_status at_the_end(struct fetch *fetch, const struct http_response *response) {
    const struct http_range *range = &response->range;
    uint64_t total = range->total;
    enum ulp_status status = ULP_OK;

    if (fetch->offset && !(range->given && range->none && range->all_known))
        status = remote_stat(fetch->remote, fetch->key, &total);
    if (!status && (fetch->offset < total || fetch->done))
        status = bad(fetch, "the server refuses a range that there is");
    fetch->total = total;
    return status;
}

/* What one attempt has come to: `*done` if it is the end. */
static enum ulp_status look_at(struct fetch *fetch, enum ulp_status status,
                               const struct remote_request *request, struct http_response *response,
                               bool *done) {
    *done = true;
    if (fetch->enough && status == ULP_E_CANCELLED)
        return ULP_OK;
    *done = !remote_may_pass(status, response);
    if (status)
        return status;
    if (response->code == 416)
        return at_the_end(fetch, response);
    if (!http_success(response))
        return remote_failed(fetch->remote, request, response);
    if (fetch->ends_itself)
        return check_same(fetch, response, fetch->seen);
    if (fetch->seen >= fetch->expected)
        return ULP_OK;
    *done = false;
    return bad(fetch, "the answer is shorter than it says");
}

static enum ulp_status run(struct fetch *fetch) {
    struct retry retry = retry_begin(&fetch->remote->retry);
    uint64_t mark = 0;
    bool done = false;
    enum ulp_status status;

    for (;;) {
        struct http_response response = {0};
        const struct remote_request request = request_of(fetch);
        uint64_t after_s;

        fetch->enough = false;
        status = look_at(fetch, remote_once(fetch->remote, &request, &response), &request,
                         &response, &done);
        after_s = response.retry_after_s;
        http_response_release(&response);
        /* all of it may have come before the connection broke */
        if (status && !done && fetch->total_known &&
            fetch->done == smaller(fetch->bytes, fetch->total - fetch->offset))
            return ULP_OK;
        if (done)
            return status;
        if (fetch->done - mark >= PROGRESS_BYTES) {
            retry_refresh(&retry);
            mark = fetch->done;
        }
        if (!retry_again(&retry, after_s))
            return status;
    }
}

/* A range whose last byte would have no number is one to the end. */
static uint64_t within(uint64_t offset, uint64_t bytes) {
    return offset >= INT64_MAX ? 0 : smaller(bytes, (uint64_t)INT64_MAX - offset);
}

enum ulp_status remote_read(struct remote *remote, const char *key, uint64_t offset, void *data,
                            size_t bytes, size_t *ret_read, uint64_t *ret_total, char *ret_etag) {
    struct fetch fetch = {.remote = remote,
                          .key = key,
                          .offset = offset,
                          .bytes = within(offset, bytes),
                          .data = data};
    enum ulp_status status = fetch.bytes ? run(&fetch) : remote_stat(remote, key, &fetch.total);

    if (status)
        return status;
    *ret_read = (size_t)fetch.done;
    *ret_total = fetch.total;
    if (ret_etag)
        memcpy(ret_etag, fetch.etag, sizeof fetch.etag);
    return ULP_OK;
}

enum ulp_status remote_stream(struct remote *remote, const char *key, uint64_t offset,
                              uint64_t bytes, ulp_store_piece piece, void *user,
                              uint64_t *ret_total) {
    struct fetch fetch = {.remote = remote,
                          .key = key,
                          .offset = offset,
                          .bytes = within(offset, bytes),
                          .piece = piece,
                          .user = user,
                          .waiting = BUFFER(STREAM_BYTES)};
    enum ulp_status status = fetch.bytes ? run(&fetch) : remote_stat(remote, key, &fetch.total);

    if (!status)
        status = flush(&fetch);
    buffer_release(&fetch.waiting);
    if (!status)
        *ret_total = fetch.total;
    return status;
}

/* Some web servers do not know how long something is until they send it. */
static enum ulp_status measure(struct remote *remote, const char *key, uint64_t *ret_bytes) {
    uint8_t byte;
    struct fetch fetch = {.remote = remote, .key = key, .bytes = 1, .data = &byte};
    enum ulp_status status = run(&fetch);

    if (!status)
        *ret_bytes = fetch.total;
    return status;
}

enum ulp_status remote_stat(struct remote *remote, const char *key, uint64_t *ret_bytes) {
    const bool web = remote->kind == REMOTE_WEB;
    const struct remote_request request = {
        .method = "HEAD", .key = key, .follows = web, .fresh = web && !cache_name(key)};
    struct http_response response = {0};
    bool unknown = false;
    enum ulp_status status = remote_send(remote, &request, &response);

    if (!status && !http_success(&response) && response.code != 405 && response.code != 501)
        status = remote_failed(remote, &request, &response);
    unknown = !status && (!http_success(&response) || !response.has_length || response.odd ||
                          response.encoded);
    if (!status && !unknown)
        *ret_bytes = response.length;
    http_response_release(&response);
    if (!unknown)
        return status;
    if (web)
        return measure(remote, key, ret_bytes);
    return fail(ULP_E_IO, "store %s: the server does not say how long %s is",
                quote(remote->name).text, quote(key).text);
}
