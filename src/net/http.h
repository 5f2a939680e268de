// SPDX-License-Identifier: Apache-2.0
/*
 * Requests over HTTP, one at a time and whole: any number of threads may send through one client,
 * which keeps connections open between requests. http_curl.c is the only file that knows libcurl;
 * a build without it has http_none.c, which says so.
 *
 * A client does only what it is told: it follows no redirect, sends no cookie, reads no .netrc,
 * uses no proxy of the environment, speaks http and https alone, and asks for no compression.
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "base/buffer.h"
#include "base/limits.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_client;

/* What a request may take. 0 stands for what is said behind. */
struct http_limits {
    uint64_t connect_ns;  /* until there is a connection: 10 s */
    uint64_t answer_ns;   /* for a request without its bytes: 60 s */
    uint64_t bytes_per_s; /* its bytes may take as long as this allows: 64 KiB */
    uint64_t stall_ns;    /* without bytes worth mentioning: 30 s */
};

/* `ca_file` NULL: the system's certificates. */
enum ulp_status http_client_new(const struct http_limits *limits, const char *ca_file,
                                struct http_client **ret_client);
void http_client_free(struct http_client *client);

struct http_header {
    const char *name, *value;
};

struct http_response;

struct http_request {
    const char *method; /* "GET", "HEAD", "PUT", "POST", "DELETE" */
    const char *url;
    const struct http_header *headers;
    size_t header_count;
    const void *body; /* is read more than once */
    size_t body_bytes;

    /* The most that the answer's body may have, where it is a success; a message about a failure
     * is cut at LIMIT_ERROR_BYTES. 0: there must be none. */
    uint64_t answer_bytes_max;
    uint64_t timed_bytes; /* those that the deadline allows time for, if not as many */
    uint64_t patience_ns; /* more time than others have: for what takes the server long */

    /* Hears of a success before its body, and then of the body in order; a failure of either ends
     * the request and is its outcome. Without `piece`, the body is collected in the response. */
    enum ulp_status (*accept)(void *user, const struct http_response *response);
    enum ulp_status (*piece)(void *user, const void *data, size_t bytes);
    void *user;
};

#define HTTP_TEXT_BYTES 256
#define HTTP_URL_BYTES_MAX 8192

/* The places that a partial answer holds: `first` to `last`, inclusive. */
struct http_range {
    bool given, all_known; /* all_known: `total` was not an asterisk */
    bool none;             /* an asterisk stood for first and last */
    uint64_t first, last, total;
};

/* What came back, and the few headers that matter. Zeroed is an empty one. */
struct http_response {
    unsigned code; /* 0: nothing came */
    bool lost;     /* it did not come, or not whole, for a reason that may pass */
    bool has_length;
    bool encoded; /* the body, in some way */
    bool odd;     /* a header that matters makes no sense, or is there twice */
    uint64_t length;
    struct http_range range;
    uint64_t retry_after_s, date_s;    /* 0: not given */
    char etag[HTTP_TEXT_BYTES];        /* "" as the following */
    char region[HTTP_TEXT_BYTES];      /* x-amz-bucket-region */
    char redirect[HTTP_URL_BYTES_MAX]; /* where it points to, absolute */
    struct buffer body;
};

void http_response_release(struct http_response *response);

/* Succeeds when an answer came whole, whatever its code; the response is filled as far as it came
 * otherwise, too. Releases what is in it. */
enum ulp_status http_send(struct http_client *client, const struct http_request *request,
                          struct http_response *response);

/* Takes one line of an answer's head, without its end; for http_curl.c and tests. */
void http_take_header(struct http_response *response, const char *line, size_t length);

/* Whether the code is one of success. */
static inline bool http_success(const struct http_response *response) {
    return response->code >= 200 && response->code < 300;
}

/* Where a URL begins to be a path, behind scheme and host; its end if there is none. */
const char *http_url_path(const char *url);

/* http:// or https://, a host, no name or password in front of it, no blanks; ULP_E_USAGE. */
enum ulp_status http_url_check(const char *url);

/*
 * The one place where text from the network becomes part of a message: a URL loses its query, which
 * may hold a signature, and every occurrence of a secret is struck out, also of one that is cut.
 */
struct http_shown {
    char text[768];
};
struct http_shown http_show_url(const char *url);
struct http_shown http_show_text(const char *text, size_t bytes, const char *const *secrets,
                                 size_t secret_count);

#endif
