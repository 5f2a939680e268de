// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_pages.h"

#include "cli/serve_metrics.h"

#include <string.h>

bool serve_page_is(const struct serve_pages *pages, const struct http_asked *asked) {
    (void)pages;
    return !strcmp(asked->path, "/metrics");
}

void serve_page(struct serve_pages *pages, const struct http_asked *asked,
                struct http_reply *reply) {
    (void)asked;
    serve_metrics(pages, reply);
}

void serve_pages_release(struct serve_pages *pages) {
    (void)pages;
}
