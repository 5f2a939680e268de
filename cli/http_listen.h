// SPDX-License-Identifier: Apache-2.0
/* A socket that listens. */
#ifndef CLI_HTTP_LISTEN_H
#define CLI_HTTP_LISTEN_H

#include <ulpsync/ulpsync.h>

#define HTTP_ADDRESS_BYTES 80u

/* `where` is "ADDRESS:PORT", an IPv6 address in brackets. Port 0 takes one that is free;
 * `ret_address` says which. */
enum ulp_status http_listen(const char *where, int *ret_socket,
                            char ret_address[HTTP_ADDRESS_BYTES]);

#endif
