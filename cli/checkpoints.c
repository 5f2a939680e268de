// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* O_DIRECTORY */
#include "cli/checkpoints.h"

#include "cli/terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 16u
#define ENTRIES_MAX 65536u
#define SUFFIX ".safetensors"

/* ---- names ---- */

static size_t digits_before(const char *name, size_t end) {
    size_t start = end;

    while (start && name[start - 1] >= '0' && name[start - 1] <= '9')
        start--;
    return end - start;
}

/* Without ".safetensors" behind it. */
static size_t stem_length(const char *name) {
    size_t length = strlen(name), suffix = strlen(SUFFIX);

    return length > suffix && !strcmp(name + length - suffix, SUFFIX) ? length - suffix : length;
}

/* "model-00002-of-00005.safetensors" has 5, other names 0. */
static uint64_t shards_of(const char *name) {
    size_t end = stem_length(name), digits = digits_before(name, end);

    if (!name[end] || digits < 1 || digits > 9 || end < digits + 4 ||
        strncmp(name + end - digits - 4, "-of-", 4) != 0 || !digits_before(name, end - digits - 4))
        return 0;
    return strtoull(name + end - digits, NULL, 10);
}

static bool parse_step(const char *name, uint64_t *ret_step) {
    size_t end = stem_length(name), digits = digits_before(name, end);
    char number[32];

    if (name[0] == '.' || !strncmp(name, "tmp", 3) || !digits || shards_of(name))
        return false;
    while (digits > 1 && name[end - digits] == '0')
        digits--;
    if (digits > 19)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)digits, name + end - digits);
    *ret_step = strtoull(number, NULL, 10);
    return true;
}

/* ---- looks ---- */

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 1099511628211u; /* FNV-1a */
    return hash;
}

static uint64_t look_of_file(const char *name, const struct stat *info) {
    const int64_t facts[] = {(int64_t)info->st_size,        (int64_t)info->st_ino,
                             (int64_t)info->st_mtim.tv_sec, (int64_t)info->st_mtim.tv_nsec,
                             (int64_t)info->st_ctim.tv_sec, (int64_t)info->st_ctim.tv_nsec};

    return mix(mix(14695981039346656037u, name, strlen(name)), facts, sizeof facts);
}

/* A sum, since entries come in any order. */
static uint64_t look_of_directory(int parent, const char *name, unsigned depth) {
    int descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
    struct dirent *entry;
    uint64_t sum = 0;

    if (!directory) {
        if (descriptor >= 0)
            close(descriptor);
        return 0;
    }
    while ((entry = readdir(directory))) {
        struct stat info;

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            fstatat(descriptor, entry->d_name, &info, AT_SYMLINK_NOFOLLOW))
            continue;
        sum += look_of_file(entry->d_name, &info);
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX)
            sum += 31 * look_of_directory(descriptor, entry->d_name, depth + 1);
    }
    closedir(directory);
    return sum;
}

uint64_t checkpoint_look(const char *path) {
    struct stat info;

    if (stat(path, &info))
        return 0;
    return look_of_file("", &info) +
           (S_ISDIR(info.st_mode) ? look_of_directory(AT_FDCWD, path, 0) : 0);
}

/* ---- the list ---- */

enum ulp_status checkpoint_path(const struct checkpoints *list, const struct checkpoint *entry,
                                char ret_path[PATH_MAX]) {
    if (snprintf(ret_path, PATH_MAX, "%s/%s", list->directory, entry->name) >= PATH_MAX)
        return ulp_fail(ULP_E_NAME, "the path '%s' is too long", list->directory);
    return ULP_OK;
}

static struct checkpoint *find(const struct checkpoints *list, const char *name) {
    for (size_t i = 0; i < list->count; i++) {
        if (!strcmp(list->entries[i].name, name))
            return &list->entries[i];
    }
    return NULL;
}

static enum ulp_status add(struct checkpoints *list, const char *name,
                           struct checkpoint **ret_entry) {
    struct checkpoint *more;

    if (list->count == ENTRIES_MAX)
        return ulp_fail(ULP_E_LIMIT, "'%s' has more than %u new checkpoints", list->directory,
                        ENTRIES_MAX);
    more = realloc(list->entries, (list->count + 1) * sizeof *more);
    if (!more)
        return ulp_fail(ULP_E_NOMEM, "no memory for a list of checkpoints");
    list->entries = more;
    more[list->count] = (struct checkpoint){.first = !list->looked};
    snprintf(more[list->count].name, sizeof more->name, "%s", name);
    *ret_entry = &more[list->count++];
    return ULP_OK;
}

static enum ulp_status look_at(struct checkpoints *list, const char *name, uint64_t step) {
    struct checkpoint *entry = find(list, name);
    char path[PATH_MAX];
    uint64_t look;
    enum ulp_status status = entry ? ULP_OK : add(list, name, &entry);

    if (!status)
        status = checkpoint_path(list, entry, path);
    if (status)
        return status;
    look = checkpoint_look(path);
    if (look != entry->look) {
        entry->look = look;
        entry->since_ns = now_ns();
        entry->broken = false;
    }
    entry->step = step;
    entry->present = true;
    return ULP_OK;
}

static int compare(const void *left, const void *right) {
    const struct checkpoint *a = left, *b = right;

    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void forget_absent(struct checkpoints *list) {
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].present)
            list->entries[kept++] = list->entries[i];
    }
    list->count = kept;
    if (kept)
        qsort(list->entries, kept, sizeof *list->entries, compare);
}

/* A directory, or a file whose name says what it is. */
static bool can_be_one(DIR *directory, const char *name) {
    struct stat info;

    if (fstatat(dirfd(directory), name, &info, 0))
        return false;
    return S_ISDIR(info.st_mode) || (S_ISREG(info.st_mode) && name[stem_length(name)]);
}

enum ulp_status checkpoints_look(struct checkpoints *list, const uint64_t *published) {
    DIR *directory = opendir(list->directory);
    struct dirent *entry;
    enum ulp_status status = ULP_OK;
    uint64_t step;

    if (!directory)
        return ulp_fail(errno == ENOENT ? ULP_E_NOT_FOUND : ULP_E_IO, "cannot look into '%s': %s",
                        list->directory, strerror(errno));
    for (size_t i = 0; i < list->count; i++)
        list->entries[i].present = false;
    while (!status && (entry = readdir(directory))) {
        if (parse_step(entry->d_name, &step) && (!published || step > *published) &&
            can_be_one(directory, entry->d_name))
            status = look_at(list, entry->d_name, step);
    }
    closedir(directory);
    forget_absent(list);
    list->looked = true;
    return status;
}

void checkpoints_release(struct checkpoints *list) {
    free(list->entries);
    *list = (struct checkpoints){0};
}
