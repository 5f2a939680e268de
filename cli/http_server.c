// SPDX-License-Identifier: Apache-2.0
#include "cli/http_server.h"

#include "base/lock.h"
#include "cli/http_listen.h"
#include "cli/http_watch.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What is read of an object at a time, for each connection that sends one. */
#define BLOCK_BYTES (128u << 10)

/* They wait for disks, not for the CPU. */
#define THREADS 4u

#define SWEEP_NS 250000000u

#define CONNECTIONS_USUAL 1024u

/* Beside connections a process has the store, the standard streams and whatever it came with. */
#define OTHER_FILES 64u

struct request {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct watched *watched;
    struct http_asked asked;
    struct http_reply reply;
    bool answered;
    struct request *next; /* that waits */
};

struct http_server {
    struct http_site site;
    struct MHD_Daemon *daemon;
    char address[HTTP_ADDRESS_BYTES];
    struct watch watch;
    uint64_t swept_ns;
    _Atomic uint64_t requests[HTTP_CODES], sent_bytes;

    int wake[2]; /* a pipe: something waits */
    struct lock lock;
    struct request *waiting, **waiting_end; /* guarded by the lock */
    bool closing;                           /* so is this */
};

/* ---- answers ---- */

static void reply_release(struct http_reply *reply) {
    free(reply->text);
    if (reply->free)
        reply->free(reply->user);
    *reply = (struct http_reply){0};
}

static ssize_t read_body(void *user, uint64_t position, char *data, size_t room) {
    struct request *request = user;
    const uint64_t left = request->reply.length - position;
    const size_t bytes = left < room ? (size_t)left : room;

    if (!bytes)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (request->reply.read(request->reply.user, position, data, bytes))
        return MHD_CONTENT_READER_END_WITH_ERROR; /* the client sees that it is too short */
    watch_sent(&request->server->watch, request->watched, bytes);
    atomic_fetch_add(&request->server->sent_bytes, bytes);
    return (ssize_t)bytes;
}

/* Both stay with the request, which outlives what is sent. */
static struct MHD_Response *make_response(struct request *request) {
    const struct http_reply *reply = &request->reply;

    if (reply->read && !request->asked.head)
        return MHD_create_response_from_callback(reply->length, BLOCK_BYTES, read_body, request,
                                                 NULL);
    if (reply->read) /* of which nothing is read */
        return MHD_create_response_from_callback(reply->length, 1, read_body, request, NULL);
    if (reply->text && !request->asked.head)
        atomic_fetch_add(&request->server->sent_bytes, reply->length);
    return MHD_create_response_from_buffer(reply->text ? reply->length : 0, reply->text,
                                           MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result send_reply(struct request *request) {
    const struct http_reply *reply = &request->reply;
    struct MHD_Response *response = make_response(request);
    enum MHD_Result result = response ? MHD_YES : MHD_NO;

    for (unsigned i = 0; result == MHD_YES && i < reply->header_count; i++)
        result = MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    if (result == MHD_YES)
        result = MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (result == MHD_YES)
        result = MHD_queue_response(request->connection, reply->code, response);
    if (result == MHD_YES)
        atomic_fetch_add(&request->server->requests[reply->code % HTTP_CODES], 1);
    if (response)
        MHD_destroy_response(response); /* counts who uses it */
    return result;
}

static enum MHD_Result refuse(struct request *request, unsigned code, const char *why) {
    http_reply_line(&request->reply, code, why);
    if (code == 405)
        http_reply_header(&request->reply, "Allow", "GET, HEAD");
    return send_reply(request);
}

/* ---- what waits for http_server_work() ---- */

/* Suspended under the lock: whoever closes sees all who wait, and nobody comes after. */
static bool wait_for_answer(struct request *request) {
    struct http_server *server = request->server;
    bool waits;

    lock_take(&server->lock);
    waits = !server->closing;
    if (waits) {
        MHD_suspend_connection(request->connection);
        *server->waiting_end = request;
        server->waiting_end = &request->next;
    }
    lock_give(&server->lock);
    if (waits) {
        ssize_t ignored = write(server->wake[1], "", 1); /* full is fine: it wakes */

        (void)ignored;
    }
    return waits;
}

static struct request *take_waiting(struct http_server *server, bool closing) {
    struct request *waiting;

    lock_take(&server->lock);
    waiting = server->waiting;
    server->waiting = NULL;
    server->waiting_end = &server->waiting;
    server->closing |= closing;
    lock_give(&server->lock);
    return waiting;
}

static void answer_waiting(struct http_server *server, bool closing) {
    for (struct request *request = take_waiting(server, closing), *next; request; request = next) {
        next = request->next; /* once it goes on, it may be gone */
        if (closing || terminal_stopping())
            http_reply_line(&request->reply, 503, "the server is being stopped");
        else
            server->site.later(server->site.user, &request->asked, &request->reply);
        request->answered = true;
        MHD_resume_connection(request->connection);
    }
}

void http_server_work(struct http_server *server, unsigned ms) {
    struct pollfd woken = {.fd = server->wake[0], .events = POLLIN};
    char bytes[64];

    if (poll(&woken, 1, (int)ms) > 0) {
        while (read(server->wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            ;
    }
    answer_waiting(server, false);
    if (now_ns() - server->swept_ns >= SWEEP_NS) {
        watch_sweep(&server->watch);
        server->swept_ns = now_ns();
    }
}

/* ---- called by libmicrohttpd ---- */

static const char *header_of(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool has_body(struct MHD_Connection *connection) {
    const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
           (length && strspn(length, "0") != strlen(length));
}

/* The head of a request is there. */
static enum MHD_Result begin_request(struct http_server *server, struct MHD_Connection *connection,
                                     const char *path, const char *method, void **context) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct request *request = info && info->socket_context ? calloc(1, sizeof *request) : NULL;

    if (!request)
        return MHD_NO;
    *context = request;
    request->server = server;
    request->connection = connection;
    request->watched = info->socket_context;
    request->asked = (struct http_asked){
        .path = path,
        .range = header_of(connection, MHD_HTTP_HEADER_RANGE),
        .if_range = header_of(connection, MHD_HTTP_HEADER_IF_RANGE),
        .if_none_match = header_of(connection, MHD_HTTP_HEADER_IF_NONE_MATCH),
        .head = !strcmp(method, MHD_HTTP_METHOD_HEAD),
    };
    watch_asked(&server->watch, request->watched);
    if (!request->asked.head && strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(request, 405, "this server is only read from");
    if (has_body(connection))
        return refuse(request, 413, "this server takes no bodies");
    return MHD_YES;
}

/* First with no context, then when the request is complete, and once more when what it waited for
 * is there. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **context) {
    struct http_server *server = user;
    struct request *request = *context;

    (void)version;
    (void)upload;
    if (!request)
        return begin_request(server, connection, path, method, context);
    if (*upload_bytes)
        return MHD_NO;
    if (request->answered ||
        server->site.at_once(server->site.user, &request->asked, &request->reply))
        return send_reply(request);
    if (wait_for_answer(request))
        return MHD_YES;
    return refuse(request, 503, "the server is being stopped");
}

static void on_end(void *user, struct MHD_Connection *connection, void **context,
                   enum MHD_RequestTerminationCode why) {
    struct request *request = *context;

    (void)user;
    (void)connection;
    (void)why;
    if (!request)
        return;
    watch_answered(&request->server->watch, request->watched);
    reply_release(&request->reply);
    free(request);
    *context = NULL;
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
    struct http_server *server = user;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context)
            watch_end(&server->watch, *context);
        *context = NULL;
        return;
    }
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = info ? watch_begin(&server->watch, info->connect_fd) : NULL;
}

/* Keys and pages have no characters that need it, and what is not decoded cannot surprise. */
static size_t decode_nothing(void *user, struct MHD_Connection *connection, char *text) {
    (void)user;
    (void)connection;
    return strlen(text);
}

static void complain(void *user, const char *format, va_list values) {
    char text[1024];

    (void)user;
    vsnprintf(text, sizeof text, format, values);
    text[strcspn(text, "\n")] = 0;
    fputs("ulpsync: libmicrohttpd: ", stderr);
    print_safely(stderr, text);
    fputc('\n', stderr);
}

/* ---- starting and stopping ---- */

/* Lets the process have as many files as that many connections need. */
static enum ulp_status allow_files(unsigned wanted, unsigned *ret_connections) {
    unsigned connections = wanted ? wanted : CONNECTIONS_USUAL;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
    if (!wanted && limit.rlim_max < connections + OTHER_FILES && limit.rlim_max > 2 * OTHER_FILES)
        connections = (unsigned)limit.rlim_max - OTHER_FILES;
    if (limit.rlim_max < connections + OTHER_FILES)
        return ulp_fail(ULP_E_USAGE,
                        "%u connections need %u open files, and this process may have %llu: ask "
                        "for fewer (--connections), or raise the limit (ulimit -n)",
                        connections, connections + OTHER_FILES, (unsigned long long)limit.rlim_max);
    if (limit.rlim_cur < connections + OTHER_FILES) {
        limit.rlim_cur = connections + OTHER_FILES;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    *ret_connections = connections;
    return ULP_OK;
}

static enum ulp_status make_pipe(int wake[2]) {
    if (pipe(wake))
        return ulp_fail(ULP_E_IO, "cannot make a pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
    }
    return ULP_OK;
}

/* Takes over the socket if it succeeds. */
static struct MHD_Daemon *start_daemon(struct http_server *server, int socket,
                                       const struct http_server_options *options) {
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           (options->verbose ? MHD_USE_ERROR_LOG : 0);
    const unsigned threads = options->connections < THREADS ? options->connections : THREADS;
    /* only for what nobody watches: who is slow has been cut off by then */
    const unsigned seconds = (unsigned)(options->patience_ms / 500 + 2);

    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER,
                            complain, NULL, MHD_OPTION_LISTEN_SOCKET, socket,
                            MHD_OPTION_THREAD_POOL_SIZE, threads, MHD_OPTION_CONNECTION_LIMIT,
                            options->connections, MHD_OPTION_CONNECTION_TIMEOUT, seconds,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LIMIT_SERVE_HEAD_BYTES,
                            MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
                            decode_nothing, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_END);
}

static enum ulp_status start(struct http_server *server,
                             const struct http_server_options *options) {
    int socket = -1;
    enum ulp_status status = make_pipe(server->wake);

    if (!status)
        status = http_listen(options->listen, &socket, server->address);
    if (status)
        return status;
    server->daemon = start_daemon(server, socket, options);
    if (server->daemon)
        return ULP_OK;
    close(socket);
    return ulp_fail(ULP_E_IO, "cannot start a server on %s: %s", server->address, strerror(errno));
}

enum ulp_status http_server_start(const struct http_server_options *options,
                                  const struct http_site *site, struct http_server **ret_server) {
    struct http_server_options all = *options;
    enum ulp_status status = allow_files(options->connections, &all.connections);
    struct http_server *server = status ? NULL : calloc(1, sizeof *server);

    if (status)
        return status;
    if (!server)
        return ulp_fail(ULP_E_NOMEM, "out of memory for a server");
    server->site = *site;
    server->wake[0] = server->wake[1] = -1;
    server->waiting_end = &server->waiting;
    lock_make(&server->lock);
    watch_make(&server->watch, all.patience_ms * 1000000, all.connections - all.connections / 8);
    status = start(server, &all);
    if (status)
        http_server_stop(server);
    else
        *ret_server = server;
    return status;
}

const char *http_server_address(const struct http_server *server) {
    return server->address;
}

void http_server_figures(struct http_server *server, struct http_server_figures *ret_figures) {
    const struct watch_figures figures = watch_figures(&server->watch);

    for (unsigned i = 0; i < HTTP_CODES; i++)
        ret_figures->requests[i] = atomic_load(&server->requests[i]);
    ret_figures->sent_bytes = atomic_load(&server->sent_bytes);
    ret_figures->connections = figures.connections;
    ret_figures->cut = figures.cut;
}

void http_server_stop(struct http_server *server) {
    if (!server)
        return;
    if (server->daemon) {
        answer_waiting(server, true);
        MHD_stop_daemon(server->daemon);
    }
    for (int i = 0; i < 2; i++) {
        if (server->wake[i] >= 0)
            close(server->wake[i]);
    }
    watch_destroy(&server->watch);
    lock_destroy(&server->lock);
    free(server);
}
