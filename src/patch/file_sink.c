// SPDX-License-Identifier: Apache-2.0
#include "patch/file_sink.h"

static enum ulp_status write_to_file(void *user, const void *data, size_t bytes) {
    struct file_sink *file = user;
    enum ulp_status status = file_writer_put(&file->writer, file->bytes, data, bytes);

    file->bytes += bytes;
    return status;
}

enum ulp_status file_sink_open(const char *path, enum ulp_commit commit, struct file_sink *file) {
    enum ulp_status status = commit == ULP_COMMIT_NEW ? file_name_is_free(path) : ULP_OK;

    if (status)
        return status;
    file->sink = (struct ulp_sink){write_to_file, file};
    file->bytes = 0;
    return file_writer_open(path, 0, &file->writer);
}
