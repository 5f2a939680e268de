// SPDX-License-Identifier: Apache-2.0
/* A build without libmicrohttpd. */
#include "cli/http_server.h"

#include <string.h>

enum ulp_status http_server_start(const struct http_server_options *options,
                                  const struct http_site *site, struct http_server **ret_server) {
    (void)options;
    (void)site;
    (void)ret_server;
    return ulp_fail(ULP_E_UNSUPPORTED,
                    "this build has no libmicrohttpd, and so no server: install libmicrohttpd-dev "
                    "and configure with -DULPSYNC_SERVE=ON");
}

const char *http_server_address(const struct http_server *server) {
    (void)server;
    return "";
}

void http_server_work(struct http_server *server, unsigned ms) {
    (void)server;
    (void)ms;
}

void http_server_figures(struct http_server *server, struct http_server_figures *ret_figures) {
    (void)server;
    memset(ret_figures, 0, sizeof *ret_figures);
}

void http_server_stop(struct http_server *server) {
    (void)server;
}
