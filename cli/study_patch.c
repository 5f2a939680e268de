// SPDX-License-Identifier: Apache-2.0
#include "cli/study_patch.h"

#include "cli/terminal.h"
#include "cli/whole_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A patch can be as large as the model, so it goes to a file, which has no name. */
struct nameless {
    int file;
    uint64_t bytes;
};

static enum ulp_status nameless_open(struct nameless *nameless) {
    const char *directory = getenv("TMPDIR");
    char path[PATH_MAX];

    if (!directory || !*directory)
        directory = "/tmp";
    if (snprintf(path, sizeof path, "%s/ulpsync-study-XXXXXX", directory) >= (int)sizeof path)
        return ulp_fail(ULP_E_USAGE, "TMPDIR is too long");
    nameless->file = mkstemp(path);
    if (nameless->file < 0)
        return cannot_write(path);
    unlink(path);
    return ULP_OK;
}

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    struct nameless *nameless = user;
    const char *at = data;

    while (bytes) {
        const ssize_t written = write(nameless->file, at, bytes);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return cannot_write("a temporary file in TMPDIR, or /tmp");
        at += written;
        bytes -= (size_t)written;
        nameless->bytes += (uint64_t)written;
    }
    return ULP_OK;
}

static enum ulp_status fetch(void *user, uint64_t offset, void *data, size_t bytes) {
    const struct nameless *nameless = user;
    char *to = data;

    while (bytes) {
        const ssize_t got = pread(nameless->file, to, bytes, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ulp_fail(ULP_E_IO, "cannot read a patch back from a temporary file: %s",
                            got ? strerror(errno) : "it has shrunk");
        to += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return ULP_OK;
}

/* The bits of each tensor; what changed is counted elsewhere, and for certain. */
static enum ulp_status add_bits(struct nameless *nameless, size_t count, struct ulp_pool *pool,
                                struct ulp_tensor_report *reports) {
    const struct ulp_source source = {fetch, nameless, nameless->bytes};
    struct ulp_tensor_report *parts = calloc(count + 1, sizeof *parts);
    struct ulp_patch *patch = NULL;
    enum ulp_status status = ULP_OK;

    if (!parts)
        status = ulp_fail(ULP_E_NOMEM, "out of memory for the sizes of %zu tensors", count);
    if (!status)
        status = ulp_patch_open_source(&source, &patch);
    if (!status)
        status = ulp_patch_inspect(patch, NULL, pool, NULL, parts);
    for (size_t i = 0; !status && parts && i < count; i++)
        reports[i].bits += parts[i].bits;
    ulp_patch_free(patch);
    free(parts);
    return status;
}

enum ulp_status study_patch_make(const struct ulp_weights *weights,
                                 const struct ulp_tensor *tensors, size_t count, bool history,
                                 struct ulp_pool *pool, struct ulp_tensor_report *reports,
                                 uint64_t *ret_bytes) {
    struct nameless nameless = {.file = -1};
    const struct ulp_sink sink = {append, &nameless};
    struct ulp_diff_report made = {0};
    struct progress_line line;
    struct ulp_progress progress;
    struct ulp_diff_options options = {.pool = pool, .history = history, .progress = &progress};
    uint64_t bytes = 0;
    enum ulp_status status = nameless_open(&nameless);

    for (size_t i = 0; i < count; i++)
        bytes += tensors[i].bytes;
    if (!status) {
        progress = progress_begin(&line, history ? "diff with history" : "diff", bytes);
        status = ulp_diff(weights, tensors, count, &options, &sink, &made);
        progress_end(&line);
    }
    if (!status && reports)
        status = add_bits(&nameless, count, pool, reports);
    if (!status)
        *ret_bytes = made.patch_bytes;
    if (nameless.file >= 0)
        close(nameless.file);
    return status;
}
