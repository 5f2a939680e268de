// SPDX-License-Identifier: Apache-2.0
/*
 * One store, driven by lines on standard input; each is answered by one line of JSON on standard
 * output: status, message, time, the most memory so far, and what the operation gives.
 *
 *     store_driver URL TIMEOUT_MS ATTEMPTS GIVE_UP_MS    see ulp_store_options
 *     read KEY OFFSET BYTES FILE    what was read goes into FILE
 *     stream KEY OFFSET BYTES FILE  the same, in pieces
 *     create KEY FILE               its contents
 *     put KEY FILE PIECE            the same, as a large object, PIECE bytes at a time
 *     drop KEY FILE PIECE           the same, not kept
 *     stat KEY
 *     list PREFIX AFTER MAX         "-" for an empty text
 *     remove KEY
 *     check                         whether it keeps its promises
 *
 * The first line answers the opening of the store.
 */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulpsync/ulpsync.h>

#define WORDS 5
#define OBJECT_BYTES_MAX (UINT64_C(2) << 30)

static void show_text(const char *text) {
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)*text);
        else
            putchar(*text);
    putchar('"');
}

/* getrusage() would count what the process was before it became this program. */
static long peak_kib(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long peak = 0;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &peak) == 1)
            break;
    if (file)
        fclose(file);
    return peak;
}

static void show_outcome(enum ulp_status status, uint64_t began_ns) {
    printf("\"status\": %d, \"name\": \"%s\", \"seconds\": %.3f, \"peak_kib\": %ld, \"message\": ",
           (int)status, ulp_status_name(status), (double)(clock_monotonic_ns() - began_ns) / 1e9,
           peak_kib());
    show_text(status ? ulp_last_error() : "");
    puts("}");
    fflush(stdout);
}

/* The outputs are shown in any case: those of a failure must be untouched. */
static enum ulp_status do_read(struct ulp_store *store, char **words) {
    const size_t room = strtoull(words[3], NULL, 10);
    void *data = NULL;
    uint64_t total = 77;
    size_t got = 77;
    enum ulp_status status = mem_zeroed(room + 1, 1, &data);

    if (status)
        return status;
    status =
        ulp_store_read(store, words[1], strtoull(words[2], NULL, 10), data, room, &got, &total);
    printf("\"read\": %zu, \"total\": %" PRIu64 ", ", got, total);
    if (!status)
        status = file_write(words[4], data, got, ULP_COMMIT_REPLACE);
    mem_free(data);
    return status;
}

static enum ulp_status keep_piece(void *user, uint64_t offset, const void *data, size_t bytes) {
    (void)offset;
    return buffer_append(user, data, bytes);
}

static enum ulp_status do_stream(struct ulp_store *store, char **words) {
    struct buffer data = BUFFER(OBJECT_BYTES_MAX);
    uint64_t total = 77;
    enum ulp_status status =
        ulp_store_stream(store, words[1], strtoull(words[2], NULL, 10),
                         strtoull(words[3], NULL, 10), keep_piece, &data, &total);

    printf("\"read\": %zu, \"total\": %" PRIu64 ", ", data.used, total);
    if (!status)
        status = file_write(words[4], data.data, data.used, ULP_COMMIT_REPLACE);
    buffer_release(&data);
    return status;
}

static enum ulp_status do_create(struct ulp_store *store, char **words) {
    struct buffer data = BUFFER(OBJECT_BYTES_MAX);
    enum ulp_status status = file_read(words[2], FILE_REFUSE_LINKS, &data);

    if (!status)
        status = ulp_store_create(store, words[1], data.data, data.used);
    buffer_release(&data);
    return status;
}

static enum ulp_status do_put(struct ulp_store *store, char **words) {
    const size_t piece = strtoull(words[3], NULL, 10);
    struct ulp_store_writer *writer = NULL;
    struct buffer data = BUFFER(OBJECT_BYTES_MAX);
    enum ulp_status status = file_read(words[2], FILE_REFUSE_LINKS, &data), ended;

    if (!status)
        status = ulp_store_put_begin(store, words[1], &writer);
    if (!status) {
        const char *bytes = (const char *)data.data;

        for (size_t at = 0; !status && at < data.used; at += piece)
            status = ulp_store_put_write(writer, bytes + at,
                                         data.used - at < piece ? data.used - at : piece);
        ended = ulp_store_put_end(writer, !status && !strcmp(words[0], "put"));
        status = status ? status : ended;
    }
    buffer_release(&data);
    return status;
}

static enum ulp_status do_stat(struct ulp_store *store, char **words) {
    uint64_t bytes = 77;
    enum ulp_status status = ulp_store_stat(store, words[1], &bytes);

    printf("\"bytes\": %" PRIu64 ", ", bytes);
    return status;
}

struct listing {
    uint64_t count, max;
};

static int show_entry(void *user, const char *key, uint64_t bytes) {
    struct listing *listing = user;

    printf("%s[", listing->count ? ", " : "");
    show_text(key);
    printf(", %" PRIu64 "]", bytes);
    return ++listing->count >= listing->max;
}

static enum ulp_status do_list(struct ulp_store *store, char **words) {
    struct listing listing = {.max = strtoull(words[3], NULL, 10)};
    enum ulp_status status;

    printf("\"entries\": [");
    status = ulp_store_list(store, !strcmp(words[1], "-") ? "" : words[1],
                            !strcmp(words[2], "-") ? "" : words[2], show_entry, &listing);
    printf("], ");
    return status;
}

static enum ulp_status do_remove(struct ulp_store *store, char **words) {
    return ulp_store_remove(store, words[1]);
}

static enum ulp_status do_check(struct ulp_store *store, char **words) {
    struct ulp_store_report report = {0};
    enum ulp_status status = ulp_store_check(store, &report);

    (void)words;
    printf("\"verdict\": \"%s\", \"why\": ", ulp_store_verdict_name(report.verdict));
    show_text(report.why);
    printf(", ");
    return status;
}

static const struct verb {
    const char *name;
    size_t words;
    enum ulp_status (*run)(struct ulp_store *store, char **words);
} verbs[] = {{"read", 5, do_read}, {"stream", 5, do_stream}, {"create", 3, do_create},
             {"put", 4, do_put},   {"drop", 4, do_put},      {"stat", 2, do_stat},
             {"list", 4, do_list}, {"remove", 2, do_remove}, {"check", 1, do_check}};

static const struct verb *verb_of(char *line, char **words) {
    size_t count = 0;

    for (char *word = strtok(line, " \n"); word && count < WORDS; word = strtok(NULL, " \n"))
        words[count++] = word;
    for (size_t i = 0; count && i < sizeof verbs / sizeof verbs[0]; i++)
        if (!strcmp(words[0], verbs[i].name) && count == verbs[i].words)
            return &verbs[i];
    return NULL;
}

int main(int argc, char **argv) {
    struct ulp_store *store = NULL;
    uint64_t began_ns = clock_monotonic_ns();
    char line[8192], *words[WORDS];
    struct ulp_store_options options;
    enum ulp_status status;

    if (argc != 5)
        return 2;
    options = (struct ulp_store_options){.timeout_ms = (uint32_t)strtoul(argv[2], NULL, 10),
                                         .attempts = (uint32_t)strtoul(argv[3], NULL, 10),
                                         .give_up_ms = (uint32_t)strtoul(argv[4], NULL, 10)};
    status = ulp_store_open_with(argv[1], &options, &store);
    putchar('{');
    show_outcome(status, began_ns);
    while (!status && fgets(line, sizeof line, stdin)) {
        const struct verb *verb = verb_of(line, words);

        if (!verb) {
            fprintf(stderr, "store_driver: no such command\n");
            return 2;
        }
        began_ns = clock_monotonic_ns();
        putchar('{');
        show_outcome(verb->run(store, words), began_ns);
    }
    ulp_store_free(store);
    return 0;
}
