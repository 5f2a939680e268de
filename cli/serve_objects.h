// SPDX-License-Identifier: Apache-2.0
/*
 * Objects of a store's runs over HTTP, for followers: records and parts, under their own keys.
 * Nothing else in the directory is shown, be it a key that somebody left there.
 */
#ifndef CLI_SERVE_OBJECTS_H
#define CLI_SERVE_OBJECTS_H

#include "cli/http_server.h"

struct serve_objects {
    struct ulp_store *store;
    const char *run; /* only this one; NULL: all */
};

/* Whether the path is of an object that a run can have; if so, the answer. From any thread. */
bool serve_object(const struct serve_objects *objects, const struct http_asked *asked,
                  struct http_reply *reply);

/* Whether a run may be called that, and is not kept back. */
bool serve_run_name(const struct serve_objects *objects, const char *name);

/* For what cannot be read: what a client is told, and no more. */
void serve_failure(enum ulp_status status, struct http_reply *reply);

/* "If-None-Match" names `etag`, which is without quotes. */
bool serve_unchanged(const struct http_asked *asked, const char *etag);

#endif
