// SPDX-License-Identifier: Apache-2.0
#include "corpus.h"

#include "memory.h"
#include "task.h"

#include <errno.h>
#include <string.h>

#define LINES_MAX 1000000u
#define LINE_BYTES 256

static enum ulp_status add_line(struct corpus *corpus, const char *path, const char *line) {
    if (corpus->count == LINES_MAX)
        return ulp_fail(ULP_E_LIMIT, "%s has more than %u lines", path, LINES_MAX);
    if ((corpus->count & (corpus->count + 1)) == 0) { /* full, as far as it doubled */
        const size_t room = 2 * (corpus->count + 1);
        struct sequence *lines = zeroed(room, sizeof *lines);

        if (corpus->count)
            memcpy(lines, corpus->lines, corpus->count * sizeof *lines);
        free(corpus->lines);
        corpus->lines = lines;
    }
    if (!task_learn(line, strcspn(line, "\n"), &corpus->lines[corpus->count]))
        return ulp_fail(ULP_E_LIMIT, "line %zu of %s is empty or has more than %d bytes",
                        corpus->count + 1, path, TOKENS_MAX - 2);
    corpus->count++;
    return ULP_OK;
}

enum ulp_status corpus_read(const char *path, struct corpus *ret_corpus) {
    struct corpus corpus = {0};
    char line[LINE_BYTES];
    enum ulp_status status = ULP_OK;
    FILE *file = fopen(path, "r");

    if (!file)
        return ulp_fail(ULP_E_NOT_FOUND, "cannot read %s: %s", path, strerror(errno));
    while (!status && fgets(line, sizeof line, file))
        status = add_line(&corpus, path, line);
    if (!status && (ferror(file) || !corpus.count))
        status = ulp_fail(ULP_E_IO, "%s has no lines that can be read", path);
    fclose(file);
    if (status)
        corpus_release(&corpus);
    else
        *ret_corpus = corpus;
    return status;
}

void corpus_release(struct corpus *corpus) {
    free(corpus->lines);
    memset(corpus, 0, sizeof *corpus);
}
