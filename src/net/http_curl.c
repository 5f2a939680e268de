// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP by libcurl. A handle of libcurl is for one thread at a time and keeps its own connections,
 * so handles that are idle wait in a stack: whoever sends takes the one that was used last, whose
 * connection is the likeliest to be open still.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "base/memory.h"
#include "net/http.h"

#include <curl/curl.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
#define IDLE_MAX 32u

/* Slower than this is standing still. */
#define STALL_BYTES_PER_S 1024u

/* What a server has received it has to look at before it answers. */
#define DIGESTED_BYTES_PER_S (16u << 20)

/* Below this, the deadline alone decides: servers take their time over small answers, too. */
#define STALL_WORTH_BYTES (1u << 20)

/* Longer than any object takes; keeps sums from overflowing. */
#define DEADLINE_MAX_S 86400u

struct http_client {
    struct http_limits limits;
    char *ca_file;
    struct lock lock; /* guards what follows */
    CURL *idle[IDLE_MAX];
    size_t idle_count;
};

/* One request on its way. */
struct transfer {
    const struct http_request *request;
    struct http_response *response;
    size_t sent, head_bytes;
    uint64_t got;
    bool accepted, enough;   /* enough: of a message about a failure */
    enum ulp_status refused; /* by us */
    uint64_t stall_ns, stall_bytes, moved_ns, moved_bytes; /* watched, and as of when it moved */
    bool stalled;
    char error[CURL_ERROR_SIZE];
};

static enum ulp_status library_begin(void) {
    static struct lock lock = LOCK_STATIC;
    static bool begun;
    enum ulp_status status = ULP_OK;

    lock_take(&lock);
    if (!begun && curl_global_init(CURL_GLOBAL_DEFAULT))
        status = fail(ULP_E_UNSUPPORTED, "libcurl does not start");
    else
        begun = true;
    lock_give(&lock);
    return status;
}

static uint64_t or_else(uint64_t value, uint64_t otherwise) {
    return value ? value : otherwise;
}

enum ulp_status http_client_new(const struct http_limits *limits, const char *ca_file,
                                struct http_client **ret_client) {
    struct http_client *client = NULL;
    enum ulp_status status = library_begin();

    if (!status)
        status = mem_zeroed(1, sizeof *client, &client);
    if (!status && ca_file)
        status = mem_copy_text(ca_file, &client->ca_file);
    if (status) {
        mem_free(client);
        return status;
    }
    client->limits = (struct http_limits){
        or_else(limits->connect_ns, 10 * S), or_else(limits->answer_ns, 60 * S),
        or_else(limits->bytes_per_s, 64 << 10), or_else(limits->stall_ns, 30 * S)};
    lock_make(&client->lock);
    *ret_client = client;
    return ULP_OK;
}

void http_client_free(struct http_client *client) {
    if (!client)
        return;
    while (client->idle_count)
        curl_easy_cleanup(client->idle[--client->idle_count]);
    lock_destroy(&client->lock);
    mem_free(client->ca_file);
    mem_free(client);
}

static CURL *take_handle(struct http_client *client) {
    CURL *handle = NULL;

    lock_take(&client->lock);
    if (client->idle_count)
        handle = client->idle[--client->idle_count];
    lock_give(&client->lock);
    return handle ? handle : curl_easy_init();
}

/* What a handle was told goes with its request; its connections stay. */
static void give_handle(struct http_client *client, CURL *handle) {
    curl_easy_reset(handle);
    lock_take(&client->lock);
    if (client->idle_count < IDLE_MAX) {
        client->idle[client->idle_count++] = handle;
        handle = NULL;
    }
    lock_give(&client->lock);
    if (handle)
        curl_easy_cleanup(handle);
}

/* ---- what comes ---- */

static size_t hear_header(char *line, size_t size, size_t count, void *user) {
    struct transfer *t = user;
    const size_t bytes = size * count;

    t->head_bytes += bytes;
    if (t->head_bytes > LIMIT_HTTP_HEADER_BYTES) {
        t->refused =
            fail(ULP_E_LIMIT, "%s %s: the head of the answer has more than %u bytes",
                 t->request->method, http_show_url(t->request->url).text, LIMIT_HTTP_HEADER_BYTES);
        return 0;
    }
    http_take_header(t->response, line, bytes);
    return bytes;
}

static enum ulp_status hear_acceptance(struct transfer *t) {
    if (t->accepted || !http_success(t->response))
        return ULP_OK;
    t->accepted = true;
    return t->request->accept ? t->request->accept(t->request->user, t->response) : ULP_OK;
}

static enum ulp_status take_success(struct transfer *t, const void *data, size_t bytes) {
    enum ulp_status status = hear_acceptance(t);

    if (status)
        return status;
    if (bytes > t->request->answer_bytes_max - t->got)
        return fail(ULP_E_LIMIT, "%s %s: the answer has more than the %llu bytes that it may have",
                    t->request->method, http_show_url(t->request->url).text,
                    (unsigned long long)t->request->answer_bytes_max);
    t->got += bytes;
    if (t->request->piece)
        return t->request->piece(t->request->user, data, bytes);
    return buffer_append(&t->response->body, data, bytes);
}

/* The beginning of a message about a failure is enough. */
static enum ulp_status take_failure(struct transfer *t, const void *data, size_t bytes) {
    const size_t room = LIMIT_ERROR_BYTES - t->response->body.used;

    t->enough = bytes > room;
    return buffer_append(&t->response->body, data, bytes < room ? bytes : room);
}

static size_t hear_body(char *data, size_t size, size_t count, void *user) {
    struct transfer *t = user;
    const size_t bytes = size * count;

    t->refused =
        http_success(t->response) ? take_success(t, data, bytes) : take_failure(t, data, bytes);
    return t->refused || t->enough ? 0 : bytes;
}

/* ---- what goes ---- */

static size_t say_body(char *data, size_t size, size_t count, void *user) {
    struct transfer *t = user;
    const size_t left = t->request->body_bytes - t->sent, room = size * count;
    const size_t bytes = left < room ? left : room;

    if (bytes)
        memcpy(data, (const char *)t->request->body + t->sent, bytes);
    t->sent += bytes;
    return bytes;
}

/* A connection that turned out to be closed: once more from the beginning. */
static int say_again(void *user, curl_off_t offset, int origin) {
    struct transfer *t = user;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->request->body_bytes)
        return CURL_SEEKFUNC_FAIL;
    t->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static uint64_t add_capped(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

static long deadline_ms(const struct http_limits *limits, const struct http_request *request) {
    const uint64_t bytes =
        add_capped(request->body_bytes, or_else(request->timed_bytes, request->answer_bytes_max));
    const uint64_t for_bytes_s = bytes / limits->bytes_per_s;
    uint64_t ms = (limits->answer_ns + request->patience_ns) / MS;

    ms += (for_bytes_s < DEADLINE_MAX_S ? for_bytes_s : DEADLINE_MAX_S) * 1000;
    return (long)(ms ? ms : 1);
}

/* So much has to move within such a time. libcurl's own limit looks at an average, which forgets
 * slowly. A server that thinks for long sends a blank now and then. */
static void set_stall(struct transfer *t, const struct http_limits *limits) {
    const struct http_request *request = t->request;
    const uint64_t digesting_ns = request->body_bytes / DIGESTED_BYTES_PER_S * S;

    t->moved_ns = clock_monotonic_ns();
    if (request->patience_ns) {
        t->stall_ns = limits->answer_ns;
        t->stall_bytes = 1;
    } else if (request->body_bytes >= STALL_WORTH_BYTES ||
               request->answer_bytes_max >= STALL_WORTH_BYTES) {
        t->stall_ns = limits->stall_ns + digesting_ns;
        t->stall_bytes = STALL_BYTES_PER_S * (t->stall_ns / S + 1);
    }
}

static int watch(void *user, curl_off_t answer_bytes, curl_off_t got, curl_off_t body_bytes,
                 curl_off_t sent) {
    struct transfer *t = user;
    const uint64_t bytes = (uint64_t)got + (uint64_t)sent, now = clock_monotonic_ns();

    (void)answer_bytes;
    (void)body_bytes;
    if (bytes - t->moved_bytes >= t->stall_bytes || bytes < t->moved_bytes) {
        t->moved_bytes = bytes;
        t->moved_ns = now;
    }
    t->stalled = t->stall_ns && now - t->moved_ns > t->stall_ns;
    return t->stalled;
}

static void set_limits(CURL *handle, const struct http_limits *limits, struct transfer *t) {
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)(limits->connect_ns / MS));
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, deadline_ms(limits, t->request));
    set_stall(t, limits);
    if (!t->stall_ns)
        return;
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, watch);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, t);
}

/* What libcurl would do by itself and must not. */
static void set_manners(CURL *handle) {
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(handle, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(handle, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "ulpsync");
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
}

static void set_body(CURL *handle, struct transfer *t) {
    const char *method = t->request->method;

    if (!strcmp(method, "HEAD")) {
        curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    } else if (!strcmp(method, "PUT") || !strcmp(method, "POST")) {
        curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->request->body_bytes);
        curl_easy_setopt(handle, CURLOPT_READFUNCTION, say_body);
        curl_easy_setopt(handle, CURLOPT_READDATA, t);
        curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, say_again);
        curl_easy_setopt(handle, CURLOPT_SEEKDATA, t);
        curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, method);
    } else if (strcmp(method, "GET") != 0) {
        curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, method);
    }
}

static enum ulp_status add_header(struct curl_slist **list, const char *name, const char *value) {
    struct buffer line = BUFFER(LIMIT_HTTP_HEADER_BYTES);
    struct curl_slist *longer = NULL;
    enum ulp_status status = buffer_append_text(&line, name);

    if (!status)
        status = buffer_append_text(&line, value ? ": " : ":");
    if (!status && value)
        status = buffer_append_text(&line, value);
    if (!status && strpbrk(buffer_text(&line), "\r\n"))
        status = fail(ULP_E_USAGE, "the header %s would have two lines", name);
    if (!status) {
        longer = curl_slist_append(*list, buffer_text(&line));
        if (longer)
            *list = longer;
        else
            status = fail(ULP_E_NOMEM, "out of memory for a header");
    }
    if (line.data)
        mem_wipe(line.data, line.used);
    buffer_release(&line);
    return status;
}

/* Headers may be secrets. */
static void free_headers(struct curl_slist *list) {
    for (struct curl_slist *at = list; at; at = at->next)
        mem_wipe(at->data, strlen(at->data));
    curl_slist_free_all(list);
}

static enum ulp_status make_headers(const struct http_request *request, struct curl_slist **ret) {
    struct curl_slist *list = NULL;
    enum ulp_status status = add_header(&list, "Expect", NULL);

    for (size_t i = 0; !status && i < request->header_count; i++)
        status = add_header(&list, request->headers[i].name, request->headers[i].value);
    if (status)
        free_headers(list);
    else
        *ret = list;
    return status;
}

/* ---- the whole ---- */

static bool may_pass(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

static enum ulp_status outcome(struct transfer *t, CURLcode code) {
    const char *why = t->stalled  ? "nothing moves any more"
                      : *t->error ? t->error
                                  : curl_easy_strerror(code);

    if (t->refused)
        return t->refused;
    if (!code && !t->response->code)
        return fail(ULP_E_IO, "%s %s: the answer is not HTTP", t->request->method,
                    http_show_url(t->request->url).text);
    if (!code)
        return hear_acceptance(t);
    if (t->enough)
        return ULP_OK;
    t->response->lost = t->stalled || may_pass(code);
    return fail(code == CURLE_OUT_OF_MEMORY ? ULP_E_NOMEM : ULP_E_IO, "%s %s: %s",
                t->request->method, http_show_url(t->request->url).text,
                http_show_text(why, strlen(why), NULL, 0).text);
}

static enum ulp_status perform(struct http_client *client, CURL *handle, struct transfer *t) {
    char *redirect = NULL;
    CURLcode code;

    set_manners(handle);
    set_limits(handle, &client->limits, t);
    set_body(handle, t);
    if (client->ca_file)
        curl_easy_setopt(handle, CURLOPT_CAINFO, client->ca_file);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, t->error);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, hear_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, hear_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, t);
    if (curl_easy_setopt(handle, CURLOPT_URL, t->request->url))
        return fail(ULP_E_NOMEM, "out of memory for an address");
    code = curl_easy_perform(handle);
    if (!curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &redirect) && redirect &&
        strlen(redirect) < HTTP_URL_BYTES_MAX)
        memcpy(t->response->redirect, redirect, strlen(redirect) + 1);
    return outcome(t, code);
}

/* An answer that is small is collected in one piece of memory, which can be wiped as a whole. */
static enum ulp_status prepare(const struct http_request *request, struct http_response *response) {
    const uint64_t most = request->piece ? 0 : request->answer_bytes_max;
    const size_t max = most < LIMIT_XML_BYTES ? (size_t)most : LIMIT_XML_BYTES;

    http_response_release(response);
    response->body = BUFFER(max > LIMIT_ERROR_BYTES ? max : LIMIT_ERROR_BYTES);
    return max && max <= LIMIT_ERROR_BYTES ? buffer_reserve(&response->body, max) : ULP_OK;
}

enum ulp_status http_send(struct http_client *client, const struct http_request *request,
                          struct http_response *response) {
    struct transfer t = {.request = request, .response = response};
    struct curl_slist *headers = NULL;
    CURL *handle;
    enum ulp_status status = prepare(request, response);

    if (!status)
        status = make_headers(request, &headers);
    if (status)
        return status;
    handle = take_handle(client);
    if (!handle) {
        free_headers(headers);
        return fail(ULP_E_NOMEM, "libcurl has no memory for a request");
    }
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    status = perform(client, handle, &t);
    give_handle(client, handle);
    free_headers(headers);
    return status;
}
