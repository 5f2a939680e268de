// SPDX-License-Identifier: Apache-2.0
#include "net/sigv4.h"

#include "base/memory.h"
#include "hash/hmac.h"
#include "net/timestamp.h"

#include <stdlib.h>
#include <string.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define HEADERS_MAX 32u

/* The longest that region and service may be together; they come from the environment. */
#define SCOPE_BYTES 512u

/* Names and values together stay within what servers take. */
#define TEXT_BYTES_MAX (1u << 20)

/* Any number of texts, the last of which is NULL. */
static enum ulp_status put(struct buffer *into, const char *const *texts) {
    enum ulp_status status = ULP_OK;

    for (; !status && *texts; texts++)
        status = buffer_append_text(into, *texts);
    return status;
}

#define PUT(into, ...) put(into, (const char *const[]){__VA_ARGS__, NULL})

static char lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

static int by_name(const void *a, const void *b) {
    const char *one = (*(const struct http_header *const *)a)->name;
    const char *two = (*(const struct http_header *const *)b)->name;

    while (*one && lower(*one) == lower(*two)) {
        one++;
        two++;
    }
    return (unsigned char)lower(*one) - (unsigned char)lower(*two);
}

static enum ulp_status put_name(struct buffer *into, const char *name) {
    enum ulp_status status = ULP_OK;

    for (; !status && *name; name++) {
        const char byte = lower(*name);

        status = buffer_append(into, &byte, 1);
    }
    return status;
}

/* Without blanks at the ends, and with one where there are several. */
static enum ulp_status put_value(struct buffer *into, const char *value) {
    enum ulp_status status = ULP_OK;

    value += strspn(value, " ");
    while (!status && *value) {
        size_t word = strcspn(value, " ");

        status = buffer_append(into, value, word);
        value += word;
        value += strspn(value, " ");
        if (!status && *value)
            status = buffer_append_text(into, " ");
    }
    return status;
}

struct sorted {
    const struct http_header *headers[HEADERS_MAX];
    size_t count;
};

static enum ulp_status sort(const struct sigv4 *request, struct sorted *sorted) {
    if (request->header_count > HEADERS_MAX)
        return fail(ULP_E_INTERNAL, "more than %u headers to sign", HEADERS_MAX);
    sorted->count = request->header_count;
    for (size_t i = 0; i < sorted->count; i++)
        sorted->headers[i] = &request->headers[i];
    if (sorted->count)
        qsort(sorted->headers, sorted->count, sizeof sorted->headers[0], by_name);
    return ULP_OK;
}

static enum ulp_status put_names(struct buffer *into, const struct sorted *sorted) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < sorted->count; i++) {
        if (i)
            status = buffer_append_text(into, ";");
        if (!status)
            status = put_name(into, sorted->headers[i]->name);
    }
    return status;
}

static enum ulp_status put_headers(struct buffer *into, const struct sorted *sorted) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < sorted->count; i++) {
        status = put_name(into, sorted->headers[i]->name);
        if (!status)
            status = buffer_append_text(into, ":");
        if (!status)
            status = put_value(into, sorted->headers[i]->value);
        if (!status)
            status = buffer_append_text(into, "\n");
    }
    return status;
}

enum ulp_status sigv4_canonical(const struct sigv4 *request, struct buffer *into) {
    struct sorted sorted = {.count = 0};
    enum ulp_status status = sort(request, &sorted);

    if (!status)
        status = PUT(into, request->method, "\n", request->path, "\n", request->query, "\n");
    if (!status)
        status = put_headers(into, &sorted);
    if (!status)
        status = buffer_append_text(into, "\n");
    if (!status)
        status = put_names(into, &sorted);
    return status ? status : PUT(into, "\n", request->payload_hash);
}

/* The key of one day, region and service. */
static enum ulp_status derive(const struct sigv4 *request, const char *day,
                              uint8_t ret_key[SHA256_BYTES]) {
    const char *const steps[] = {day, request->region, request->service, "aws4_request"};
    const char *secret = request->credentials->secret;
    const size_t length = strlen(secret);
    char *first = NULL;
    enum ulp_status status = mem_zeroed(length + 5, 1, &first);

    if (status)
        return status;
    memcpy(first, "AWS4", 4);
    memcpy(first + 4, secret, length);
    status = hmac_sha256(first, length + 4, steps[0], strlen(steps[0]), ret_key);
    for (size_t i = 1; !status && i < 4; i++)
        status = hmac_sha256(ret_key, SHA256_BYTES, steps[i], strlen(steps[i]), ret_key);
    mem_wipe(first, length + 4);
    mem_free(first);
    return status;
}

struct scope {
    char time[TIMESTAMP_BYTES], day[9];
    struct buffer text; /* day/region/service/aws4_request */
};

static enum ulp_status make_scope(const struct sigv4 *request, struct scope *scope) {
    timestamp_write(request->time_s, scope->time);
    memcpy(scope->day, scope->time, 8);
    scope->day[8] = 0;
    scope->text = BUFFER(SCOPE_BYTES);
    return PUT(&scope->text, scope->day, "/", request->region, "/", request->service,
               "/aws4_request");
}

static enum ulp_status make_signature(const struct sigv4 *request, const struct scope *scope,
                                      char ret_hex[SHA256_HEX_BYTES]) {
    struct buffer text = BUFFER(TEXT_BYTES_MAX);
    uint8_t digest[SHA256_BYTES], key[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    enum ulp_status status = sigv4_canonical(request, &text);

    if (!status)
        status = sha256_of(text.data, text.used, digest);
    if (!status) {
        sha256_hex(digest, hex);
        buffer_clear(&text);
        status =
            PUT(&text, ALGORITHM "\n", scope->time, "\n", buffer_text(&scope->text), "\n", hex);
    }
    if (!status)
        status = derive(request, scope->day, key);
    if (!status)
        status = hmac_sha256(key, sizeof key, text.data, text.used, digest);
    if (!status)
        sha256_hex(digest, ret_hex);
    mem_wipe(key, sizeof key);
    buffer_release(&text);
    return status;
}

enum ulp_status sigv4_sign(const struct sigv4 *request, struct buffer *authorization) {
    struct scope scope;
    struct sorted sorted = {.count = 0};
    char signature[SHA256_HEX_BYTES];
    enum ulp_status status = make_scope(request, &scope);

    if (!status)
        status = make_signature(request, &scope, signature);
    if (!status)
        status = sort(request, &sorted);
    if (!status)
        status = PUT(authorization, ALGORITHM " Credential=", request->credentials->key_id, "/",
                     buffer_text(&scope.text), ", SignedHeaders=");
    if (!status)
        status = put_names(authorization, &sorted);
    if (!status)
        status = PUT(authorization, ", Signature=", signature);
    buffer_release(&scope.text);
    return status;
}
