// SPDX-License-Identifier: Apache-2.0
#include "jsonl.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum ulp_status jsonl_open(struct jsonl *log, const char *path) {
    log->file = path ? fopen(path, "a") : NULL;
    if (path && !log->file)
        return ulp_fail(ULP_E_IO, "cannot write %s: %s", path, strerror(errno));
    return ULP_OK;
}

void jsonl_close(struct jsonl *log) {
    if (log->file)
        fclose(log->file);
    log->file = NULL;
}

void jsonl_begin(struct jsonl *log, const char *event) {
    if (log->file)
        fprintf(log->file, "{\"event\": \"%s\", \"time_ms\": %llu", event,
                (unsigned long long)wall_ms());
}

void jsonl_count(struct jsonl *log, const char *name, uint64_t value) {
    if (log->file)
        fprintf(log->file, ", \"%s\": %llu", name, (unsigned long long)value);
}

/* 17 digits: two numbers that are written the same are the same. */
void jsonl_number(struct jsonl *log, const char *name, double value) {
    if (log->file)
        fprintf(log->file, ", \"%s\": %.17g", name, value);
}

void jsonl_text(struct jsonl *log, const char *name, const char *value) {
    if (log->file)
        fprintf(log->file, ", \"%s\": \"%s\"", name, value);
}

void jsonl_root(struct jsonl *log, const char *name, const struct ulp_root *root) {
    char hex[ULP_ROOT_HEX_BYTES];

    ulp_root_hex(root, hex);
    jsonl_text(log, name, hex);
}

void jsonl_end(struct jsonl *log) {
    if (!log->file)
        return;
    fputs("}\n", log->file);
    fflush(log->file);
}

uint64_t wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

double seconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void nap_ms(unsigned ms) {
    const struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&nap, NULL);
}
