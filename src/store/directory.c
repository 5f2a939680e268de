// SPDX-License-Identifier: Apache-2.0
/*
 * A store in a directory: the object a/b/c is the file a/b/c below it. Every part of a key is
 * opened by itself, and links are never followed, so nobody who can write into the store can lead
 * us out of it. Files appear complete and synced (base/file.h).
 */
#define _GNU_SOURCE /* O_DIRECTORY, O_NOFOLLOW, fdopendir, d_type */
#include "base/file.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ways whose directories this handle has synced; a run has two or three in use at a time. */
#define SYNCED_WAYS 16

struct directory_store {
    int root; /* descriptor + 1 */
    char *path;
    struct lock lock; /* guards what follows */
    char synced[SYNCED_WAYS][ULP_KEY_BYTES_MAX + 1];
    unsigned synced_next; /* is overwritten next */
};

/* ---- messages ---- */

/* Where an object is, to show; a path that is too long even for the system is cut. */
struct shown {
    char text[4096 + ULP_KEY_BYTES_MAX + 2];
};

static struct shown shown(const struct directory_store *store, const char *key) {
    struct shown shown;
    size_t length = strlen(store->path);

    while (length && store->path[length - 1] == '/')
        length--;
    snprintf(shown.text, sizeof shown.text, "%.*s%s%s", length < 4096 ? (int)length : 4096,
             store->path, *key ? "/" : "", key);
    return shown;
}

static enum ulp_status fail_at(const struct directory_store *store, const char *doing,
                               const char *key) {
    int error = errno;
    struct shown place = shown(store, key);

    errno = error;
    return fail_errno(doing, place.text);
}

/* ---- the way to a file ---- */

static int open_child(int directory, const char *name) {
    return openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/*
 * Opens a directory, which is made if need be. It has to last before anything in it can, and
 * whoever made it may not have come to sync it: so that is done, unless it is known to last.
 */
static int make_child(int directory, const char *name, bool lasts) {
    int child = open_child(directory, name);

    if (child < 0 && errno == ENOENT && (!mkdirat(directory, name, 0777) || errno == EEXIST)) {
        child = open_child(directory, name);
        lasts = false;
    }
    if (child >= 0 && !lasts && file_sync_directory(directory)) {
        int error = errno;

        close(child);
        errno = error;
        return -1;
    }
    return child;
}

/*
 * How much of a key's way this handle knows to last, up to and with a slash: syncing is most of
 * what a small object costs. Directories of a store are never removed; whoever did so by hand, and
 * had them made again by another process, could lose what is written meanwhile to a power cut.
 */
static size_t known_to_last(struct directory_store *store, const char *key) {
    size_t longest = 0;

    lock_take(&store->lock);
    for (size_t i = 0; i < SYNCED_WAYS; i++) {
        const char *way = store->synced[i];

        for (size_t at = 0; way[at] && way[at] == key[at]; at++)
            if (way[at] == '/' && at + 1 > longest)
                longest = at + 1;
    }
    lock_give(&store->lock);
    return longest;
}

/* `length` includes the slash before the object's name. */
static void note_that_it_lasts(struct directory_store *store, const char *key, size_t length) {
    lock_take(&store->lock);
    memcpy(store->synced[store->synced_next], key, length);
    store->synced[store->synced_next][length] = 0;
    store->synced_next = (store->synced_next + 1) % SYNCED_WAYS;
    lock_give(&store->lock);
}

enum missing { MISSING_FAILS, MISSING_IS_MADE };

/* The directory that holds the key's file, as a new descriptor, and the file's name. */
static enum ulp_status open_way(struct directory_store *store, const char *key,
                                enum missing missing, int *ret_directory, const char **ret_name) {
    const size_t lasts = missing == MISSING_IS_MADE ? known_to_last(store, key) : 0;
    int at = fcntl(store->root - 1, F_DUPFD_CLOEXEC, 0);
    const char *name = key, *slash;

    for (; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        char part[ULP_KEY_PART_BYTES_MAX + 1];
        size_t length = (size_t)(slash - name);
        int next, error = 0;

        memcpy(part, name, length);
        part[length] = 0;
        next = missing == MISSING_IS_MADE ? make_child(at, part, slash < key + lasts)
                                          : open_child(at, part);
        error = errno;
        close(at);
        errno = error;
        at = next;
    }
    if (at < 0 && missing == MISSING_IS_MADE && (errno == ENOTDIR || errno == ELOOP))
        return fail(ULP_E_FILE_KIND, "the way to %s leads through something that is no directory",
                    quote(shown(store, key).text).text);
    if (at < 0)
        return fail_at(store, "open the directory of", key);
    if (missing == MISSING_IS_MADE && lasts < (size_t)(name - key))
        note_that_it_lasts(store, key, (size_t)(name - key));
    *ret_directory = at;
    *ret_name = name;
    return ULP_OK;
}

/* ---- reading ---- */

static enum ulp_status open_object(struct directory_store *store, const char *key, int *ret_file,
                                   uint64_t *ret_bytes) {
    const char *name = NULL;
    struct stat info;
    int directory = -1, file;
    enum ulp_status status = open_way(store, key, MISSING_FAILS, &directory, &name);

    if (status)
        return status;
    file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        status = fail_at(store, "open", key);
    else if (fstat(file, &info))
        status = fail_at(store, "look at", key);
    else if (!S_ISREG(info.st_mode))
        status =
            fail(ULP_E_FILE_KIND, "%s is not a plain file", quote(shown(store, key).text).text);
    close(directory);
    if (status) {
        if (file >= 0)
            close(file);
        return status;
    }
    *ret_file = file;
    *ret_bytes = (uint64_t)info.st_size;
    return ULP_OK;
}

static enum ulp_status directory_read(void *self, const char *key, uint64_t offset, void *data,
                                      size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    uint64_t total = 0;
    size_t done = 0;
    int file = -1;
    enum ulp_status status = open_object(self, key, &file, &total);

    if (status)
        return status;
    if (offset < total && bytes > total - offset)
        bytes = (size_t)(total - offset);
    while (!status && offset < total && done < bytes) {
        ssize_t got = pread(file, (uint8_t *)data + done, bytes - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = fail_at(self, "read", key);
        if (!got)
            status = fail(ULP_E_FILE_CHANGED, "%s shrank while it was read",
                          quote(shown(self, key).text).text);
        done += got > 0 ? (size_t)got : 0;
    }
    close(file);
    if (!status) {
        *ret_read = done;
        *ret_total = total;
    }
    return status;
}

static enum ulp_status directory_stat(void *self, const char *key, uint64_t *ret_bytes) {
    int file = -1;
    enum ulp_status status = open_object(self, key, &file, ret_bytes);

    if (!status)
        close(file);
    return status;
}

/* ---- writing ---- */

struct directory_writer {
    struct file_writer file;
    uint64_t bytes;
};

static enum ulp_status directory_put_begin(void *self, const char *key, void **ret_writer) {
    struct directory_writer *writer = NULL;
    const char *name = NULL;
    int directory = -1;
    enum ulp_status status = mem_zeroed(1, sizeof *writer, &writer);

    if (!status)
        status = open_way(self, key, MISSING_IS_MADE, &directory, &name);
    if (!status) {
        status = file_writer_open_in(directory, name, shown(self, key).text, &writer->file);
        close(directory);
    }
    if (status) {
        mem_free(writer);
        return status;
    }
    *ret_writer = writer;
    return ULP_OK;
}

static enum ulp_status directory_put_write(void *self, void *to, const void *data, size_t bytes) {
    struct directory_writer *writer = to;
    enum ulp_status status = file_writer_put(&writer->file, writer->bytes, data, bytes);

    (void)self;
    writer->bytes += bytes;
    return status;
}

/* Whoever hears that an object exists may rely on it, so something else in its place is another
 * failure. */
static enum ulp_status tell_what_exists(const struct file_writer *file) {
    struct stat info;

    if (fstatat(file->directory - 1, file->name, &info, AT_SYMLINK_NOFOLLOW) ||
        S_ISREG(info.st_mode))
        return ULP_E_EXISTS;
    return fail(ULP_E_FILE_KIND, "%s is there already and is not a plain file",
                quote(file->path).text);
}

static enum ulp_status end(struct directory_writer *writer, bool keep, enum ulp_commit commit) {
    enum ulp_status status = keep ? file_writer_commit(&writer->file, commit) : ULP_OK;

    if (status == ULP_E_EXISTS)
        status = tell_what_exists(&writer->file);
    file_writer_release(&writer->file);
    mem_free(writer);
    return status;
}

static enum ulp_status directory_put_end(void *self, void *writer, int keep) {
    (void)self;
    return end(writer, keep, ULP_COMMIT_REPLACE);
}

static enum ulp_status directory_create(void *self, const char *key, const void *data,
                                        size_t bytes) {
    void *writer = NULL;
    struct error_note note;
    enum ulp_status status = directory_put_begin(self, key, &writer);

    if (status)
        return status;
    status = directory_put_write(self, writer, data, bytes);
    if (!status)
        return end(writer, true, ULP_COMMIT_NEW);
    error_save(&note);
    end(writer, false, ULP_COMMIT_NEW);
    error_restore(&note);
    return status;
}

static enum ulp_status directory_remove(void *self, const char *key) {
    const char *name = NULL;
    int directory = -1;
    enum ulp_status status = open_way(self, key, MISSING_FAILS, &directory, &name);

    if (status == ULP_E_NOT_FOUND)
        return ULP_OK;
    if (status)
        return status;
    if (unlinkat(directory, name, 0) && errno != ENOENT)
        status = fail_at(self, "remove", key);
    else if (file_sync_directory(directory))
        status = fail_at(self, "sync the directory of", key);
    close(directory);
    return status;
}

/* ---- listing ---- */

struct names {
    char **names;
    size_t count, room;
};

static void names_release(struct names *names) {
    for (size_t i = 0; i < names->count; i++)
        mem_free(names->names[i]);
    mem_free(names->names);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* DT_DIR, DT_REG, or anything else. Most file systems say it with the name. */
static unsigned char kind_of(int directory, const struct dirent *entry) {
    struct stat info;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    if (fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW))
        return DT_UNKNOWN;
    return S_ISDIR(info.st_mode) ? DT_DIR : S_ISREG(info.st_mode) ? DT_REG : DT_UNKNOWN;
}

/* A directory's name gets a slash, so that names sort as the keys do. Others than keys are not
 * ours. */
static enum ulp_status add_name(struct names *names, int directory, const struct dirent *entry) {
    const unsigned char kind = kind_of(directory, entry);
    char text[ULP_KEY_PART_BYTES_MAX + 2];
    size_t length = strlen(entry->d_name);
    enum ulp_status status = ULP_OK;

    if ((kind != DT_DIR && kind != DT_REG) || key_check(entry->d_name))
        return ULP_OK;
    memcpy(text, entry->d_name, length);
    text[length] = kind == DT_DIR ? '/' : 0;
    text[length + 1] = 0;
    if (names->count == names->room)
        status = mem_grow(&names->names, names->count, sizeof *names->names, &names->room);
    if (!status)
        status = mem_copy_text(text, &names->names[names->count]);
    if (!status)
        names->count++;
    return status;
}

/* Takes over `directory`. */
static enum ulp_status read_names(const struct directory_store *store, int directory,
                                  const char *key, struct names *names) {
    DIR *stream = fdopendir(directory);
    struct dirent *entry;
    enum ulp_status status = ULP_OK;

    if (!stream) {
        status = fail_at(store, "list", key);
        close(directory);
        return status;
    }
    while (!status && (errno = 0, entry = readdir(stream)))
        status = add_name(names, dirfd(stream), entry);
    if (!status && errno)
        status = fail_at(store, "list", key);
    closedir(stream);
    if (!status && names->count)
        qsort(names->names, names->count, sizeof *names->names, by_bytes);
    return status;
}

struct listing {
    const struct directory_store *store;
    const char *prefix, *after;
    ulp_store_entry entry;
    void *user;
    char key[ULP_KEY_BYTES_MAX + 2]; /* as far as it goes */
    size_t length;
};

static enum ulp_status list_below(struct listing *listing, int directory);

/* Whether keys that begin with this text may be among those wanted. */
static bool of_interest(const struct listing *listing, bool is_directory) {
    size_t prefix = strlen(listing->prefix), length = listing->length;
    size_t common = length < prefix ? length : prefix;

    if (strncmp(listing->key, listing->prefix, common) != 0 || (!is_directory && length < prefix))
        return false;
    if (is_directory) /* some of them may be behind `after` */
        return strncmp(listing->key, listing->after, length) >= 0;
    return strcmp(listing->key, listing->after) > 0;
}

static enum ulp_status list_name(struct listing *listing, int directory, const char *name) {
    const size_t before = listing->length, length = strlen(name);
    const bool is_directory = name[length - 1] == '/';
    struct stat info;
    char part[ULP_KEY_PART_BYTES_MAX + 2];
    enum ulp_status status = ULP_OK;

    if (before + length > ULP_KEY_BYTES_MAX)
        return ULP_OK;
    memcpy(listing->key + before, name, length + 1);
    listing->length = before + length;
    memcpy(part, name, length + 1);
    if (is_directory)
        part[length - 1] = 0;
    if (of_interest(listing, is_directory) && is_directory) {
        int child = open_child(directory, part);

        /* one that has just gone, or become something else, has no keys; all others would be
         * missing */
        if (child >= 0)
            status = list_below(listing, child);
        else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            status = fail_at(listing->store, "list", listing->key);
    } else if (of_interest(listing, is_directory) && !key_check(listing->key) &&
               !fstatat(directory, part, &info, AT_SYMLINK_NOFOLLOW) && S_ISREG(info.st_mode)) {
        if (listing->entry(listing->user, listing->key, (uint64_t)info.st_size))
            status = fail(ULP_E_CANCELLED, "the listing was stopped at %s",
                          quote(shown(listing->store, listing->key).text).text);
    }
    listing->length = before;
    listing->key[before] = 0;
    return status;
}

/* The one directory in this one that the prefix leads through, with a slash; false if it may be any. */
static bool way_on(const struct listing *listing, char ret_name[ULP_KEY_PART_BYTES_MAX + 2]) {
    const size_t prefix = strlen(listing->prefix), from = listing->length;
    const size_t length = from < prefix ? strcspn(listing->prefix + from, "/") : 0;

    if (!length || from + length == prefix || length > ULP_KEY_PART_BYTES_MAX)
        return false;
    memcpy(ret_name, listing->prefix + from, length);
    ret_name[length] = 0;
    if (key_check(ret_name)) /* "..": no key has it, and nobody is to go there */
        return false;
    memcpy(ret_name + length, "/", 2);
    return true;
}

static enum ulp_status list_names(struct listing *listing, int directory) {
    struct names names = {0};
    int copy = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    enum ulp_status status = copy < 0 ? fail_at(listing->store, "list", listing->key)
                                      : read_names(listing->store, copy, listing->key, &names);

    for (size_t i = 0; !status && i < names.count; i++)
        status = list_name(listing, directory, names.names[i]);
    names_release(&names);
    return status;
}

/* Takes over `directory`. Keys have at most some hundred parts, so this ends. */
static enum ulp_status list_below(struct listing *listing, int directory) {
    char name[ULP_KEY_PART_BYTES_MAX + 2];
    enum ulp_status status = way_on(listing, name) ? list_name(listing, directory, name)
                                                   : list_names(listing, directory);

    close(directory);
    return status;
}

static enum ulp_status directory_list(void *self, const char *prefix, const char *after,
                                      ulp_store_entry entry, void *user) {
    struct directory_store *store = self;
    struct listing listing = {
        .store = store, .prefix = prefix, .after = after, .entry = entry, .user = user};
    int root = open_child(store->root - 1, ".");

    return root < 0 ? fail_at(store, "list", "") : list_below(&listing, root);
}

/* ---- opening ---- */

static void directory_free(void *self) {
    struct directory_store *store = self;

    if (store->root)
        close(store->root - 1);
    lock_destroy(&store->lock);
    mem_free(store->path);
    mem_free(store);
}

/* As make_child(); but whoever only reads may not be allowed to look at what is above. */
static enum ulp_status make_root(const char *path) {
    enum ulp_status status = file_make_directory(path);

    if (status)
        return status;
    status = file_sync_parent(path);
    return status == ULP_E_PERMISSION ? ULP_OK : status;
}

enum ulp_status store_directory_new(const char *path, struct ulp_store **ret_store) {
    static const struct ulp_store_ops ops = {
        .read = directory_read,
        .create = directory_create,
        .put_begin = directory_put_begin,
        .put_write = directory_put_write,
        .put_end = directory_put_end,
        .stat = directory_stat,
        .list = directory_list,
        .remove = directory_remove,
        .free = directory_free,
    };
    struct directory_store *store = NULL;
    int root;
    enum ulp_status status = make_root(path);

    if (!status)
        status = mem_zeroed(1, sizeof *store, &store);
    if (status)
        return status;
    lock_make(&store->lock);
    status = mem_copy_text(path, &store->path);
    if (!status) {
        root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        store->root = root + 1;
        if (root < 0)
            status = fail_errno("open the store", path);
    }
    if (status) {
        directory_free(store);
        return status;
    }
    return ulp_store_new(&ops, store, path, ret_store);
}
