// SPDX-License-Identifier: Apache-2.0
/* What people and collectors are shown: the pages of runs, and /metrics. All of it is made in the
 * one thread that calls http_server_work(). */
#ifndef CLI_SERVE_PAGES_H
#define CLI_SERVE_PAGES_H

#include "cli/http_server.h"
#include "cli/serve_objects.h"

struct serve_pages {
    struct serve_objects objects;
    struct http_server *server;
};

/* Whether there may be a page at this path; from any thread. Keys have no '~', so no page is in the
 * way of an object. */
bool serve_page_is(const struct serve_pages *pages, const struct http_asked *asked);

void serve_page(struct serve_pages *pages, const struct http_asked *asked,
                struct http_reply *reply);

void serve_pages_release(struct serve_pages *pages);

#endif
