// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* O_TMPFILE, mkostemp */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *file_nameless_directory(const char *asked) {
    const char *tmp = getenv("TMPDIR");

    if (asked && *asked)
        return asked;
    return tmp && *tmp ? tmp : "/tmp";
}

/* Where the file system has no files without a name, one whose name is gone at once. */
static int open_nameless(const char *directory) {
    int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char path[4096];

    if (file >= 0 || errno == ENOENT || errno == EACCES)
        return file;
    if (snprintf(path, sizeof path, "%s/.ulpsync-spill-XXXXXX", directory) >= (int)sizeof path)
        return -1;
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    return file;
}

enum ulp_status file_nameless(const char *directory, int *ret_file) {
    const char *where = file_nameless_directory(directory);
    int file = open_nameless(where);

    if (file < 0)
        return fail_errno("create a temporary file in", where);
    *ret_file = file;
    return ULP_OK;
}
