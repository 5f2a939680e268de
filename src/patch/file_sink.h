// SPDX-License-Identifier: Apache-2.0
/* A sink that writes to a file, which appears under its name when the writer is committed. */
#ifndef PATCH_FILE_SINK_H
#define PATCH_FILE_SINK_H

#include "base/file.h"

#include <ulpsync/patch.h>

/* It must stay where it is while its sink is used. Release the writer at the end, as always. */
struct file_sink {
    struct ulp_sink sink;
    struct file_writer writer;
    uint64_t bytes;
};

/* With ULP_COMMIT_NEW a file that is there already is refused now, not after all the work. */
enum ulp_status file_sink_open(const char *path, enum ulp_commit commit, struct file_sink *file);

#endif
