// SPDX-License-Identifier: Apache-2.0
/* /metrics: figures of all runs, of who follows them, and of the server. docs/runs.md lists them. */
#ifndef CLI_SERVE_METRICS_H
#define CLI_SERVE_METRICS_H

#include "cli/serve_pages.h"

void serve_metrics(struct serve_pages *pages, struct http_reply *reply);

#endif
