// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_metrics.h"

#include "cli/prometheus.h"

#include <stdio.h>
#include <stdlib.h>

static void print_server(const struct prometheus *page, struct http_server *server) {
    static const char requests[] = "ulpsync_serve_requests_total";
    struct http_server_figures figures;

    http_server_figures(server, &figures);
    prometheus_head(page, requests, "counter", "Requests that were answered, by status code.");
    for (unsigned code = 0; code < HTTP_CODES; code++) {
        char text[8];

        snprintf(text, sizeof text, "%u", code);
        if (figures.requests[code])
            prometheus_sample(page, requests, "code", text, (double)figures.requests[code]);
    }
    prometheus_one(page, "ulpsync_serve_sent_bytes_total", "counter",
                   "Bytes of answers, without heads.", (double)figures.sent_bytes);
    prometheus_one(page, "ulpsync_serve_connections", "gauge", "Connections that are open.",
                   (double)figures.connections);
    prometheus_one(page, "ulpsync_serve_cut_connections_total", "counter",
                   "Connections that were cut off for being slow, or in the way of others.",
                   (double)figures.cut);
}

void serve_metrics(struct serve_pages *pages, struct http_reply *reply) {
    size_t bytes = 0;
    struct prometheus page = {.file = open_memstream(&reply->text, &bytes)};
    bool written;

    if (!page.file) {
        serve_failure(ULP_E_NOMEM, reply);
        return;
    }
    print_server(&page, pages->server);
    written = !ferror(page.file);
    if (fclose(page.file) || !written) {
        free(reply->text);
        serve_failure(ULP_E_NOMEM, reply);
        return;
    }
    reply->code = 200;
    reply->length = bytes;
    http_reply_header(reply, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    http_reply_header(reply, "Cache-Control", "no-store");
}
