// SPDX-License-Identifier: Apache-2.0
/*
 * Objects at an address: what stores over S3 and plain HTTP share. A request is signed if there are
 * credentials, tried again as long as that may help, and what comes of it is a status.
 */
#ifndef STORE_REMOTE_H
#define STORE_REMOTE_H

#include "net/credentials.h"
#include "net/encode.h"
#include "net/http.h"
#include "net/retry.h"
#include "store/store.h"

#include <stdatomic.h>

/* How strictly a server is taken at its word: S3 answers exactly what was asked, web servers may
 * answer a range with the whole object, and may not know how long it is. */
enum remote_kind { REMOTE_S3, REMOTE_WEB };

struct remote {
    enum remote_kind kind;
    char *name;   /* for messages */
    char *base;   /* the address in front of "/" and a key */
    char *prefix; /* of all keys: "", or "a/b/" */
    char *region;
    struct http_client *client;
    struct credential_source *credentials; /* NULL: there are none */
    struct retry_limits retry;
    _Atomic int64_t skew_s; /* the server's time less ours, where that matters */
};

/* Takes `base` and `prefix` as they are; REMOTE_WEB has no region and no credentials. Zeroed
 * options are usual. */
enum ulp_status remote_open(enum remote_kind kind, const char *name, const char *base,
                            const char *prefix, const char *region,
                            const struct ulp_store_options *options, struct remote *ret_remote);
void remote_release(struct remote *remote);

struct remote_request {
    const char *method;
    const char *key; /* NULL: the bucket itself */
    struct query_pair *query;
    size_t query_count;
    const void *body;
    size_t body_bytes;
    const uint8_t *body_digest; /* SHA-256 of the body, where it is known already */
    bool ranged;                /* bytes `first` to `last`, inclusive */
    uint64_t first, last;
    bool if_none; /* only where nothing is */
    bool fresh;   /* not from somebody's cache */
    bool follows; /* redirects, which then are not signed */
    uint64_t answer_bytes_max, timed_bytes, patience_ns;
    enum ulp_status (*accept)(void *user, const struct http_response *response);
    enum ulp_status (*piece)(void *user, const void *data, size_t bytes);
    void *user;
};

/* Once. Only what a wrong clock or old credentials did to it is put right, and tried again. */
enum ulp_status remote_once(struct remote *remote, const struct remote_request *request,
                            struct http_response *response);

/* Until there is an answer that stays as it is, whatever its code. */
enum ulp_status remote_send(struct remote *remote, const struct remote_request *request,
                            struct http_response *response);

/* Whether it is worth trying again what ended so. */
bool remote_may_pass(enum ulp_status status, const struct http_response *response);

/* The failure that an answer without success is. */
enum ulp_status remote_failed(struct remote *remote, const struct remote_request *request,
                              const struct http_response *response);

/* What S3 says in words; empty where it says nothing. */
struct remote_error {
    char code[64], message[256], region[64];
};
struct remote_error remote_error(const struct http_response *response);

/* From so many bytes on an object is streamed over several connections. */
#define REMOTE_WIDE_BYTES (UINT64_C(2) << 20)

/* The operations of stores that read. `ret_etag`, of HTTP_TEXT_BYTES, is what the server calls these
 * bytes, or empty; it may be NULL. */
enum ulp_status remote_read(struct remote *remote, const char *key, uint64_t offset, void *data,
                            size_t bytes, size_t *ret_read, uint64_t *ret_total, char *ret_etag);
enum ulp_status remote_stream(struct remote *remote, const char *key, uint64_t offset,
                              uint64_t bytes, ulp_store_piece piece, void *user,
                              uint64_t *ret_total);

/* The same over several connections at once; `bytes` is what there is, or not much more. */
enum ulp_status remote_stream_wide(struct remote *remote, const char *key, uint64_t offset,
                                   uint64_t bytes, ulp_store_piece piece, void *user,
                                   uint64_t *ret_total);
enum ulp_status remote_stat(struct remote *remote, const char *key, uint64_t *ret_bytes);

#endif
