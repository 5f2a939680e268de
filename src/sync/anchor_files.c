// SPDX-License-Identifier: Apache-2.0
#include "sync/anchor_files.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "sync/parts.h"
#include "tensor/model.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct names {
    const char **names; /* in the arena */
    size_t count;
};

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_plain(const char *directory, const char *name) {
    char path[PATH_MAX];
    struct stat info;

    return name[0] != '.' &&
           snprintf(path, sizeof path, "%s/%s", directory, name) < (int)sizeof path &&
           !stat(path, &info) && S_ISREG(info.st_mode);
}

static enum ulp_status list_directory(const char *path, struct arena *arena, struct names *names) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    enum ulp_status status;

    if (!directory)
        return fail_errno("list", path);
    status = arena_zeroed(arena, LIMIT_ANCHOR_FILES, sizeof *names->names, &names->names);
    while (!status && (errno = 0, entry = readdir(directory))) {
        if (!is_plain(path, entry->d_name))
            continue;
        if (names->count == LIMIT_ANCHOR_FILES)
            status = fail(ULP_E_LIMIT, "%s holds more than %u files", quote(path).text,
                          LIMIT_ANCHOR_FILES);
        else
            status = arena_text(arena, entry->d_name, strlen(entry->d_name),
                                &names->names[names->count++]);
    }
    if (!status && errno)
        status = fail_errno("list", path);
    closedir(directory);
    qsort(names->names, names->count, sizeof *names->names, by_bytes);
    return status;
}

static enum ulp_status put_file(struct ulp_store *store, const char *run, const char *path,
                                struct part *part, uint64_t *stored) {
    struct file_map map = {0};
    enum ulp_status status = file_map_open(path, FILE_FOLLOW_LINKS, &map);

    if (!status)
        status = part_put(store, run, map.data ? map.data : (const uint8_t *)"", map.bytes, part,
                          stored);
    file_map_release(&map);
    return status;
}

/* A file on its own gets the name that loaders look for. */
static enum ulp_status put_single(struct ulp_store *store, const char *run, const char *path,
                                  struct anchor_file *file, uint64_t *stored) {
    file->name = MODEL_FILE_NAME;
    return put_file(store, run, path, &file->part, stored);
}

static enum ulp_status put_directory(struct ulp_store *store, const char *run, const char *path,
                                     const struct names *names, struct anchor_file *files,
                                     uint64_t *stored) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < names->count; i++) {
        char file[PATH_MAX];

        files[i].name = names->names[i];
        snprintf(file, sizeof file, "%s/%s", path, names->names[i]); /* it fitted before */
        status = put_file(store, run, file, &files[i].part, stored);
    }
    return status;
}

enum ulp_status anchor_files_put(struct ulp_store *store, const char *run, const char *path,
                                 struct arena *arena, struct anchor *anchor, uint64_t *stored) {
    struct names names = {.count = 1};
    struct anchor_file *files = NULL;
    struct stat info;
    bool directory;
    enum ulp_status status = ULP_OK;

    if (stat(path, &info))
        return fail_errno("open", path);
    directory = S_ISDIR(info.st_mode);
    if (directory) {
        names.count = 0;
        status = list_directory(path, arena, &names);
    }
    if (!status)
        status = arena_zeroed(arena, names.count, sizeof *files, &files);
    if (!status)
        status = directory ? put_directory(store, run, path, &names, files, stored)
                           : put_single(store, run, path, files, stored);
    anchor->files = files;
    anchor->file_count = names.count;
    return status;
}
