// SPDX-License-Identifier: Apache-2.0
#include "store/remote.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "hash/hmac.h"
#include "net/sigv4.h"
#include "net/timestamp.h"
#include "net/xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* Servers refuse what was signed a quarter of an hour away from their own time. */
#define SKEW_MAX_S 240

#define REDIRECTS_MAX 3u
#define DURATION_MAX_S 86400u

/* How often somebody else's write at the same moment is waited for. */
#define CONFLICTS_MAX 2u

/* ---- opening ---- */

/* What the option says, or the variable; 0: neither. */
static enum ulp_status find_duration(uint32_t option_ms, const char *variable, uint64_t *ret_ns) {
    const char *text = environment(variable);
    unsigned long seconds;

    *ret_ns = option_ms * MS;
    if (option_ms || !text)
        return ULP_OK;
    if (strspn(text, "0123456789") != strlen(text))
        return fail(ULP_E_USAGE, "%s is %s: it takes a whole number of seconds", variable,
                    quote(text).text);
    seconds = strtoul(text, NULL, 10);
    *ret_ns = (seconds < DURATION_MAX_S ? seconds : DURATION_MAX_S) * S;
    return ULP_OK;
}

/* A word that is neither could be meant either way, and one of them sends what should be signed. */
static enum ulp_status find_anonymous(bool option, bool *ret_anonymous) {
    const char *text = environment("ULPSYNC_S3_ANONYMOUS");

    if (!option && text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return fail(ULP_E_USAGE,
                    "ULPSYNC_S3_ANONYMOUS is %s: it takes 1, or 0 for requests that are signed",
                    quote(text).text);
    *ret_anonymous = option || (text && *text == '1');
    return ULP_OK;
}

static enum ulp_status make_client(const struct ulp_store_options *options,
                                   struct http_client **ret_client) {
    const char *bundle = options->ca_file ? options->ca_file : environment("AWS_CA_BUNDLE");
    uint64_t timeout_ns = 0;
    enum ulp_status status =
        find_duration(options->timeout_ms, "ULPSYNC_STALL_SECONDS", &timeout_ns);
    const struct http_limits limits = {.connect_ns = timeout_ns < 10 * S ? timeout_ns : 10 * S,
                                       .answer_ns = timeout_ns,
                                       .stall_ns = timeout_ns};

    return status ? status : http_client_new(&limits, bundle, ret_client);
}

enum ulp_status remote_open(enum remote_kind kind, const char *name, const char *base,
                            const char *prefix, const char *region,
                            const struct ulp_store_options *options, struct remote *ret_remote) {
    struct remote remote = {.kind = kind, .retry = {.attempts = options->attempts}};
    bool anonymous = false;
    enum ulp_status status =
        find_duration(options->give_up_ms, "ULPSYNC_OPERATION_SECONDS", &remote.retry.total_ns);

    if (!status && kind == REMOTE_S3)
        status = find_anonymous(options->anonymous, &anonymous);
    if (!status)
        status = mem_copy_text(name, &remote.name);
    if (!status)
        status = mem_copy_text(base, &remote.base);
    if (!status)
        status = mem_copy_text(prefix, &remote.prefix);
    if (!status)
        status = mem_copy_text(region, &remote.region);
    if (!status)
        status = http_url_check(base);
    if (!status)
        status = make_client(options, &remote.client);
    if (status == ULP_E_UNSUPPORTED)
        status = fail(status, "%s: %s", quote(name).text, ulp_last_error());
    if (!status && kind == REMOTE_S3)
        status = credential_source_new(anonymous, remote.client, region, &remote.credentials);
    if (status)
        remote_release(&remote);
    else
        *ret_remote = remote;
    return status;
}

void remote_release(struct remote *remote) {
    credential_source_free(remote->credentials);
    http_client_free(remote->client);
    mem_free(remote->name);
    mem_free(remote->base);
    mem_free(remote->prefix);
    mem_free(remote->region);
    remote->credentials = NULL;
    remote->client = NULL;
    remote->name = remote->base = remote->prefix = remote->region = NULL;
}

/* ---- one request ---- */

#define HEADERS_MAX 12u
#define RANGE_BYTES 64u

/* A request as it is sent. */
struct outgoing {
    struct buffer url, authorization;
    size_t query_at; /* where the query begins, or the end */
    char time[TIMESTAMP_BYTES], hash[SHA256_HEX_BYTES], range[RANGE_BYTES];
    struct http_header headers[HEADERS_MAX];
    size_t count;
};

static void outgoing_release(struct outgoing *out) {
    buffer_release(&out->url);
    buffer_release(&out->authorization);
}

static void add_header(struct outgoing *out, const char *name, const char *value) {
    out->headers[out->count++] = (struct http_header){name, value};
}

static enum ulp_status write_url(const struct remote *remote, const struct remote_request *request,
                                 struct outgoing *out) {
    enum ulp_status status = buffer_append_text(&out->url, remote->base);

    if (!status && (request->key || !*http_url_path(remote->base)))
        status = buffer_append_text(&out->url, "/");
    if (!status && request->key)
        status = encode_percent(&out->url, remote->prefix, KEEP_SLASHES);
    if (!status && request->key)
        status = encode_percent(&out->url, request->key, KEEP_SLASHES);
    out->query_at = out->url.used;
    if (!status && request->query_count)
        status = buffer_append_text(&out->url, "?");
    if (!status && request->query_count)
        status = encode_query(&out->url, request->query, request->query_count);
    return status;
}

/* Those that nobody on the way has to leave alone; they are not signed. */
static void add_plain_headers(const struct remote *remote, const struct remote_request *request,
                              struct outgoing *out) {
    if (remote->kind == REMOTE_WEB) /* some compress where nothing is said */
        add_header(out, "Accept-Encoding", "identity");
    if (request->fresh)
        add_header(out, "Cache-Control", "no-cache");
    if (!request->ranged)
        return;
    snprintf(out->range, sizeof out->range, "bytes=%llu-%llu", (unsigned long long)request->first,
             (unsigned long long)request->last);
    add_header(out, "Range", out->range);
}

static enum ulp_status hash_body(const struct remote_request *request, struct outgoing *out) {
    uint8_t digest[SHA256_BYTES];
    enum ulp_status status = ULP_OK;

    if (request->body_digest)
        memcpy(digest, request->body_digest, sizeof digest);
    else
        status = sha256_of(request->body, request->body_bytes, digest);
    if (!status)
        sha256_hex(digest, out->hash);
    return status;
}

/* The headers so far, but `host`, which libcurl sends itself, are those to be signed. */
static enum ulp_status sign(const struct remote *remote, const struct remote_request *request,
                            const struct credentials *credentials, uint64_t time_s,
                            struct outgoing *out) {
    const char *host = strstr(remote->base, "://") + 3, *path = http_url_path(remote->base);
    struct http_header headers[HEADERS_MAX + 1];
    struct buffer name = BUFFER(HTTP_URL_BYTES_MAX), way = BUFFER(HTTP_URL_BYTES_MAX);
    const char *url_path = http_url_path(buffer_text(&out->url));
    const char *query = buffer_text(&out->url) + out->query_at;
    enum ulp_status status = buffer_append(&name, host, (size_t)(path - host));

    if (!status)
        status = buffer_append(&way, url_path, (size_t)(query - url_path));
    memcpy(headers, out->headers, out->count * sizeof headers[0]);
    headers[out->count] = (struct http_header){"host", buffer_text(&name)};
    if (!status)
        status = sigv4_sign(&(struct sigv4){.method = request->method,
                                            .path = buffer_text(&way),
                                            .query = *query == '?' ? query + 1 : query,
                                            .headers = headers,
                                            .header_count = out->count + 1,
                                            .payload_hash = out->hash,
                                            .time_s = time_s,
                                            .region = remote->region,
                                            .service = "s3",
                                            .credentials = credentials},
                            &out->authorization);
    buffer_release(&name);
    buffer_release(&way);
    return status;
}

static int64_t wall_s(void) {
    return (int64_t)(clock_wall_ns() / S);
}

static enum ulp_status write_signed(struct remote *remote, const struct remote_request *request,
                                    const struct credentials *credentials, int64_t skew_s,
                                    struct outgoing *out) {
    const uint64_t time_s = (uint64_t)(wall_s() + skew_s);
    enum ulp_status status = ULP_OK;

    if (request->if_none)
        add_header(out, "If-None-Match", "*");
    if (!credentials->key_id)
        return ULP_OK;
    timestamp_write(time_s, out->time);
    status = hash_body(request, out);
    add_header(out, "x-amz-content-sha256", out->hash);
    add_header(out, "x-amz-date", out->time);
    if (credentials->token)
        add_header(out, "x-amz-security-token", credentials->token);
    if (!status)
        status = sign(remote, request, credentials, time_s, out);
    if (!status)
        add_header(out, "Authorization", buffer_text(&out->authorization));
    return status;
}

static enum ulp_status transmit(struct remote *remote, const struct remote_request *request,
                                const char *url, const struct http_header *headers, size_t count,
                                struct http_response *response) {
    return http_send(remote->client,
                     &(struct http_request){.method = request->method,
                                            .url = url,
                                            .headers = headers,
                                            .header_count = count,
                                            .body = request->body,
                                            .body_bytes = request->body_bytes,
                                            .answer_bytes_max = request->answer_bytes_max,
                                            .timed_bytes = request->timed_bytes,
                                            .patience_ns = request->patience_ns,
                                            .accept = request->accept,
                                            .piece = request->piece,
                                            .user = request->user},
                     response);
}

/* With nothing but what is wanted: neither signature nor token leave for another address. */
static enum ulp_status follow(struct remote *remote, const struct remote_request *request,
                              struct http_response *response) {
    bool encrypted = !strncmp(remote->base, "https://", 8);
    enum ulp_status status = ULP_OK;

    for (unsigned i = 0; !status && i < REDIRECTS_MAX; i++) {
        struct outgoing out = {.count = 0};
        char url[HTTP_URL_BYTES_MAX];

        if (response->code < 301 || response->code > 308 || response->code == 304 ||
            !*response->redirect || *response->region)
            return ULP_OK;
        memcpy(url, response->redirect, sizeof url);
        if (http_url_check(url) || (encrypted && strncmp(url, "https://", 8) != 0))
            status = fail(ULP_E_IO, "store %s: it points to %s, which is not followed",
                          quote(remote->name).text, http_show_url(url).text);
        encrypted = !strncmp(url, "https://", 8);
        add_plain_headers(remote, request, &out);
        if (!status)
            status = transmit(remote, request, url, out.headers, out.count, response);
    }
    return status;
}

static enum ulp_status once(struct remote *remote, const struct remote_request *request,
                            int64_t skew_s, struct http_response *response) {
    struct credentials credentials = {0};
    struct outgoing out = {.url = BUFFER(HTTP_URL_BYTES_MAX),
                           .authorization = BUFFER(LIMIT_HTTP_HEADER_BYTES)};
    enum ulp_status status = ULP_OK;

    http_response_release(response);
    if (remote->credentials)
        status = credential_source_get(remote->credentials, &credentials);
    if (!status)
        status = write_url(remote, request, &out);
    if (!status)
        status = write_signed(remote, request, &credentials, skew_s, &out);
    if (!status) {
        add_plain_headers(remote, request, &out);
        status = transmit(remote, request, buffer_text(&out.url), out.headers, out.count, response);
    }
    if (!status && request->follows)
        status = follow(remote, request, response);
    outgoing_release(&out);
    credentials_release(&credentials);
    return status;
}

/* ---- what can be put right ---- */

static void keep(char *to, size_t room, const char *text) {
    snprintf(to, room, "%s", text);
}

static enum ulp_status hear_error(void *user, const char *path, const char *text) {
    struct remote_error *error = user;

    if (!strcmp(path, "Error/Code"))
        keep(error->code, sizeof error->code, text);
    if (!strcmp(path, "Error/Message"))
        keep(error->message, sizeof error->message, text);
    if (!strcmp(path, "Error/Region"))
        keep(error->region, sizeof error->region, text);
    return ULP_OK;
}

/* A message that is cut, or is something else, gives as much as could be read. */
struct remote_error remote_error(const struct http_response *response) {
    struct remote_error error = {.code = ""};
    struct error_note note;

    error_save(&note);
    if (response->body.used)
        xml_read("an answer", buffer_text(&response->body), response->body.used, hear_error,
                 &error);
    error_restore(&note);
    return error;
}

/* Compared with the time that this request was signed with: others, sent at the same moment, may
 * have put the clock right since. */
static bool clock_was_wrong(struct remote *remote, int64_t used_skew_s,
                            const struct http_response *response,
                            const struct remote_error *error) {
    const int64_t skew_s = (int64_t)response->date_s - wall_s(), ahead = skew_s - used_skew_s;
    const bool far = response->date_s && (ahead > SKEW_MAX_S || ahead < -SKEW_MAX_S);

    if (!far || (response->code != 403 && strcmp(error->code, "RequestTimeTooSkewed") != 0))
        return false;
    atomic_store(&remote->skew_s, skew_s);
    return true;
}

/* An answer to HEAD says no more than its code. */
static bool credentials_were_old(struct remote *remote, const struct remote_request *request,
                                 const struct remote_error *error) {
    const bool said =
        !strcmp(error->code, "ExpiredToken") || !strcmp(error->code, "TokenRefreshRequired");
    const bool unsaid = !strcmp(request->method, "HEAD");

    if (!said && !(unsaid && credential_source_renews(remote->credentials)))
        return false;
    credential_source_expired(remote->credentials);
    return true;
}

enum ulp_status remote_once(struct remote *remote, const struct remote_request *request,
                            struct http_response *response) {
    const int64_t skew_s = atomic_load(&remote->skew_s);
    enum ulp_status status = once(remote, request, skew_s, response);
    struct remote_error error;

    if (status || !remote->credentials || (response->code != 403 && response->code != 400))
        return status;
    error = remote_error(response);
    if (clock_was_wrong(remote, skew_s, response, &error) ||
        credentials_were_old(remote, request, &error))
        status = once(remote, request, atomic_load(&remote->skew_s), response);
    return status;
}

bool remote_may_pass(enum ulp_status status, const struct http_response *response) {
    if (status)
        return response->lost;
    return retry_code(response->code) ||
           (response->code == 400 && !strcmp(remote_error(response).code, "RequestTimeout"));
}

enum ulp_status remote_send(struct remote *remote, const struct remote_request *request,
                            struct http_response *response) {
    struct retry retry = retry_begin(&remote->retry);
    unsigned conflicts = 0;
    enum ulp_status status;
    bool again;

    do {
        status = remote_once(remote, request, response);
        again = remote_may_pass(status, response);
        if (!status && response->code == 409 && request->if_none)
            again = conflicts++ < CONFLICTS_MAX;
    } while (again && retry_again(&retry, response->retry_after_s));
    return status;
}

/* ---- what cannot ---- */

static enum ulp_status status_of(unsigned code, const struct remote_error *error) {
    static const char *const about_keys[] = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired",
                                             "AuthorizationHeaderMalformed",
                                             "RequestTimeTooSkewed"};

    for (size_t i = 0; i < sizeof about_keys / sizeof about_keys[0]; i++)
        if (!strcmp(error->code, about_keys[i]))
            return ULP_E_PERMISSION;
    switch (code) {
    case 401:
    case 403:
        return ULP_E_PERMISSION;
    case 404:
        return ULP_E_NOT_FOUND;
    case 405:
    case 501:
        return ULP_E_UNSUPPORTED;
    case 412:
        return ULP_E_EXISTS;
    case 507:
        return ULP_E_NO_SPACE;
    default:
        return ULP_E_IO;
    }
}

/* What the server says, without what it must not know to say. */
static struct http_shown show_words(struct remote *remote, const struct remote_error *error) {
    struct credentials credentials = {0};
    struct http_shown shown;
    struct error_note note;

    error_save(&note);
    if (remote->credentials)
        credential_source_get(remote->credentials, &credentials);
    error_restore(&note);
    shown = http_show_text(error->message, strlen(error->message),
                           (const char *const[]){credentials.secret, credentials.token}, 2);
    credentials_release(&credentials);
    return shown;
}

static const char *plain_code(const struct remote_error *error) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";

    return strspn(error->code, letters) == strlen(error->code) ? error->code : "";
}

enum ulp_status remote_failed(struct remote *remote, const struct remote_request *request,
                              const struct http_response *response) {
    const struct remote_error error = remote_error(response);
    const char *region = *error.region ? error.region : response->region;
    const char *key = request->key ? request->key : "";

    if (remote->kind == REMOTE_S3 && *region && strcmp(region, remote->region) != 0 &&
        response->code != 404)
        return fail(ULP_E_IO, "store %s is in the region %s, not in %s: set AWS_REGION",
                    quote(remote->name).text, quote(region).text, quote(remote->region).text);
    if (!strcmp(error.code, "NoSuchBucket"))
        return fail(ULP_E_USAGE, "store %s: there is no such bucket", quote(remote->name).text);
    if (response->code == 404)
        return fail(ULP_E_NOT_FOUND, "store %s: there is no object %s", quote(remote->name).text,
                    quote(key).text);
    if (response->code >= 300 && response->code < 400)
        return fail(ULP_E_IO, "store %s: %s %s points elsewhere, which is not followed: %s",
                    quote(remote->name).text, request->method, quote(key).text,
                    http_show_url(response->redirect).text);
    return fail(status_of(response->code, &error), "store %s: %s %s was answered with %u %s%s%s",
                quote(remote->name).text, request->method, quote(key).text, response->code,
                plain_code(&error), *error.message ? ": " : "",
                *error.message ? show_words(remote, &error).text : "");
}
