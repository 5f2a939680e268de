// SPDX-License-Identifier: Apache-2.0
/* Signatures of requests as AWS defines them (Signature Version 4): a function of what is given. */
#ifndef NET_SIGV4_H
#define NET_SIGV4_H

#include "net/credentials.h"
#include "net/http.h"

struct sigv4 {
    const char *method;
    const char *path;                  /* as it is sent, percent-encoded */
    const char *query;                 /* as it is sent, sorted (encode_query); "" for none */
    const struct http_header *headers; /* those to be signed, `host` among them; in any order */
    size_t header_count;
    const char *payload_hash; /* SHA-256 of the body in hexadecimal digits, or what stands for it */
    uint64_t time_s;
    const char *region, *service;
    const struct credentials *credentials;
};

/* Appends the value of the header `Authorization`. */
enum ulp_status sigv4_sign(const struct sigv4 *request, struct buffer *authorization);

/* Appends what is hashed first; for tests, which compare it with what AWS publishes. */
enum ulp_status sigv4_canonical(const struct sigv4 *request, struct buffer *into);

#endif
