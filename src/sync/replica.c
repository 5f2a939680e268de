// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* flock, O_DIRECTORY */
#include "sync/replica.h"

#include "base/endian.h"
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
#define SEEN_BYTES (8u + RUN_ID_BYTES + 8u + SHA256_BYTES)

static const uint8_t seen_magic[8] = "ulpseen";

static enum ulp_status join(const struct replica *replica, const char *rest, char *text) {
    if (snprintf(text, PATH_MAX, "%s/%s", replica->path, rest) >= PATH_MAX)
        return fail(ULP_E_NAME, "the path %s is too long", quote(replica->path).text);
    return ULP_OK;
}

enum ulp_status replica_version_path(const struct replica *replica, uint64_t version, char *text) {
    char rest[64];

    snprintf(rest, sizeof rest, "versions/%020llu", (unsigned long long)version);
    return join(replica, rest, text);
}

static bool exists(const char *path) {
    struct stat info;

    return !lstat(path, &info);
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

/* The version that a name stands for; UINT64_MAX for anything else. */
static uint64_t version_of(const char *name) {
    return strlen(name) == 20 && strspn(name, "0123456789") == 20 ? strtoull(name, NULL, 10)
                                                                  : UINT64_MAX;
}

/* All but the current version and the one before it. */
static enum ulp_status remove_others(const struct replica *replica) {
    char versions[PATH_MAX], path[PATH_MAX];
    DIR *directory;
    struct dirent *entry;
    enum ulp_status status = join(replica, "versions", versions);

    directory = status ? NULL : opendir(versions);
    if (!directory)
        return status ? status : fail_errno("list", versions);
    while ((entry = readdir(directory))) {
        uint64_t version = version_of(entry->d_name);

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            (replica->held.any &&
             (version == replica->held.version || version + 1 == replica->held.version)))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", versions, entry->d_name) < (int)sizeof path)
            remove_files(path);
    }
    closedir(directory);
    return ULP_OK;
}

/* What a process that was killed left beside them: a file that was to replace `seen`, a link that
 * was to replace `current`. We hold the lock, so nobody is at work on one. */
static enum ulp_status remove_leftovers(const struct replica *replica) {
    DIR *directory = opendir(replica->path);
    struct dirent *entry;

    if (!directory)
        return fail_errno("list", replica->path);
    while ((entry = readdir(directory))) {
        if (!strncmp(entry->d_name, ".ulpsync-tmp-", 13) || !strcmp(entry->d_name, FRESH_LINK))
            unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    return ULP_OK;
}

/* ---- what is there ---- */

static enum ulp_status look_at_current(struct replica *replica) {
    char link[PATH_MAX], target[PATH_MAX], before[PATH_MAX];
    ssize_t length;
    uint64_t version;
    enum ulp_status status = join(replica, "current", link);

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
    replica->held.any = true;
    replica->held.version = version;
    if (version)
        status = replica_version_path(replica, version - 1, before);
    replica->held.before = !status && version && exists(before);
    return status;
}

static enum ulp_status look_at_seen(struct replica *replica) {
    struct buffer bytes = BUFFER(SEEN_BYTES);
    char path[PATH_MAX];
    enum ulp_status status = join(replica, "seen", path);

    if (!status && !exists(path))
        return ULP_OK;
    if (!status)
        status = file_read(path, FILE_REFUSE_LINKS, &bytes);
    if (!status &&
        (bytes.used != SEEN_BYTES || memcmp(bytes.data, seen_magic, sizeof seen_magic) != 0))
        status = fail(ULP_E_RECORD, "%s is damaged; remove it to start anew", quote(path).text);
    if (!status) {
        memcpy(replica->run, bytes.data + 8, RUN_ID_BYTES);
        replica->mark.sequence = load_le64(bytes.data + 8 + RUN_ID_BYTES);
        memcpy(&replica->mark.hash, bytes.data + 16 + RUN_ID_BYTES, SHA256_BYTES);
        replica->seen = true;
    }
    buffer_release(&bytes);
    return status;
}

static enum ulp_status take_lock(struct replica *replica) {
    char path[PATH_MAX];
    int file;
    enum ulp_status status = join(replica, "lock", path);

    if (status)
        return status;
    file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_errno("open", path);
    replica->lock = file + 1;
    if (flock(file, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK
                   ? fail(ULP_E_BUSY, "%s is in use by another process", quote(replica->path).text)
                   : fail_errno("lock", path);
    return ULP_OK;
}

enum ulp_status replica_open(const char *path, struct replica *ret_replica) {
    struct replica replica = {0};
    char versions[PATH_MAX];
    enum ulp_status status = mem_copy_text(path, &replica.path);

    if (!status)
        status = file_make_directory(path);
    if (!status)
        status = join(&replica, "versions", versions);
    if (!status)
        status = file_make_directory(versions);
    if (!status)
        status = take_lock(&replica);
    if (!status)
        status = remove_leftovers(&replica);
    if (!status)
        status = look_at_current(&replica);
    if (!status)
        status = look_at_seen(&replica);
    if (!status)
        status = remove_others(&replica);
    if (status) {
        replica_release(&replica);
        return status;
    }
    *ret_replica = replica;
    return ULP_OK;
}

void replica_release(struct replica *replica) {
    if (replica->lock)
        close(replica->lock - 1);
    mem_free(replica->path);
    *replica = (struct replica){0};
}

/* ---- going on ---- */

enum ulp_status replica_unfinished(const struct replica *replica, uint64_t version, char *text) {
    char rest[64];
    enum ulp_status status;

    snprintf(rest, sizeof rest, "versions/.%020llu.unfinished", (unsigned long long)version);
    status = join(replica, rest, text);
    if (status)
        return status;
    remove_files(text);
    return file_make_directory(text);
}

enum ulp_status replica_switch(struct replica *replica, uint64_t version) {
    char target[64], link[PATH_MAX], fresh[PATH_MAX], before[PATH_MAX];
    enum ulp_status status = join(replica, "current", link);

    snprintf(target, sizeof target, "versions/%020llu", (unsigned long long)version);
    if (!status)
        status = join(replica, FRESH_LINK, fresh);
    if (!status && unlink(fresh) && errno != ENOENT)
        status = fail_errno("remove", fresh);
    if (!status && symlink(target, fresh))
        status = fail_errno("link", fresh);
    if (!status && rename(fresh, link))
        status = fail_errno("put into place", link);
    if (!status)
        status = file_sync_parent(link);
    if (!status && version)
        status = replica_version_path(replica, version - 1, before);
    if (status)
        return status;
    replica->held = (struct held){true, version, version && exists(before)};
    return remove_others(replica);
}

enum ulp_status replica_see(struct replica *replica, const struct log_entry *entry) {
    uint8_t bytes[SEEN_BYTES];
    char path[PATH_MAX];
    enum ulp_status status = join(replica, "seen", path);

    if (replica->seen && replica->mark.sequence == entry->record.sequence &&
        !memcmp(&replica->mark.hash, &entry->hash, sizeof entry->hash))
        return ULP_OK; /* who looks every second must not write every second */
    memcpy(bytes, seen_magic, sizeof seen_magic);
    memcpy(bytes + 8, entry->record.run, RUN_ID_BYTES);
    store_le64(bytes + 8 + RUN_ID_BYTES, entry->record.sequence);
    memcpy(bytes + 16 + RUN_ID_BYTES, &entry->hash, SHA256_BYTES);
    if (!status)
        status = file_write(path, bytes, sizeof bytes, ULP_COMMIT_REPLACE);
    if (!status) {
        replica->seen = true;
        replica->mark = (struct log_mark){entry->record.sequence, entry->hash};
        memcpy(replica->run, entry->record.run, RUN_ID_BYTES);
    }
    return status;
}
