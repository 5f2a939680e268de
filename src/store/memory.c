// SPDX-License-Identifier: Apache-2.0
/* A store in memory: for tests, and for publishers and followers in one process. */
#include "base/memory.h"
#include "base/buffer.h"
#include "base/lock.h"
#include "base/quote.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define OBJECT_BYTES_MAX ((size_t)1 << 40)

struct object {
    char *key;
    struct buffer bytes;
};

struct memory_store {
    struct lock lock;       /* guards what follows */
    struct object *objects; /* by key */
    size_t count, room;
};

struct memory_writer {
    char *key;
    struct buffer bytes;
};

/* Where the key is, or would be. */
static size_t place_of(const struct memory_store *store, const char *key) {
    size_t low = 0, high = store->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(store->objects[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct object *find(const struct memory_store *store, const char *key) {
    size_t place = place_of(store, key);

    return place < store->count && !strcmp(store->objects[place].key, key) ? &store->objects[place]
                                                                           : NULL;
}

static enum ulp_status not_found(const char *key) {
    return fail(ULP_E_NOT_FOUND, "there is no object %s in the store in memory", quote(key).text);
}

/* Takes over key and bytes if it succeeds. */
static enum ulp_status insert(struct memory_store *store, char *key, struct buffer bytes) {
    size_t place = place_of(store, key);
    enum ulp_status status = ULP_OK;

    if (store->count == store->room)
        status = mem_grow(&store->objects, store->count, sizeof *store->objects, &store->room);
    if (status)
        return status;
    memmove(store->objects + place + 1, store->objects + place,
            (store->count - place) * sizeof *store->objects);
    store->objects[place] = (struct object){key, bytes};
    store->count++;
    return ULP_OK;
}

static enum ulp_status memory_read(void *self, const char *key, uint64_t offset, void *data,
                                   size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    struct memory_store *store = self;
    const struct object *object;
    size_t left;

    lock_take(&store->lock);
    object = find(store, key);
    if (object) {
        left = offset < object->bytes.used ? object->bytes.used - (size_t)offset : 0;
        *ret_read = bytes < left ? bytes : left;
        *ret_total = object->bytes.used;
        if (*ret_read)
            memcpy(data, object->bytes.data + offset, *ret_read);
    }
    lock_give(&store->lock);
    return object ? ULP_OK : not_found(key);
}

static enum ulp_status memory_put_begin(void *self, const char *key, void **ret_writer) {
    struct memory_writer *writer = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *writer, &writer);

    (void)self;
    if (!status)
        status = mem_copy_text(key, &writer->key);
    if (status) {
        mem_free(writer);
        return status;
    }
    writer->bytes = BUFFER(OBJECT_BYTES_MAX);
    *ret_writer = writer;
    return ULP_OK;
}

static enum ulp_status memory_put_write(void *self, void *writer, const void *data, size_t bytes) {
    (void)self;
    return buffer_append(&((struct memory_writer *)writer)->bytes, data, bytes);
}

enum clash { CLASH_REPLACES, CLASH_FAILS };

/* Ends the writer. */
static enum ulp_status put_into_place(struct memory_store *store, struct memory_writer *writer,
                                      enum clash clash) {
    struct object *object;
    enum ulp_status status = ULP_OK;

    lock_take(&store->lock);
    object = find(store, writer->key);
    if (object && clash == CLASH_FAILS) {
        status = fail(ULP_E_EXISTS, "there is an object %s already in the store in memory",
                      quote(writer->key).text);
    } else if (object) {
        struct buffer before = object->bytes;

        object->bytes = writer->bytes;
        writer->bytes = before;
    } else {
        status = insert(store, writer->key, writer->bytes);
        if (!status) {
            writer->key = NULL;
            writer->bytes = BUFFER(0);
        }
    }
    lock_give(&store->lock);
    return status;
}

static void writer_free(struct memory_writer *writer) {
    mem_free(writer->key);
    buffer_release(&writer->bytes);
    mem_free(writer);
}

static enum ulp_status memory_put_end(void *self, void *writer, int keep) {
    enum ulp_status status = keep ? put_into_place(self, writer, CLASH_REPLACES) : ULP_OK;

    writer_free(writer);
    return status;
}

static enum ulp_status memory_create(void *self, const char *key, const void *data, size_t bytes) {
    void *writer = NULL;
    enum ulp_status status = memory_put_begin(self, key, &writer);

    if (status)
        return status;
    status = memory_put_write(self, writer, data, bytes);
    if (!status)
        status = put_into_place(self, writer, CLASH_FAILS);
    writer_free(writer);
    return status;
}

static enum ulp_status memory_stat(void *self, const char *key, uint64_t *ret_bytes) {
    struct memory_store *store = self;
    const struct object *object;

    lock_take(&store->lock);
    object = find(store, key);
    if (object)
        *ret_bytes = object->bytes.used;
    lock_give(&store->lock);
    return object ? ULP_OK : not_found(key);
}

/* The key that follows `after`, copied out, so that the listener may use the store. */
static enum ulp_status next_entry(struct memory_store *store, const char *prefix, const char *after,
                                  char key[ULP_KEY_BYTES_MAX + 1], uint64_t *bytes) {
    enum ulp_status status = ULP_E_NOT_FOUND;
    size_t place;

    lock_take(&store->lock);
    place = place_of(store, strcmp(after, prefix) > 0 ? after : prefix);
    if (place < store->count && !strcmp(store->objects[place].key, after))
        place++;
    if (place < store->count && !strncmp(store->objects[place].key, prefix, strlen(prefix))) {
        snprintf(key, ULP_KEY_BYTES_MAX + 1, "%s", store->objects[place].key);
        *bytes = store->objects[place].bytes.used;
        status = ULP_OK;
    }
    lock_give(&store->lock);
    return status;
}

static enum ulp_status memory_list(void *self, const char *prefix, const char *after,
                                   ulp_store_entry entry, void *user) {
    char key[ULP_KEY_BYTES_MAX + 1] = "", last[ULP_KEY_BYTES_MAX + 1];
    uint64_t bytes = 0;

    while (!next_entry(self, prefix, after, key, &bytes)) {
        if (entry(user, key, bytes))
            return fail(ULP_E_CANCELLED, "the listing of the store in memory was stopped at %s",
                        quote(key).text);
        memcpy(last, key, sizeof last);
        after = last;
    }
    return ULP_OK;
}

static enum ulp_status memory_remove(void *self, const char *key) {
    struct memory_store *store = self;
    struct object *object;

    lock_take(&store->lock);
    object = find(store, key);
    if (object) {
        size_t place = (size_t)(object - store->objects);

        mem_free(object->key);
        buffer_release(&object->bytes);
        store->count--;
        memmove(object, object + 1, (store->count - place) * sizeof *object);
    }
    lock_give(&store->lock);
    return ULP_OK;
}

static void memory_free(void *self) {
    struct memory_store *store = self;

    for (size_t i = 0; i < store->count; i++) {
        mem_free(store->objects[i].key);
        buffer_release(&store->objects[i].bytes);
    }
    mem_free(store->objects);
    lock_destroy(&store->lock);
    mem_free(store);
}

enum ulp_status ulp_store_memory(struct ulp_store **ret_store) {
    static const struct ulp_store_ops ops = {
        .read = memory_read,
        .create = memory_create,
        .put_begin = memory_put_begin,
        .put_write = memory_put_write,
        .put_end = memory_put_end,
        .stat = memory_stat,
        .list = memory_list,
        .remove = memory_remove,
        .free = memory_free,
    };
    struct memory_store *store = NULL;
    enum ulp_status status =
        ret_store ? mem_zeroed(1, sizeof *store, &store) : store_argument_missing(__func__);

    if (status)
        return status;
    lock_make(&store->lock);
    return ulp_store_new(&ops, store, "memory", ret_store);
}
