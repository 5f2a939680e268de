// SPDX-License-Identifier: Apache-2.0
/* HTTP for builds without libcurl: none. */
#include "net/http.h"

enum ulp_status http_client_new(const struct http_limits *limits, const char *ca_file,
                                struct http_client **ret_client) {
    (void)limits;
    (void)ca_file;
    (void)ret_client;
    return fail(ULP_E_UNSUPPORTED,
                "this build has no HTTP, since it was made without libcurl: build with "
                "-DULPSYNC_CURL=ON");
}

void http_client_free(struct http_client *client) {
    (void)client;
}

enum ulp_status http_send(struct http_client *client, const struct http_request *request,
                          struct http_response *response) {
    (void)client;
    (void)request;
    (void)response;
    return fail(ULP_E_UNSUPPORTED, "this build has no HTTP");
}
