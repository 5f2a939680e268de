// SPDX-License-Identifier: Apache-2.0
/*
 * Writing to S3. What fits into one part is one request; a larger object goes in parts, some at a
 * time, and appears when they are joined. Conditions on the joining are ignored by some servers, so
 * nothing that decides anything is written this way: large objects are named by their contents.
 */
#include "base/memory.h"
#include "base/quote.h"
#include "base/thread.h"
#include "hash/hmac.h"
#include "net/xml.h"
#include "store/s3.h"

#include <stdio.h>
#include <string.h>

/* Joining many parts takes some servers minutes. */
#define JOIN_PATIENCE_NS (UINT64_C(300) * 1000000000)

#define UPLOAD_ID_BYTES_MAX 1024u

struct s3_writer;

/* One part on its way. */
struct sending {
    struct thread thread;
    struct s3_writer *writer;
    struct buffer bytes;
    uint32_t number;
    enum ulp_status status;
    struct error_note note;
    uint8_t digest[SHA256_BYTES];
    char etag[HTTP_TEXT_BYTES];
};

struct s3_writer {
    struct remote *remote;
    char *key;
    uint64_t total;
    struct buffer filling;
    struct buffer upload; /* what S3 calls the object that is under construction; "": none */
    struct sending sendings[S3_PARTS_AT_ONCE];
    uint32_t parts;        /* begun */
    struct buffer joined;  /* the list of parts that have arrived */
    struct buffer digests; /* of these, one behind the other */
};

enum ulp_status s3_put_begin(void *self, const char *key, void **ret_writer) {
    struct s3_writer *writer = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *writer, &writer);

    if (!status)
        status = mem_copy_text(key, &writer->key);
    if (status) {
        mem_free(writer);
        return status;
    }
    writer->remote = self;
    writer->filling = BUFFER(S3_PART_BYTES);
    writer->upload = BUFFER(UPLOAD_ID_BYTES_MAX);
    writer->joined = BUFFER(LIMIT_UPLOAD_PARTS * (HTTP_TEXT_BYTES * 6 + 128));
    writer->digests = BUFFER(LIMIT_UPLOAD_PARTS * SHA256_BYTES);
    for (size_t i = 0; i < S3_PARTS_AT_ONCE; i++)
        writer->sendings[i].bytes = BUFFER(S3_PART_BYTES);
    *ret_writer = writer;
    return ULP_OK;
}

/* Sends one request, of which only success will do. */
static enum ulp_status send(struct s3_writer *writer, const struct remote_request *request,
                            struct http_response *response) {
    enum ulp_status status = remote_send(writer->remote, request, response);

    if (!status && !http_success(response))
        status = remote_failed(writer->remote, request, response);
    return status;
}

/* ---- parts ---- */

static enum ulp_status hear_upload(void *user, const char *path, const char *text) {
    return strcmp(path, "InitiateMultipartUploadResult/UploadId") != 0
               ? ULP_OK
               : buffer_append_text(user, text);
}

static enum ulp_status begin_upload(struct s3_writer *writer) {
    struct query_pair query[] = {{"uploads", ""}};
    const struct remote_request request = {.method = "POST",
                                           .key = writer->key,
                                           .query = query,
                                           .query_count = 1,
                                           .answer_bytes_max = LIMIT_ERROR_BYTES};
    struct http_response response = {0};
    enum ulp_status status = send(writer, &request, &response);

    if (!status)
        status = xml_read("the beginning of an upload", buffer_text(&response.body),
                          response.body.used, hear_upload, &writer->upload);
    if (!status && !writer->upload.used)
        status = fail(ULP_E_IO, "store %s: an upload that begins has no name",
                      quote(writer->remote->name).text);
    http_response_release(&response);
    return status ? status : buffer_append_text(&writer->joined, "<CompleteMultipartUpload>");
}

static enum ulp_status send_part(struct sending *sending) {
    struct s3_writer *writer = sending->writer;
    char number[16];
    struct query_pair query[] = {{"partNumber", number},
                                 {"uploadId", buffer_text(&writer->upload)}};
    const struct remote_request request = {.method = "PUT",
                                           .key = writer->key,
                                           .query = query,
                                           .query_count = 2,
                                           .body = sending->bytes.data,
                                           .body_bytes = sending->bytes.used,
                                           .body_digest = sending->digest,
                                           .answer_bytes_max = LIMIT_ERROR_BYTES};
    struct http_response response = {0};
    enum ulp_status status = sha256_of(sending->bytes.data, sending->bytes.used, sending->digest);

    snprintf(number, sizeof number, "%u", sending->number);
    if (!status)
        status = send(writer, &request, &response);
    if (!status && (!*response.etag || response.odd))
        status = fail(ULP_E_IO, "store %s: a part of %s arrived without a name",
                      quote(writer->remote->name).text, quote(writer->key).text);
    memcpy(sending->etag, response.etag, sizeof sending->etag);
    http_response_release(&response);
    return status;
}

static void run_part(void *user) {
    struct sending *sending = user;

    sending->status = send_part(sending);
    if (sending->status)
        error_save(&sending->note);
}

static enum ulp_status put_escaped(struct buffer *into, const char *text) {
    enum ulp_status status = ULP_OK;

    for (; !status && *text; text++) {
        if (strchr("<>&\"'", *text))
            status = buffer_append_format(into, "&#%d;", *text);
        else
            status = buffer_append(into, text, 1);
    }
    return status;
}

/* Waits for a part, if there is one, and notes it. They are waited for in their order. */
static enum ulp_status finish_part(struct s3_writer *writer, struct sending *sending) {
    enum ulp_status status;

    if (!sending->thread.started)
        return ULP_OK;
    thread_join(&sending->thread);
    buffer_clear(&sending->bytes);
    if (sending->status) {
        error_restore(&sending->note);
        return sending->status;
    }
    status = buffer_append_format(&writer->joined, "<Part><PartNumber>%u</PartNumber><ETag>",
                                  sending->number);
    if (!status)
        status = put_escaped(&writer->joined, sending->etag);
    if (!status)
        status = buffer_append_text(&writer->joined, "</ETag></Part>");
    return status ? status : buffer_append(&writer->digests, sending->digest, SHA256_BYTES);
}

static enum ulp_status begin_part(struct s3_writer *writer) {
    struct sending *sending = &writer->sendings[writer->parts % S3_PARTS_AT_ONCE];
    struct buffer filled = writer->filling;
    enum ulp_status status = finish_part(writer, sending);

    if (!status && !writer->upload.used)
        status = begin_upload(writer);
    if (!status && writer->parts == LIMIT_UPLOAD_PARTS)
        status = fail(ULP_E_LIMIT, "store %s: %s has more than %u parts of %zu bytes",
                      quote(writer->remote->name).text, quote(writer->key).text, LIMIT_UPLOAD_PARTS,
                      S3_PART_BYTES);
    if (status)
        return status;
    writer->filling = sending->bytes;
    sending->bytes = filled;
    sending->writer = writer;
    sending->number = ++writer->parts;
    return thread_start(&sending->thread, run_part, sending);
}

/* A part goes when there is more than it, so that an object of one part is one request. */
enum ulp_status s3_put_write(void *self, void *to, const void *data, size_t bytes) {
    struct s3_writer *writer = to;
    const uint8_t *from = data;
    enum ulp_status status = ULP_OK;

    (void)self;
    writer->total += bytes;
    while (!status && bytes) {
        const size_t room = S3_PART_BYTES - writer->filling.used,
                     take = bytes < room ? bytes : room;

        if (!room) {
            status = begin_part(writer);
            continue;
        }
        status = buffer_append(&writer->filling, from, take);
        from += take;
        bytes -= take;
    }
    return status;
}

/* ---- the end ---- */

static enum ulp_status put_whole(struct s3_writer *writer) {
    const struct remote_request request = {.method = "PUT",
                                           .key = writer->key,
                                           .body = writer->filling.data,
                                           .body_bytes = writer->filling.used,
                                           .answer_bytes_max = LIMIT_ERROR_BYTES};
    struct http_response response = {0};
    enum ulp_status status = send(writer, &request, &response);

    http_response_release(&response);
    return status;
}

struct joining {
    bool done;
};

static enum ulp_status hear_join(void *user, const char *path, const char *text) {
    struct joining *joining = user;

    (void)text;
    joining->done = joining->done || !strcmp(path, "CompleteMultipartUploadResult");
    return ULP_OK;
}

/* A success may turn out to be none within its body, after the server has thought about it. */
static bool was_joined(const struct http_response *response) {
    struct joining joining = {false};
    struct error_note note;

    error_save(&note);
    if (xml_read("an answer", buffer_text(&response->body), response->body.used, hear_join,
                 &joining))
        joining.done = false;
    error_restore(&note);
    return joining.done;
}

static enum ulp_status join_once(struct s3_writer *writer, struct http_response *response) {
    struct query_pair query[] = {{"uploadId", buffer_text(&writer->upload)}};
    const struct remote_request request = {.method = "POST",
                                           .key = writer->key,
                                           .query = query,
                                           .query_count = 1,
                                           .body = writer->joined.data,
                                           .body_bytes = writer->joined.used,
                                           .answer_bytes_max = LIMIT_ERROR_BYTES,
                                           .patience_ns = JOIN_PATIENCE_NS};
    enum ulp_status status = remote_once(writer->remote, &request, response);

    if (!status && !(http_success(response) && was_joined(response)))
        status = remote_failed(writer->remote, &request, response);
    return status;
}

static enum ulp_status check_length(struct s3_writer *writer) {
    uint64_t bytes = 0;
    enum ulp_status status = remote_stat(writer->remote, writer->key, &bytes);

    if (status == ULP_E_NOT_FOUND)
        status = fail(ULP_E_IO, "store %s: the parts of %s have arrived, but it is not there",
                      quote(writer->remote->name).text, quote(writer->key).text);
    if (!status && bytes != writer->total)
        status = fail(ULP_E_IO, "store %s: %s has %llu bytes where %llu were written",
                      quote(writer->remote->name).text, quote(writer->key).text,
                      (unsigned long long)bytes, (unsigned long long)writer->total);
    return status;
}

/* Reading back: the parts, one by one. */
struct comparing {
    const struct buffer *digests;
    size_t part;
    uint64_t in_part;
    struct sha256 *hash;
};

static enum ulp_status compare_part(struct comparing *comparing) {
    uint8_t digest[SHA256_BYTES];
    const size_t at = comparing->part++ * SHA256_BYTES;
    enum ulp_status status = sha256_end(comparing->hash, digest);

    sha256_free(comparing->hash);
    comparing->hash = NULL;
    comparing->in_part = 0;
    if (!status && (at + SHA256_BYTES > comparing->digests->used ||
                    memcmp(comparing->digests->data + at, digest, SHA256_BYTES) != 0))
        status = fail(ULP_E_IO, "an object that was to be written is another one");
    return status;
}

static enum ulp_status compare_piece(void *user, uint64_t offset, const void *data, size_t bytes) {
    struct comparing *comparing = user;
    const uint8_t *from = data;
    enum ulp_status status = ULP_OK;

    (void)offset;
    while (!status && bytes) {
        const uint64_t left = S3_PART_BYTES - comparing->in_part;
        const size_t take = bytes < left ? bytes : (size_t)left;

        if (!comparing->hash)
            status = sha256_begin(&comparing->hash);
        if (!status)
            status = sha256_add(comparing->hash, from, take);
        comparing->in_part += take;
        from += take;
        bytes -= take;
        if (!status && comparing->in_part == S3_PART_BYTES)
            status = compare_part(comparing);
    }
    return status;
}

/* There is no such upload any more: perhaps since an answer was lost, and it is joined. That it is
 * this object, and not one that was there before, is seen by reading it. */
static enum ulp_status check_bytes(struct s3_writer *writer) {
    struct comparing comparing = {.digests = &writer->digests};
    uint64_t total = 0;
    enum ulp_status status = check_length(writer);

    if (!status)
        status = remote_stream(writer->remote, writer->key, 0, writer->total, compare_piece,
                               &comparing, &total);
    if (!status && comparing.hash)
        status = compare_part(&comparing);
    sha256_free(comparing.hash);
    return status;
}

/* Whether to join once more: the server was busy, or said so in its success, or nothing came. */
static bool join_may_pass(enum ulp_status status, const struct http_response *response) {
    if (http_success(response))
        return status && !strcmp(remote_error(response).code, "InternalError");
    return remote_may_pass(response->code ? ULP_OK : status, response);
}

/* What counts is what is there then. */
static enum ulp_status join(struct s3_writer *writer) {
    struct retry retry = retry_begin(&writer->remote->retry);
    struct http_response response = {0};
    unsigned code;
    enum ulp_status status = buffer_append_text(&writer->joined, "</CompleteMultipartUpload>");

    if (status)
        return status;
    do {
        status = join_once(writer, &response);
    } while (join_may_pass(status, &response) && retry_again(&retry, response.retry_after_s));
    code = response.code;
    http_response_release(&response);
    if (status)
        return code == 404 ? check_bytes(writer) : status;
    return check_length(writer);
}

static enum ulp_status put_parts(struct s3_writer *writer) {
    enum ulp_status status = begin_part(writer);

    for (uint32_t i = 0; !status && i < S3_PARTS_AT_ONCE; i++)
        status = finish_part(writer, &writer->sendings[(writer->parts + i) % S3_PARTS_AT_ONCE]);
    return status ? status : join(writer);
}

/* Nothing of it stays, as far as that can be had; what S3 keeps of it is never seen. */
static void abandon(struct s3_writer *writer) {
    struct query_pair query[] = {{"uploadId", buffer_text(&writer->upload)}};
    const struct remote_request request = {.method = "DELETE",
                                           .key = writer->key,
                                           .query = query,
                                           .query_count = 1,
                                           .answer_bytes_max = LIMIT_ERROR_BYTES};
    struct http_response response = {0};
    struct error_note note;

    error_save(&note);
    remote_send(writer->remote, &request, &response);
    error_restore(&note);
    http_response_release(&response);
}

static void writer_free(struct s3_writer *writer) {
    for (size_t i = 0; i < S3_PARTS_AT_ONCE; i++) {
        thread_join(&writer->sendings[i].thread);
        buffer_release(&writer->sendings[i].bytes);
    }
    buffer_release(&writer->filling);
    buffer_release(&writer->upload);
    buffer_release(&writer->joined);
    buffer_release(&writer->digests);
    mem_free(writer->key);
    mem_free(writer);
}

enum ulp_status s3_put_end(void *self, void *to, int keep) {
    struct s3_writer *writer = to;
    enum ulp_status status = ULP_OK;

    (void)self;
    if (keep)
        status = writer->parts ? put_parts(writer) : put_whole(writer);
    for (size_t i = 0; i < S3_PARTS_AT_ONCE; i++)
        thread_join(&writer->sendings[i].thread);
    if (writer->upload.used && (!keep || status))
        abandon(writer);
    writer_free(writer);
    return status;
}
