// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* flock, O_DIRECTORY */
#include "sync/replica_place.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/quote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRESH_LINK ".current.fresh"

enum ulp_status replica_path(const struct replica_place *place, const char *rest, char *text) {
    if (snprintf(text, PATH_MAX, "%s/%s", place->path, rest) >= PATH_MAX)
        return fail(ULP_E_NAME, "the path %s is too long", quote(place->path).text);
    return ULP_OK;
}

enum ulp_status replica_version_path(const struct replica_place *place, uint64_t version,
                                     char *text) {
    char rest[64];

    snprintf(rest, sizeof rest, "versions/%020llu", (unsigned long long)version);
    return replica_path(place, rest, text);
}

static bool exists(const char *path) {
    struct stat info;

    return !lstat(path, &info);
}

bool replica_has_version(const struct replica_place *place, uint64_t version) {
    char path[PATH_MAX];

    return !replica_version_path(place, version, path) && exists(path);
}

/* ---- what is there ---- */

/* The version that a name stands for; UINT64_MAX for anything else. */
static uint64_t version_of(const char *name) {
    return strlen(name) == 20 && strspn(name, "0123456789") == 20 ? strtoull(name, NULL, 10)
                                                                  : UINT64_MAX;
}

static enum ulp_status look_at_current(const struct replica_place *place, struct held *held) {
    char link[PATH_MAX], target[PATH_MAX];
    ssize_t length;
    uint64_t version;
    enum ulp_status status = replica_path(place, "current", link);

    if (status)
        return status;
    length = readlink(link, target, sizeof target - 1);
    if (length < 0 && errno == ENOENT)
        return ULP_OK;
    if (length < 0)
        return fail_errno("read the link", link);
    target[length] = 0;
    version = strncmp(target, "versions/", 9) ? UINT64_MAX : version_of(target + 9);
    if (version == UINT64_MAX)
        return fail(ULP_E_FILE_KIND, "%s leads to %s, which is not ours; use another directory",
                    quote(link).text, quote(target).text);
    *held = (struct held){.any = true,
                          .version = version,
                          .before = version && replica_has_version(place, version - 1)};
    return ULP_OK;
}

/* ---- cleaning up ---- */

/* A directory of plain files: nothing else is ever put there. */
static void remove_files(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *entry;

    if (!directory)
        return;
    while ((entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    rmdir(path);
}

static bool is_wanted(uint64_t version, const struct held *held, uint64_t also) {
    if (version == UINT64_MAX)
        return false;
    return version == also || version + 1 == also ||
           (held->any && (version == held->version || version + 1 == held->version));
}

enum ulp_status replica_clean(const struct replica_place *place, const struct held *held,
                              uint64_t also) {
    char versions[PATH_MAX], path[PATH_MAX];
    DIR *directory;
    struct dirent *entry;
    struct held shown = {0}; /* may be newer than who was told of a failure believes */
    enum ulp_status status = look_at_current(place, &shown);

    if (!status)
        status = replica_path(place, "versions", versions);
    directory = status ? NULL : opendir(versions);
    if (!directory)
        return status ? status : fail_errno("list", versions);
    while ((entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            is_wanted(version_of(entry->d_name), held, also) ||
            is_wanted(version_of(entry->d_name), &shown, also))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", versions, entry->d_name) < (int)sizeof path)
            remove_files(path);
    }
    closedir(directory);
    return ULP_OK;
}

/* What a process that was killed left beside them: a file that was to replace `seen`, a link that
 * was to replace `current`. We hold the lock, so nobody is at work on one. */
static enum ulp_status remove_leftovers(const struct replica_place *place) {
    DIR *directory = opendir(place->path);
    struct dirent *entry;

    if (!directory)
        return fail_errno("list", place->path);
    while ((entry = readdir(directory))) {
        if (!strncmp(entry->d_name, ".ulpsync-tmp-", 13) || !strcmp(entry->d_name, FRESH_LINK))
            unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    return ULP_OK;
}

/* ---- opening ---- */

static enum ulp_status take_lock(struct replica_place *place) {
    char path[PATH_MAX];
    int file;
    enum ulp_status status = replica_path(place, "lock", path);

    if (status)
        return status;
    file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_errno("open", path);
    place->lock = file + 1;
    if (flock(file, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK
                   ? fail(ULP_E_BUSY, "%s is in use by another process", quote(place->path).text)
                   : fail_errno("lock", path);
    return ULP_OK;
}

enum ulp_status replica_place_open(const char *path, struct replica_place *place,
                                   struct held *ret_held) {
    struct held held = {0};
    char versions[PATH_MAX];
    enum ulp_status status = mem_copy_text(path, &place->path);

    if (!status)
        status = file_make_directory(path);
    if (!status)
        status = replica_path(place, "versions", versions);
    if (!status)
        status = file_make_directory(versions);
    if (!status)
        status = take_lock(place);
    if (!status)
        status = remove_leftovers(place);
    if (!status)
        status = look_at_current(place, &held);
    if (!status)
        status = replica_clean(place, &held, UINT64_MAX);
    if (!status)
        *ret_held = held;
    return status;
}

void replica_place_release(struct replica_place *place) {
    if (place->lock)
        close(place->lock - 1);
    mem_free(place->path);
    *place = (struct replica_place){0};
}

/* ---- going on ---- */

static enum ulp_status unfinished_path(const struct replica_place *place, uint64_t version,
                                       char *text) {
    char rest[64];

    snprintf(rest, sizeof rest, "versions/.%020llu.unfinished", (unsigned long long)version);
    return replica_path(place, rest, text);
}

enum ulp_status replica_unfinished(const struct replica_place *place, uint64_t version,
                                   char *text) {
    enum ulp_status status = unfinished_path(place, version, text);

    if (status)
        return status;
    remove_files(text);
    return file_make_directory(text);
}

/* What could fail for other reasons than the disk comes before anything is seen. */
static enum ulp_status rename_in(const char *directory, const char *from, const char *to) {
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum ulp_status status = ULP_OK;

    if (file < 0)
        return fail_errno("open", directory);
    if (rename(from, to))
        status = fail_errno("put into place", to);
    else if (file_sync_directory(file))
        status = fail_errno("sync", directory);
    close(file);
    return status;
}

enum ulp_status replica_finish(const struct replica_place *place, uint64_t version) {
    char versions[PATH_MAX], unfinished[PATH_MAX], path[PATH_MAX];
    enum ulp_status status = unfinished_path(place, version, unfinished);

    if (!status)
        status = replica_version_path(place, version, path);
    if (!status)
        status = replica_path(place, "versions", versions);
    return status ? status : rename_in(versions, unfinished, path);
}

enum ulp_status replica_switch(const struct replica_place *place, uint64_t version) {
    char target[64], link[PATH_MAX], fresh[PATH_MAX];
    enum ulp_status status = replica_path(place, "current", link);

    snprintf(target, sizeof target, "versions/%020llu", (unsigned long long)version);
    if (!status)
        status = replica_path(place, FRESH_LINK, fresh);
    if (!status && unlink(fresh) && errno != ENOENT)
        status = fail_errno("remove", fresh);
    if (!status && symlink(target, fresh))
        status = fail_errno("link", fresh);
    return status ? status : rename_in(place->path, fresh, link);
}
