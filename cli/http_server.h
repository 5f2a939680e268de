// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP server for reading: GET and HEAD, no bodies, and nothing that a client does can make it
 * take more than a known amount of memory, connections and time. The door to libmicrohttpd, whose
 * threads it uses.
 *
 * A site answers in two ways: at once, from any thread, what takes no longer than a look at a file;
 * and later, in the one thread that calls http_server_work(), whatever needs data of its own, which
 * so needs no locks. Who waits for the latter holds up nobody else.
 */
#ifndef CLI_HTTP_SERVER_H
#define CLI_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ulpsync/ulpsync.h>

#define HTTP_REPLY_HEADERS_MAX 10u
#define HTTP_HEADER_TEXT_BYTES 320u
#define HTTP_CODES 600u

/* Texts live as long as the request; what a client did not send is NULL. Nothing is decoded: a path
 * with '%' is one that nobody has. */
struct http_asked {
    const char *path;
    const char *range, *if_range, *if_none_match;
    bool head; /* only the head of the answer is wanted */
};

struct http_header {
    const char *name; /* a constant */
    char value[HTTP_HEADER_TEXT_BYTES];
};

/* Zeroed has neither headers nor a body. */
struct http_reply {
    unsigned code;
    struct http_header headers[HTTP_REPLY_HEADERS_MAX];
    unsigned header_count;

    /* The body is either text, which is freed afterwards, or read piece by piece. `length` is its
     * length, also where only the head is sent. */
    char *text;
    uint64_t length;
    enum ulp_status (*read)(void *user, uint64_t offset, void *data, size_t bytes);
    void (*free)(void *user);
    void *user;
};

/* A value that is too long for a header ends early. */
void http_reply_header(struct http_reply *reply, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A line of text as the whole answer. */
void http_reply_line(struct http_reply *reply, unsigned code, const char *line);

struct http_site {
    /* false: the answer comes later. */
    bool (*at_once)(void *user, const struct http_asked *asked, struct http_reply *reply);
    void (*later)(void *user, const struct http_asked *asked, struct http_reply *reply);
    void *user;
};

struct http_server_options {
    const char *listen;   /* "127.0.0.1:8080", "[::1]:0"; port 0: one that is free */
    unsigned connections; /* at a time, at most; 0: 1024, or what the system allows */
    uint64_t patience_ms; /* with who is slow: see cli/http_watch.h */
    bool verbose;         /* what libmicrohttpd complains of goes to standard error */
};

struct http_server_figures {
    uint64_t requests[HTTP_CODES]; /* by the code of the answer */
    uint64_t sent_bytes;           /* of bodies */
    uint64_t connections;          /* now */
    uint64_t cut;                  /* connections that were too slow, or in the way of others */
};

struct http_server;

/* ULP_E_UNSUPPORTED in a build without libmicrohttpd. The site must outlive the server. */
enum ulp_status http_server_start(const struct http_server_options *options,
                                  const struct http_site *site, struct http_server **ret_server);

/* "127.0.0.1:41877" */
const char *http_server_address(const struct http_server *server);

/* Gives the answers that are due, or waits for up to `ms`. */
void http_server_work(struct http_server *server, unsigned ms);

void http_server_figures(struct http_server *server, struct http_server_figures *ret_figures);

/* Whoever waits for an answer is told that there will be none. NULL is fine. */
void http_server_stop(struct http_server *server);

#endif
