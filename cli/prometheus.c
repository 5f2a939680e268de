// SPDX-License-Identifier: Apache-2.0
#include "cli/prometheus.h"

#include <time.h>

static void print_label(FILE *file, const char *name, const char *text) {
    fprintf(file, "%s=\"", name);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", file);
        else if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

void prometheus_head(const struct prometheus *page, const char *name, const char *type,
                     const char *help) {
    fprintf(page->file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void prometheus_sample(const struct prometheus *page, const char *name, const char *label,
                       const char *label_value, double value) {
    fputs(name, page->file);
    if (page->run || label)
        fputc('{', page->file);
    if (page->run)
        print_label(page->file, "run", page->run);
    if (page->run && label)
        fputc(',', page->file);
    if (label)
        print_label(page->file, label, label_value);
    if (page->run || label)
        fputc('}', page->file);
    fprintf(page->file, " %.17g\n", value);
}

void prometheus_one(const struct prometheus *page, const char *name, const char *type,
                    const char *help, double value) {
    prometheus_head(page, name, type, help);
    prometheus_sample(page, name, NULL, NULL, value);
}

double prometheus_age_seconds(uint64_t time_ms) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)time_ms / 1e3;
}
