// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* memrchr, nftw */
#include "cli/workshop.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    return place->level ? remove(path) : 0;
}

static void empty_directory(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static enum ulp_status workshop_name(struct workshop *w, const char *goal, const char *ending) {
    size_t length = strlen(goal);
    const char *slash;
    int folder;

    while (length > 1 && goal[length - 1] == '/')
        length--;
    slash = memrchr(goal, '/', length);
    folder = slash ? (int)(slash + 1 - goal) : 0;
    if (length >= PATH_MAX - 16 - strlen(ending) || (size_t)folder == length)
        return ulp_fail(ULP_E_NAME, "'%s' cannot be the name of a new directory", goal);
    snprintf(w->parent, sizeof w->parent, "%.*s", folder, folder ? goal : ".");
    if (!folder)
        strcpy(w->parent, ".");
    snprintf(w->path, sizeof w->path, "%.*s.%.*s.%s", folder, goal, (int)length - folder,
             goal + folder, ending);
    return ULP_OK;
}

static bool is_still_there(const char *path, int descriptor) {
    struct stat named, opened;

    return !lstat(path, &named) && !fstat(descriptor, &opened) && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
}

/* Another process that just ended may take the directory away between our steps: then once more. */
static enum ulp_status workshop_lock(struct workshop *w) {
    for (unsigned i = 0; i < 100; i++) {
        enum ulp_status status = ulp_directory_make(w->path);
        int descriptor;

        if (status)
            return status;
        descriptor = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (descriptor < 0 && errno == ENOENT)
            continue;
        if (descriptor < 0)
            return ulp_fail(ULP_E_IO, "cannot open '%s': %s", w->path, strerror(errno));
        if (flock(descriptor, LOCK_EX | LOCK_NB)) {
            close(descriptor);
            return ulp_fail(ULP_E_BUSY, "another process works at the same place ('%s')", w->path);
        }
        if (is_still_there(w->path, descriptor)) {
            w->lock = descriptor + 1;
            return ULP_OK;
        }
        close(descriptor);
    }
    return ulp_fail(ULP_E_BUSY, "others work at the same place ('%s')", w->path);
}

enum ulp_status workshop_open(const char *goal, const char *ending, struct workshop *w) {
    enum ulp_status status = workshop_name(w, goal, ending);

    if (!status)
        status = workshop_lock(w);
    if (!status)
        empty_directory(w->path);
    return status;
}

void workshop_release(struct workshop *w) {
    if (!w->lock)
        return;
    empty_directory(w->path);
    rmdir(w->path);
    close(w->lock - 1);
    w->lock = 0;
}
