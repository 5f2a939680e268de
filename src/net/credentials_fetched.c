// SPDX-License-Identifier: Apache-2.0
/* Credentials that somebody gives over HTTP: a container's agent, and STS. */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "net/credentials.h"
#include "net/encode.h"
#include "net/timestamp.h"
#include "net/xml.h"

#include <string.h>

/* Somebody waits for them, and they are near. */
static const struct retry_limits few = {.attempts = 4, .total_ns = UINT64_C(20000000000)};

static enum ulp_status set(char **field, const char *value) {
    if (*field)
        return fail(ULP_E_IO, "an answer with credentials says something twice");
    return mem_copy_text(value, field);
}

static enum ulp_status take(struct credentials *found, const char *name, const char *value) {
    if (!strcmp(name, "AccessKeyId"))
        return set(&found->key_id, value);
    if (!strcmp(name, "SecretAccessKey"))
        return set(&found->secret, value);
    if (!strcmp(name, "Token") || !strcmp(name, "SessionToken"))
        return set(&found->token, value);
    if (!strcmp(name, "Expiration") && !timestamp_read_iso(value, &found->expires_s))
        return fail(ULP_E_IO, "an answer with credentials expires at a moment that is none");
    return ULP_OK;
}

static enum ulp_status check(enum ulp_status status, struct credentials *found,
                             struct credentials *ret) {
    if (!status && (!found->key_id || !found->secret || !*found->key_id || !*found->secret))
        status = fail(ULP_E_IO, "an answer with credentials lacks the access key or the secret");
    if (status)
        credentials_release(found);
    else
        *ret = *found;
    return status;
}

static void release_text(struct buffer *text) {
    if (text->data)
        mem_wipe(text->data, text->room);
    buffer_release(text);
}

/* Members that are not strings are none of ours. */
static bool is_string(const struct json *json) {
    size_t at = json->at;

    while (at < json->bytes && strchr(" \t\r\n", json->text[at]))
        at++;
    return at < json->bytes && json->text[at] == '"';
}

enum ulp_status credentials_read_json(const char *text, size_t bytes, struct credentials *ret) {
    struct buffer name = BUFFER(LIMIT_CREDENTIALS_BYTES), value = BUFFER(LIMIT_CREDENTIALS_BYTES);
    struct credentials found = {0};
    struct json json;
    bool more = true;
    enum ulp_status status = buffer_reserve(&value, bytes < value.max ? bytes : value.max);

    json_init(&json, text, bytes, "the answer with credentials");
    if (!status)
        status = json_object_begin(&json);
    while (!status && !(status = json_member(&json, &name, &more)) && more) {
        const bool text_follows = is_string(&json);

        status = text_follows ? json_string(&json, &value) : json_skip(&json);
        if (!status && text_follows)
            status = take(&found, buffer_text(&name), buffer_text(&value));
    }
    if (!status)
        status = json_end(&json);
    release_text(&value);
    release_text(&name);
    return check(status, &found, ret);
}

static enum ulp_status hear(void *user, const char *path, const char *text) {
    static const char within[] = "AssumeRoleWithWebIdentityResponse/"
                                 "AssumeRoleWithWebIdentityResult/Credentials/";

    return strncmp(path, within, sizeof within - 1) != 0
               ? ULP_OK
               : take(user, path + sizeof within - 1, text);
}

enum ulp_status credentials_read_xml(const char *text, size_t bytes, struct credentials *ret) {
    struct credentials found = {0};

    return check(xml_read("the answer of STS", text, bytes, hear, &found), &found, ret);
}

/* What an answer says of a failure may repeat what was sent, so it is not shown. */
static enum ulp_status ask(struct http_client *client, const struct http_request *request,
                           struct http_response *response) {
    struct retry retry = retry_begin(&few);
    enum ulp_status status;

    do {
        status = http_send(client, request, response);
    } while ((status ? response->lost : retry_code(response->code)) &&
             retry_again(&retry, response->retry_after_s));
    /* who is only busy has refused nothing */
    if (!status && !http_success(response))
        status = fail(retry_code(response->code) ? ULP_E_IO : ULP_E_PERMISSION,
                      "%s gives no credentials: it answered %u", http_show_url(request->url).text,
                      response->code);
    return status;
}

/* The contents of a file, without the end of its last line. */
static enum ulp_status read_token(const char *path, struct buffer *token) {
    enum ulp_status status = buffer_reserve(token, LIMIT_CREDENTIALS_BYTES);

    if (!status)
        status = file_read(path, FILE_FOLLOW_LINKS, token);
    while (!status && token->used && strchr("\r\n ", token->data[token->used - 1]))
        buffer_cut(token, token->used - 1);
    return status;
}

/* ---- a container's agent ---- */

/* Without encryption only agents of this machine, at the addresses that they have, are asked. */
static bool may_be_asked(const char *url) {
    static const char *const hosts[] = {"127.0.0.1",     "localhost",      "[::1]",
                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    const char *path = http_url_path(url);

    if (!strncmp(url, "https://", 8))
        return true;
    if (strncmp(url, "http://", 7) != 0)
        return false;
    url += 7;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        const size_t length = strlen(hosts[i]);

        if ((size_t)(path - url) >= length && !memcmp(url, hosts[i], length) &&
            (url + length == path || url[length] == ':'))
            return true;
    }
    return false;
}

static enum ulp_status ask_agent(struct http_client *client, const char *url,
                                 struct credentials *ret) {
    const char *file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *given = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    struct buffer token = BUFFER(LIMIT_CREDENTIALS_BYTES);
    struct http_header header = {"Authorization", NULL};
    struct http_response response = {0};
    struct http_request request = {.method = "GET",
                                   .url = url,
                                   .headers = &header,
                                   .header_count = file || given,
                                   .answer_bytes_max = LIMIT_CREDENTIALS_BYTES};
    enum ulp_status status = http_url_check(url);

    if (!status && !may_be_asked(url))
        status = fail(ULP_E_PERMISSION,
                      "AWS_CONTAINER_CREDENTIALS_FULL_URI is %s: without https, only this machine "
                      "is asked for credentials",
                      http_show_url(url).text);
    if (!status && file)
        status = read_token(file, &token);
    header.value = file ? buffer_text(&token) : given;
    if (!status)
        status = ask(client, &request, &response);
    if (!status)
        status = credentials_read_json(buffer_text(&response.body), response.body.used, ret);
    http_response_release(&response);
    release_text(&token);
    return status;
}

enum ulp_status credentials_from_container(struct http_client *client, struct credentials *ret) {
    const char *relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    struct buffer url = BUFFER(HTTP_URL_BYTES_MAX);
    enum ulp_status status;

    if (!relative && !full)
        return ULP_E_NOT_FOUND;
    status = buffer_append_text(&url, relative ? "http://169.254.170.2" : full);
    if (!status && relative && *relative != '/')
        status = buffer_append_text(&url, "/");
    if (!status && relative)
        status = buffer_append_text(&url, relative);
    if (!status)
        status = ask_agent(client, buffer_text(&url), ret);
    buffer_release(&url);
    return status;
}

/* ---- STS ---- */

static enum ulp_status sts_url(const char *region, struct buffer *url) {
    const char *given = environment("AWS_ENDPOINT_URL_STS");
    enum ulp_status status;

    if (given)
        return buffer_append_text(url, given);
    status = buffer_append_text(url, "https://sts.");
    if (!status)
        status = buffer_append_text(url, region);
    return status ? status : buffer_append_text(url, ".amazonaws.com/");
}

static enum ulp_status sts_body(const char *role, const char *token, struct buffer *body) {
    const char *name = environment("AWS_ROLE_SESSION_NAME");
    struct query_pair pairs[] = {{"Action", "AssumeRoleWithWebIdentity"},
                                 {"Version", "2011-06-15"},
                                 {"RoleArn", role},
                                 {"RoleSessionName", name ? name : "ulpsync"},
                                 {"WebIdentityToken", token}};
    enum ulp_status status = buffer_reserve(body, body->max); /* in one piece, to be wiped */

    return status ? status : encode_query(body, pairs, sizeof pairs / sizeof pairs[0]);
}

enum ulp_status credentials_from_web_identity(struct http_client *client, const char *region,
                                              struct credentials *ret) {
    const char *file = environment("AWS_WEB_IDENTITY_TOKEN_FILE"),
               *role = environment("AWS_ROLE_ARN");
    const struct http_header header = {"Content-Type", "application/x-www-form-urlencoded"};
    struct buffer token = BUFFER(LIMIT_CREDENTIALS_BYTES), url = BUFFER(HTTP_URL_BYTES_MAX);
    struct buffer body = BUFFER(4 * LIMIT_CREDENTIALS_BYTES);
    struct http_request request = {.method = "POST",
                                   .headers = &header,
                                   .header_count = 1,
                                   .answer_bytes_max = LIMIT_CREDENTIALS_BYTES};
    struct http_response response = {0};
    enum ulp_status status;

    if (!file || !role)
        return ULP_E_NOT_FOUND;
    status = read_token(file, &token);
    if (!status)
        status = sts_url(region, &url);
    if (!status)
        status = http_url_check(buffer_text(&url));
    if (!status)
        status = sts_body(role, buffer_text(&token), &body);
    request.url = buffer_text(&url);
    request.body = body.data;
    request.body_bytes = body.used;
    if (!status)
        status = ask(client, &request, &response);
    if (!status)
        status = credentials_read_xml(buffer_text(&response.body), response.body.used, ret);
    http_response_release(&response);
    release_text(&body);
    release_text(&token);
    buffer_release(&url);
    return status;
}
