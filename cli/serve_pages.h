// SPDX-License-Identifier: Apache-2.0
/*
 * What people and collectors are shown. All of it is made in the one thread that calls
 * http_server_work().
 *
 *     /                  the runs, or where the only one is
 *     /~/run/NAME        a run, live
 *     /~/figures/NAME    what that page looks at every second
 *     /~/icon.svg
 *     /metrics           for Prometheus
 *
 * Keys have no '~', and objects three parts or more, so no page is in the way of an object.
 */
#ifndef CLI_SERVE_PAGES_H
#define CLI_SERVE_PAGES_H

#include "cli/http_server.h"
#include "cli/serve_runs.h"

struct serve_pages {
    struct serve_objects objects;
    struct http_server *server;
    struct serve_runs runs; /* of the one thread alone */
};

/* Whether there may be a page at this path; from any thread. */
bool serve_page_is(const struct serve_pages *pages, const struct http_asked *asked);

void serve_page(struct serve_pages *pages, const struct http_asked *asked,
                struct http_reply *reply);

void serve_pages_release(struct serve_pages *pages);

#endif
