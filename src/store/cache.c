// SPDX-License-Identifier: Apache-2.0
/* A store around another one that keeps on this machine what was read. */
#define _GNU_SOURCE /* futimens, st_mtim */
#include "base/lock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "store/cache_files.h"
#include "store/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Objects that are read piece by piece at the same time. */
#define VERIFIED_NOTES 16

/* A file whose bytes had the right hash. Who writes into it changes its time. */
struct verified {
    char name[CACHE_NAME_LENGTH];
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec written;
};

struct cache {
    struct ulp_store *inner;
    struct cache_files files;
    atomic_bool warned;
    struct lock lock; /* guards what follows */
    struct verified notes[VERIFIED_NOTES];
    unsigned next_note;
};

/* One read of an object that has a place in the cache. */
struct wanted {
    const char *key, *name;
    uint64_t offset;
    uint8_t *data;
    size_t bytes;
    size_t *ret_read;
    uint64_t *ret_total;
};

/* ---- what was verified ---- */

static struct verified note_of(const char *name, const struct stat *info) {
    struct verified note = {.device = info->st_dev,
                            .inode = info->st_ino,
                            .bytes = info->st_size,
                            .written = info->st_mtim};

    memcpy(note.name, name, sizeof note.name);
    return note;
}

static bool same(const struct verified *a, const struct verified *b) {
    return !memcmp(a->name, b->name, sizeof a->name) && a->device == b->device &&
           a->inode == b->inode && a->bytes == b->bytes && a->written.tv_sec == b->written.tv_sec &&
           a->written.tv_nsec == b->written.tv_nsec;
}

static bool was_verified(struct cache *cache, const struct verified *file) {
    bool found = false;

    lock_take(&cache->lock);
    for (size_t i = 0; i < VERIFIED_NOTES; i++)
        found = found || same(&cache->notes[i], file);
    lock_give(&cache->lock);
    return found;
}

static void note_verified(struct cache *cache, const struct verified *file) {
    if (was_verified(cache, file))
        return;
    lock_take(&cache->lock);
    cache->notes[cache->next_note] = *file;
    cache->next_note = (cache->next_note + 1) % VERIFIED_NOTES;
    lock_give(&cache->lock);
}

/* Each time from the beginning: so whoever found damage and tries again is helped. In the middle,
 * once. */
static bool is_right(struct cache *cache, const struct wanted *wanted, int file,
                     const struct stat *info) {
    struct verified note = note_of(wanted->name, info);

    if (wanted->offset && was_verified(cache, &note))
        return true;
    if (!cache_is_genuine(file, wanted->name))
        return false;
    note_verified(cache, &note);
    return true;
}

/* ---- reading what is kept ---- */

static bool read_at(int file, uint64_t offset, uint8_t *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(file, data + done, bytes - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* The time of the last reading is kept by hand: file systems keep it when they like. */
static bool read_kept(struct cache *cache, const struct wanted *wanted) {
    static const struct timespec read_now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
    int file = cache_find(&cache->files, wanted->name);
    struct stat info = {0};
    uint64_t total, left;
    size_t bytes;
    bool done;

    if (file < 0)
        return false;
    done = !fstat(file, &info) && is_right(cache, wanted, file, &info);
    if (!done)
        cache_drop(&cache->files, wanted->name);
    total = (uint64_t)info.st_size;
    left = wanted->offset < total ? total - wanted->offset : 0;
    bytes = wanted->bytes < left ? wanted->bytes : (size_t)left;
    done = done && read_at(file, wanted->offset, wanted->data, bytes);
    if (done && !wanted->offset)
        futimens(file, read_now);
    close(file);
    if (done) {
        *wanted->ret_read = bytes;
        *wanted->ret_total = total;
    }
    return done;
}

/* ---- keeping what is read ---- */

static enum ulp_status put(struct cache *cache, int file, const uint8_t *data, size_t bytes) {
    while (bytes) {
        ssize_t put = write(file, data, bytes);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && !atomic_exchange(&cache->warned, true))
            log_message(ULP_LOG_WARN, "the cache of store %s cannot be written: %s",
                        quote(ulp_store_name(cache->inner)).text, strerror(errno));
        if (put < 0)
            return ULP_E_NO_SPACE;
        data += put;
        bytes -= (size_t)put;
    }
    return ULP_OK;
}

/* An object on its way into a file, and perhaps to somebody who reads it. */
struct keeping {
    struct cache *cache;
    int file;
    struct sha256 *hash;
    uint64_t next;         /* where the file ends */
    enum ulp_status kept;  /* or why not */
    ulp_store_piece piece; /* NULL: nobody */
    void *user;
};

/* That something cannot be kept is not the reader's concern; without one, it ends the stream. */
static enum ulp_status keep_piece(void *user, uint64_t offset, const void *data, size_t bytes) {
    struct keeping *keeping = user;

    if (!keeping->kept && offset != keeping->next)
        keeping->kept = ULP_E_FILE_CHANGED;
    if (!keeping->kept)
        keeping->kept = put(keeping->cache, keeping->file, data, bytes);
    if (!keeping->kept)
        keeping->kept = sha256_add(keeping->hash, data, bytes);
    keeping->next += bytes;
    return keeping->piece ? keeping->piece(keeping->user, offset, data, bytes) : keeping->kept;
}

/* Keeps the beginning, which has been read, and what is behind it. */
static enum ulp_status fetch_all(struct cache *cache, const struct wanted *wanted, int file,
                                 struct sha256 *hash) {
    struct keeping keeping = {.cache = cache, .file = file, .hash = hash};
    const uint64_t at = *wanted->ret_read, all = *wanted->ret_total;
    uint64_t total = all;
    enum ulp_status status = keep_piece(&keeping, 0, wanted->data, (size_t)at);

    if (!status && at < all)
        status =
            ulp_store_stream(cache->inner, wanted->key, at, all - at, keep_piece, &keeping, &total);
    return !status && (total != all || keeping.next != all) ? ULP_E_FILE_CHANGED : status;
}

static bool keep_all(struct cache *cache, const struct wanted *wanted, int file) {
    struct sha256 *hash = NULL;
    bool right = false;
    enum ulp_status status =
        cache_make_room(&cache->files, *wanted->ret_total) ? sha256_begin(&hash) : ULP_E_NO_SPACE;

    if (!status)
        status = fetch_all(cache, wanted, file, hash);
    if (!status)
        right = cache_hash_is(hash, wanted->name);
    sha256_free(hash);
    return right;
}

static void note_own(struct cache *cache, const char *name, int file) {
    struct stat info;
    struct verified note;

    if (fstat(file, &info))
        return;
    note = note_of(name, &info);
    note_verified(cache, &note);
}

static enum ulp_status read_through(struct cache *cache, const struct wanted *wanted) {
    return ulp_store_read(cache->inner, wanted->key, wanted->offset, wanted->data, wanted->bytes,
                          wanted->ret_read, wanted->ret_total);
}

/* What the caller gets is what the store said; whether it could be kept is not his concern. */
static enum ulp_status read_and_keep(struct cache *cache, const struct wanted *wanted, int file) {
    bool kept = false;
    enum ulp_status status = ULP_OK;

    if (!read_kept(cache, wanted)) { /* somebody may have been faster */
        status = read_through(cache, wanted);
        kept = !status && keep_all(cache, wanted, file);
    }
    if (kept)
        note_own(cache, wanted->name, file);
    cache_end(&cache->files, wanted->name, file, kept);
    return status;
}

static enum ulp_status cache_read(void *self, const char *key, uint64_t offset, void *data,
                                  size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    struct cache *cache = self;
    struct wanted wanted = {key, cache_name(key), offset, data, bytes, ret_read, ret_total};
    int file = -1;

    if (!wanted.name || !bytes)
        return read_through(cache, &wanted);
    if (read_kept(cache, &wanted))
        return ULP_OK;
    if (offset)
        return read_through(cache, &wanted);
    switch (cache_claim(&cache->files, wanted.name, &file)) {
    case CLAIM_OURS:
        return read_and_keep(cache, &wanted, file);
    case CLAIM_OTHERS:
        if (cache_wait(&cache->files, wanted.name, file) && read_kept(cache, &wanted))
            return ULP_OK;
        break;
    case CLAIM_IMPOSSIBLE:
        break;
    }
    return read_through(cache, &wanted);
}

/* ---- streams ---- */

/* What is read goes to the reader and into the file at once. How long it is, is known in the end:
 * room for what is asked for is made before. */
static enum ulp_status stream_and_keep(struct cache *cache, const char *key, const char *name,
                                       uint64_t bytes, struct keeping *keeping,
                                       uint64_t *ret_total) {
    enum ulp_status status;

    keeping->kept =
        cache_make_room(&cache->files, bytes) ? sha256_begin(&keeping->hash) : ULP_E_NO_SPACE;
    status = ulp_store_stream(cache->inner, key, 0, bytes, keep_piece, keeping, ret_total);
    if (status || keeping->next != *ret_total)
        keeping->kept = ULP_E_FILE_CHANGED;
    if (!keeping->kept && !cache_hash_is(keeping->hash, name))
        keeping->kept = ULP_E_CHECKSUM;
    if (!keeping->kept)
        note_own(cache, name, keeping->file);
    sha256_free(keeping->hash);
    cache_end(&cache->files, name, keeping->file, !keeping->kept);
    return status;
}

static const struct ulp_store_ops cache_ops;

/* Whether it is there; reading it finds out if it is what it should be, and mends it if not. */
static bool is_there(const struct cache *cache, const char *name) {
    int file = cache_find(&cache->files, name);

    if (file >= 0)
        close(file);
    return file >= 0;
}

static enum ulp_status cache_stream(void *self, const char *key, uint64_t offset, uint64_t bytes,
                                    ulp_store_piece piece, void *user, uint64_t *ret_total) {
    struct cache *cache = self;
    const char *name = cache_name(key);
    struct keeping keeping = {.cache = cache, .file = -1, .piece = piece, .user = user};

    if (!name || !bytes || offset)
        return ulp_store_stream(cache->inner, key, offset, bytes, piece, user, ret_total);
    if (is_there(cache, name))
        return store_stream_by_reads(&cache_ops, cache, key, 0, bytes, piece, user, ret_total);
    switch (cache_claim(&cache->files, name, &keeping.file)) {
    case CLAIM_OURS:
        if (is_there(cache, name)) { /* somebody was faster */
            cache_end(&cache->files, name, keeping.file, false);
            break;
        }
        return stream_and_keep(cache, key, name, bytes, &keeping, ret_total);
    case CLAIM_OTHERS:
        cache_wait(&cache->files, name, keeping.file);
        break;
    case CLAIM_IMPOSSIBLE:
        break;
    }
    if (is_there(cache, name))
        return store_stream_by_reads(&cache_ops, cache, key, 0, bytes, piece, user, ret_total);
    return ulp_store_stream(cache->inner, key, 0, bytes, piece, user, ret_total);
}

/* ---- everything else ---- */

static enum ulp_status cache_create(void *self, const char *key, const void *data, size_t bytes) {
    return ulp_store_create(((struct cache *)self)->inner, key, data, bytes);
}

static enum ulp_status cache_put_begin(void *self, const char *key, void **ret_writer) {
    struct ulp_store_writer *writer = NULL;
    enum ulp_status status = ulp_store_put_begin(((struct cache *)self)->inner, key, &writer);

    if (!status)
        *ret_writer = writer;
    return status;
}

static enum ulp_status cache_put_write(void *self, void *writer, const void *data, size_t bytes) {
    (void)self;
    return ulp_store_put_write(writer, data, bytes);
}

static enum ulp_status cache_put_end(void *self, void *writer, int keep) {
    (void)self;
    return ulp_store_put_end(writer, keep);
}

static enum ulp_status cache_stat(void *self, const char *key, uint64_t *ret_bytes) {
    return ulp_store_stat(((struct cache *)self)->inner, key, ret_bytes);
}

static enum ulp_status cache_list(void *self, const char *prefix, const char *after,
                                  ulp_store_entry entry, void *user) {
    return ulp_store_list(((struct cache *)self)->inner, prefix, after, entry, user);
}

/* Whoever removes something through this handle does not find it afterwards. */
static enum ulp_status cache_remove(void *self, const char *key) {
    struct cache *cache = self;
    const char *name = cache_name(key);

    if (name)
        cache_drop(&cache->files, name);
    return ulp_store_remove(cache->inner, key);
}

static void cache_free(void *self) {
    struct cache *cache = self;

    ulp_store_free(cache->inner);
    cache_files_release(&cache->files);
    lock_destroy(&cache->lock);
    mem_free(cache);
}

static const struct ulp_store_ops cache_ops = {
    .read = cache_read,
    .create = cache_create,
    .put_begin = cache_put_begin,
    .put_write = cache_put_write,
    .put_end = cache_put_end,
    .stat = cache_stat,
    .list = cache_list,
    .remove = cache_remove,
    .free = cache_free,
    .stream = cache_stream,
};

enum ulp_status ulp_store_cache(struct ulp_store *inner, const char *directory, uint64_t bytes_max,
                                struct ulp_store **ret_store) {
    struct cache *cache = NULL;
    enum ulp_status status = inner && directory && ret_store ? mem_zeroed(1, sizeof *cache, &cache)
                                                             : store_argument_missing(__func__);

    if (!status)
        status = cache_files_open(directory, bytes_max, &cache->files);
    if (status) {
        mem_free(cache);
        ulp_store_free(inner);
        return status;
    }
    cache->inner = inner;
    lock_make(&cache->lock);
    return ulp_store_new(&cache_ops, cache, ulp_store_name(inner), ret_store);
}
