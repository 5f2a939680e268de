// SPDX-License-Identifier: Apache-2.0
#include "cli/whole_file.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Hidden, and with another ending: whoever collects files by their endings leaves it alone. */
static enum ulp_status unfinished_name(const char *path, char *ret_name) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;

    if (snprintf(ret_name, PATH_MAX, "%.*s.%s.%ld", folder, path, path + folder, (long)getpid()) >=
        PATH_MAX)
        return ulp_fail(ULP_E_NAME, "the path '%s' is too long", path);
    return ULP_OK;
}

enum ulp_status cannot_write(const char *path) {
    const int why = errno;
    const enum ulp_status status = why == ENOSPC || why == EDQUOT || why == EFBIG ? ULP_E_NO_SPACE
                                   : why == EACCES || why == EROFS                ? ULP_E_PERMISSION
                                   : why == ENOENT                                ? ULP_E_NOT_FOUND
                                   : why == EISDIR || why == ENOTDIR              ? ULP_E_FILE_KIND
                                                                                  : ULP_E_IO;

    return ulp_fail(status, "cannot write '%s': %s", path, strerror(why));
}

/* A pipe or a device: what would be put in its place takes it away. */
static bool is_special(const char *path) {
    struct stat info;

    return !stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* errno says why not. */
static bool fill(const char *path, const char *words, size_t bytes) {
    FILE *file = fopen(path, "w");
    bool written;

    if (!file)
        return false;
    written = fwrite(words, 1, bytes, file) == bytes;
    return !fclose(file) && written;
}

enum ulp_status whole_file_write(const char *path, const char *words, size_t bytes) {
    char unfinished[PATH_MAX];
    enum ulp_status status;

    if (!strcmp(path, "-")) /* main() sees to what cannot be written */
        return fwrite(words, 1, bytes, stdout) == bytes ? ULP_OK : cannot_write("standard output");
    if (is_special(path))
        return fill(path, words, bytes) ? ULP_OK : cannot_write(path);
    status = unfinished_name(path, unfinished);
    if (!status && (!fill(unfinished, words, bytes) || rename(unfinished, path))) {
        status = cannot_write(path);
        unlink(unfinished);
    }
    return status;
}
