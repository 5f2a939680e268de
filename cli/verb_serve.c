// SPDX-License-Identifier: Apache-2.0
#include "cli/http_server.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "cli/serve_pages.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LISTEN_DEFAULT "127.0.0.1:8737"
#define PATIENCE_S_DEFAULT 60.0
#define WORK_MS 100u

/* ---- where what is answered ---- */

static bool at_once(void *user, const struct http_asked *asked, struct http_reply *reply) {
    const struct serve_pages *pages = user;

    if (serve_object(&pages->objects, asked, reply))
        return true;
    if (serve_page_is(pages, asked))
        return false;
    http_reply_line(reply, 404, "there is no such thing here");
    return true;
}

static void later(void *user, const struct http_asked *asked, struct http_reply *reply) {
    serve_page(user, asked, reply);
}

/* ---- the verb ---- */

/* A store that is read is not made on the way. */
static enum ulp_status open_directory(const char *path, struct ulp_store **ret_store) {
    const char *plain = strncmp(path, "file://", 7) ? path : path + 7;
    struct stat info;

    if (strstr(plain, "://"))
        return ulp_fail(ULP_E_USAGE,
                        "'%s' is no directory: only those are served, and other stores have "
                        "servers of their own",
                        path);
    if (stat(plain, &info))
        return ulp_fail(ULP_E_NOT_FOUND, "there is no directory '%s'", plain);
    if (!S_ISDIR(info.st_mode))
        return ulp_fail(ULP_E_FILE_KIND, "'%s' is no directory", plain);
    return ulp_store_open(plain, ret_store);
}

static void tell(const char *directory, const char *address, bool json) {
    struct json_out out = {0};

    if (json) {
        char url[128];

        snprintf(url, sizeof url, "http://%s", address);
        json_out_begin(&out, NULL, '{');
        json_out_text(&out, "url", url);
        json_out_u64(&out, "port", strtoul(strrchr(address, ':') + 1, NULL, 10));
        json_out_text(&out, "directory", directory);
        json_out_end(&out, '}');
    } else {
        fputs("serving ", stdout);
        print_safely(stdout, directory);
        printf(" on http://%s\n", address);
    }
    fflush(stdout);
}

static enum ulp_status serve(const struct cli_args *args, const struct http_server_options *options,
                             struct serve_pages *pages) {
    const struct http_site site = {.at_once = at_once, .later = later, .user = pages};
    enum ulp_status status = http_server_start(options, &site, &pages->server);

    if (status)
        return status;
    tell(args->operands[0], http_server_address(pages->server), option_given(args, "json"));
    while (!terminal_stopping())
        http_server_work(pages->server, WORK_MS);
    http_server_stop(pages->server);
    terminal_stopped_well();
    return ULP_OK;
}

static enum ulp_status run(const struct cli_args *args) {
    struct http_server_options options = {.listen = LISTEN_DEFAULT,
                                          .verbose = option_given(args, "verbose")};
    struct serve_pages pages = {.objects.run = option_text(args, "run")};
    uint64_t connections = 0;
    double patience_s = PATIENCE_S_DEFAULT;
    enum ulp_status status =
        option_count(args, "connections", 8, LIMIT_SERVE_CONNECTIONS, &connections);

    if (!status)
        status = option_real(args, "patience", 0.1, 86400, &patience_s);
    if (!status && pages.objects.run && !serve_run_name(&pages.objects, pages.objects.run))
        status = ulp_fail(ULP_E_NAME, "'%s' is not the name of a run", pages.objects.run);
    if (!status)
        status = open_directory(args->operands[0], &pages.objects.store);
    if (option_given(args, "listen"))
        options.listen = option_text(args, "listen");
    options.connections = (unsigned)connections;
    options.patience_ms = (uint64_t)(patience_s * 1000);
    if (!status)
        status = serve(args, &options, &pages);
    serve_pages_release(&pages);
    ulp_store_free(pages.objects.store);
    return status;
}

static const struct cli_option options[] = {
    {"listen", 'l', "ADDR:PORT",
     "Where to listen; " LISTEN_DEFAULT " unless given. Port 0 takes one that is free. Other "
     "machines reach 0.0.0.0:PORT or [::]:PORT."},
    {"run", 'r', "NAME", "Only this run; without it, all that the directory has."},
    {"connections", 0, "N", "At a time, at most; 1024 unless given."},
    {"patience", 0, "SECONDS",
     "Cut off who takes longer to send a request, or takes an answer slower than 16 KiB a second "
     "for so long; 60 unless given."},
    CLI_OPTION_JSON,
    CLI_OPTION_VERBOSE,
    CLI_OPTION_HELP,
    CLI_OPTIONS_END,
};

const struct cli_verb verb_serve = {
    .name = "serve",
    .group = CLI_RUNS,
    .summary = "show a directory's runs over HTTP, to followers and to people",
    .operands = "DIR [--listen ADDR:PORT] [--run NAME] [--json]",
    .operands_min = 1,
    .operands_max = 1,
    .description =
        "Followers read the store that is in DIR by its address, which is printed:\n"
        "'--store http://HOST:PORT'. A browser that opens the address sees how the run\n"
        "goes, live: the charts of 'ulpsync report', anew with every step. /metrics has\n"
        "the figures of all runs, of their followers and of the server for Prometheus.\n"
        "\n"
        "Nothing can be written. Records and parts of runs are shown, and nothing else\n"
        "that may lie in DIR; links are not followed. There is neither encryption nor a\n"
        "password: whoever reaches the port can read the weights, so it listens on this\n"
        "machine alone unless --listen says otherwise. For more, put a web server with\n"
        "TLS and passwords in front of it. Followers trust nothing that comes from there:\n"
        "they verify every byte.\n"
        "\n"
        "It stays until it is stopped, which is no failure.\n",
    .examples = "  $ ulpsync serve /mnt/weights\n"
                "  $ ulpsync serve /mnt/weights --listen 0.0.0.0:8737 --run rl1\n"
                "  $ ulpsync follow --store http://trainer:8737 --run rl1 --out model\n",
    .options = options,
    .run = run,
};
