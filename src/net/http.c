// SPDX-License-Identifier: Apache-2.0
/* What answers say, and what of it is shown; without a network. */
#include "net/http.h"

#include "base/memory.h"
#include "base/quote.h"
#include "net/timestamp.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void http_response_release(struct http_response *response) {
    if (response->body.data) /* some hold credentials */
        mem_wipe(response->body.data, response->body.room);
    buffer_release(&response->body);
    *response = (struct http_response){0};
}

/* ---- headers ---- */

static bool read_number(const char **at, uint64_t *ret_value) {
    const char *from = *at;
    uint64_t value = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (unsigned)(**at - '0'), &value))
            return false;
    *ret_value = value;
    return *at != from;
}

static bool skip(const char **at, char byte) {
    if (**at != byte)
        return false;
    (*at)++;
    return true;
}

/* "bytes 0-99/1234", with an asterisk for what is not known, or for a range that was refused. */
static bool read_range(const char *text, struct http_range *range) {
    struct http_range found = {.given = true};

    if (strncasecmp(text, "bytes ", 6) != 0)
        return false;
    text += 6;
    if (skip(&text, '*'))
        found.none = true;
    else if (!read_number(&text, &found.first) || !skip(&text, '-') ||
             !read_number(&text, &found.last) || found.last < found.first)
        return false;
    if (!skip(&text, '/'))
        return false;
    found.all_known = !skip(&text, '*');
    if (found.all_known &&
        (!read_number(&text, &found.total) || (!found.none && found.last >= found.total)))
        return false;
    if (*text)
        return false;
    *range = found;
    return true;
}

static void take_text(struct http_response *response, char to[HTTP_TEXT_BYTES], const char *value) {
    if (strlen(value) >= HTTP_TEXT_BYTES || (*to && strcmp(to, value) != 0))
        response->odd = true;
    else
        snprintf(to, HTTP_TEXT_BYTES, "%s", value);
}

static void take_length(struct http_response *response, const char *value) {
    uint64_t length = 0;

    if (!read_number(&value, &length) || *value ||
        (response->has_length && response->length != length))
        response->odd = true;
    response->has_length = true;
    response->length = length;
}

static void take_range(struct http_response *response, const char *value) {
    if (response->range.given || !read_range(value, &response->range))
        response->odd = true;
}

static void take_value(struct http_response *response, const char *name, const char *value) {
    if (!strcasecmp(name, "content-length"))
        take_length(response, value);
    else if (!strcasecmp(name, "content-range"))
        take_range(response, value);
    else if (!strcasecmp(name, "content-encoding")) /* the second is what S3 left of an upload */
        response->encoded |=
            *value && strcasecmp(value, "identity") && strcasecmp(value, "aws-chunked");
    else if (!strcasecmp(name, "etag"))
        take_text(response, response->etag, value);
    else if (!strcasecmp(name, "x-amz-bucket-region"))
        take_text(response, response->region, value);
    else if (!strcasecmp(name, "date"))
        timestamp_read_http(value, &response->date_s);
    else if (!strcasecmp(name, "retry-after")) /* a date would do too, but nobody sends one */
        read_number(&value, &response->retry_after_s);
}

/* Each answer begins with its own line, also one that only precedes another. */
static void begin_again(struct http_response *response) {
    struct buffer body = response->body;

    *response = (struct http_response){.body = body};
}

/* "HTTP/1.1 206 Partial Content", or "HTTP/2 206" */
static unsigned read_code(const char *line, size_t length) {
    const char *blank = memchr(line, ' ', length);
    unsigned code = 0;

    for (size_t i = 1; i <= 3; i++) {
        if (!blank || blank + i >= line + length || blank[i] < '0' || blank[i] > '9')
            return 0;
        code = code * 10 + (unsigned)(blank[i] - '0');
    }
    return code;
}

void http_take_header(struct http_response *response, const char *line, size_t length) {
    char name[64], value[HTTP_TEXT_BYTES + 1];
    const char *colon = memchr(line, ':', length), *end = line + length;
    size_t bytes;

    if (length >= 5 && !memcmp(line, "HTTP/", 5)) {
        begin_again(response);
        response->code = read_code(line, length);
        return;
    }
    if (!colon || (size_t)(colon - line) >= sizeof name || memchr(line, 0, length))
        return;
    memcpy(name, line, (size_t)(colon - line));
    name[colon - line] = 0;
    for (colon++; colon < end && (*colon == ' ' || *colon == '\t'); colon++)
        continue;
    while (end > colon && strchr(" \t\r\n", end[-1]))
        end--;
    bytes = (size_t)(end - colon);
    if (bytes > HTTP_TEXT_BYTES) /* too long for all that is looked for */
        bytes = HTTP_TEXT_BYTES;
    memcpy(value, colon, bytes);
    value[bytes] = 0;
    take_value(response, name, value);
}

/* ---- URLs ---- */

const char *http_url_path(const char *url) {
    const char *host = strstr(url, "://");

    host = host ? host + 3 : url;
    return host + strcspn(host, "/?#");
}

enum ulp_status http_url_check(const char *url) {
    const bool known = !strncmp(url, "http://", 7) || !strncmp(url, "https://", 8);
    const char *host = known ? strstr(url, "://") + 3 : url, *path = http_url_path(url);

    if (!known || path == host)
        return fail(ULP_E_USAGE, "%s is no address: http:// or https:// and the name of a host",
                    http_show_url(url).text);
    if (memchr(host, '@', (size_t)(path - host)))
        return fail(
            ULP_E_USAGE,
            "%s: a name or a password in an address is not taken, since addresses are shown",
            http_show_url(url).text);
    for (const char *at = url; *at; at++)
        if (*at <= ' ' || *at >= 0x7f || *at == '\\' || *at == '"')
            return fail(ULP_E_USAGE, "%s: an address has no blanks and no letters beyond ASCII",
                        http_show_url(url).text);
    return strlen(url) < HTTP_URL_BYTES_MAX
               ? ULP_OK
               : fail(ULP_E_LIMIT, "an address of more than %d bytes", HTTP_URL_BYTES_MAX);
}

/* ---- what is shown ---- */

struct http_shown http_show_url(const char *url) {
    struct http_shown shown;
    const char *path = http_url_path(url), *host = strstr(url, "://"), *at;
    size_t scheme;

    host = host && host < path ? host + 3 : url;
    scheme = (size_t)(host - url);
    for (at = host; at < path; at++)
        if (*at == '@')
            host = at + 1;
    path += strcspn(path, "?#");
    snprintf(shown.text, sizeof shown.text, "%.*s%.*s%s", scheme < 10 ? (int)scheme : 10, url,
             path - host < 600 ? (int)(path - host) : 600, host, *path ? "?..." : "");
    snprintf(shown.text, sizeof shown.text, "%s", quote(shown.text).text);
    return shown;
}

/* How much of the secret stands here: all of it, or what is left of it at the end. */
static size_t matches(const char *at, size_t left, const char *secret) {
    const size_t length = strlen(secret), compared = left < length ? left : length;

    /* a few letters at the end are chance, and tell nobody anything */
    return length && (compared == length || compared >= 8) && !memcmp(at, secret, compared)
               ? compared
               : 0;
}

struct http_shown http_show_text(const char *text, size_t bytes, const char *const *secrets,
                                 size_t secret_count) {
    static const char struck[] = "[secret]";
    char plain[400];
    size_t used = 0;
    struct http_shown shown;

    for (size_t at = 0; at < bytes && used + sizeof struck < sizeof plain;) {
        size_t hidden = 0;

        for (size_t i = 0; i < secret_count && !hidden; i++)
            hidden = secrets[i] ? matches(text + at, bytes - at, secrets[i]) : 0;
        if (hidden) {
            memcpy(plain + used, struck, sizeof struck - 1);
            used += sizeof struck - 1;
            at += hidden;
        } else {
            plain[used++] = text[at++];
        }
    }
    snprintf(shown.text, sizeof shown.text, "%s", quote_bytes(plain, used).text);
    return shown;
}
