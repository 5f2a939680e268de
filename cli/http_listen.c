// SPDX-License-Identifier: Apache-2.0
#include "cli/http_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 511
#define HOST_BYTES 256u

static enum ulp_status no_address(const char *where) {
    return ulp_fail(ULP_E_USAGE,
                    "'%s' is no address to listen on: write ADDRESS:PORT, such as 127.0.0.1:8080, "
                    "0.0.0.0:8080 or [::]:8080",
                    where);
}

/* The host, without brackets, and the port of up to five digits. */
static enum ulp_status split(const char *where, char host[HOST_BYTES], const char **ret_port) {
    const char *colon = strrchr(where, ':');
    const bool bracketed = where[0] == '[';
    size_t length;

    if (!colon || colon == where || (bracketed && colon[-1] != ']') || strlen(colon + 1) > 5 ||
        !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strtoul(colon + 1, NULL, 10) > 65535)
        return no_address(where);
    length = (size_t)(colon - where) - 2 * (size_t)bracketed;
    if (!length || length >= HOST_BYTES || (!bracketed && memchr(where, ':', length)))
        return no_address(where);
    memcpy(host, where + bracketed, length);
    host[length] = 0;
    *ret_port = colon + 1;
    return ULP_OK;
}

static enum ulp_status status_of(int error) {
    return error == EACCES || error == EPERM ? ULP_E_PERMISSION
           : error == EADDRINUSE             ? ULP_E_BUSY
                                             : ULP_E_IO;
}

/* -1, and errno, for an address that cannot be had. */
static int listen_on(const struct addrinfo *info) {
    const int on = 1;
    int at = socket(info->ai_family, SOCK_STREAM, 0), error;

    if (at < 0)
        return -1;
    if (!fcntl(at, F_SETFD, FD_CLOEXEC) && !fcntl(at, F_SETFL, O_NONBLOCK) &&
        !setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
        !bind(at, info->ai_addr, info->ai_addrlen) && !listen(at, BACKLOG))
        return at;
    error = errno;
    close(at);
    errno = error;
    return -1;
}

static void name_of(int socket, char ret_address[HTTP_ADDRESS_BYTES]) {
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    char host[INET6_ADDRSTRLEN + 1] = "?", port[8] = "?";

    getsockname(socket, (struct sockaddr *)&address, &length);
    getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret_address, HTTP_ADDRESS_BYTES, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

enum ulp_status http_listen(const char *where, int *ret_socket,
                            char ret_address[HTTP_ADDRESS_BYTES]) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[HOST_BYTES];
    const char *port = NULL;
    int at, error;
    enum ulp_status status = split(where, host, &port);

    if (status)
        return status;
    error = getaddrinfo(host, port, &hints, &found);
    if (error)
        return ulp_fail(ULP_E_USAGE, "cannot listen on '%s': %s", where, gai_strerror(error));
    at = listen_on(found);
    error = errno;
    freeaddrinfo(found);
    if (at < 0)
        return ulp_fail(status_of(error), "cannot listen on '%s': %s", where, strerror(error));
    name_of(at, ret_address);
    *ret_socket = at;
    return ULP_OK;
}
