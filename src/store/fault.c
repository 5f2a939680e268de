// SPDX-License-Identifier: Apache-2.0
/* A store around another one that fails and lies as it is told to: for tests of whatever uses
 * stores. */
#include "base/buffer.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "store/store.h"

#include <stdbool.h>

/* What one object can have so that it is remembered when it is replaced or removed. */
#define OLD_BYTES_MAX ((size_t)1 << 40)

struct faulty {
    struct ulp_store *inner;
    ulp_store_decide decide;
    void *user;
    struct ulp_store *before; /* each object as it was before its last change; not there: none */
    struct lock lock;         /* held from looking at what is there to having changed it */
};

struct faulty_writer {
    struct ulp_store_writer *inner;
    char *key;
};

static enum ulp_status injected(const struct faulty *faulty, const char *key) {
    return fail(ULP_E_IO, "store %s: an injected fault at %s",
                quote(ulp_store_name(faulty->inner)).text, quote(key).text);
}

static enum ulp_fault decide(const struct faulty *faulty, enum ulp_store_op op, const char *key) {
    return faulty->decide(faulty->user, op, key);
}

/* The answer to what was done; it gets lost if so decided. */
static enum ulp_status answer(const struct faulty *faulty, const char *key, enum ulp_fault fault,
                              enum ulp_status status) {
    return !status && fault == ULP_FAULT_AFTER ? injected(faulty, key) : status;
}

/* ---- the past ---- */

/* The store that is looked at: as it is, or as it was. */
static struct ulp_store *seen(const struct faulty *faulty, enum ulp_fault fault) {
    return fault == ULP_FAULT_OLD ? faulty->before : faulty->inner;
}

/* The message names the store that everybody knows. */
static enum ulp_status as_seen(const struct faulty *faulty, const char *key, enum ulp_fault fault,
                               enum ulp_status status) {
    if (fault != ULP_FAULT_OLD || status != ULP_E_NOT_FOUND)
        return status;
    return fail(ULP_E_NOT_FOUND, "store %s: there was no %s before the last change",
                quote(ulp_store_name(faulty->inner)).text, quote(key).text);
}

static enum ulp_status is_there(const struct faulty *faulty, const char *key, bool *ret_there) {
    uint64_t bytes = 0;
    enum ulp_status status = ulp_store_stat(faulty->inner, key, &bytes);

    if (status && status != ULP_E_NOT_FOUND)
        return status;
    *ret_there = !status;
    return ULP_OK;
}

/* Appends an object, if it is there. */
static enum ulp_status read_present(const struct faulty *faulty, const char *key,
                                    struct buffer *into, bool *ret_there) {
    uint64_t total = 1;
    enum ulp_status status = is_there(faulty, key, ret_there);

    while (!status && *ret_there && into->used < total) {
        uint8_t piece[4096];
        size_t got = 0;

        status = ulp_store_read(faulty->inner, key, into->used, piece, sizeof piece, &got, &total);
        if (!status && !got)
            break;
        if (!status)
            status = buffer_append(into, piece, got);
    }
    return status;
}

enum outcome { OBJECT_IS_THERE, OBJECT_IS_GONE };

/* Does what changes an object, which then is there or gone, and remembers what was there. One that
 * is as gone as before has not changed. */
static enum ulp_status change(struct faulty *faulty, const char *key, enum outcome outcome,
                              enum ulp_status (*act)(struct faulty *faulty, void *user),
                              void *user) {
    struct buffer old = BUFFER(OLD_BYTES_MAX);
    bool there = false;
    enum ulp_status status;

    lock_take(&faulty->lock);
    status = read_present(faulty, key, &old, &there);
    if (!status)
        status = act(faulty, user);
    if (!status && there)
        status = ulp_store_put(faulty->before, key, old.data, old.used);
    else if (!status && outcome == OBJECT_IS_THERE)
        status = ulp_store_remove(faulty->before, key);
    lock_give(&faulty->lock);
    buffer_release(&old);
    return status;
}

/* ---- reading ---- */

static enum ulp_status faulty_read(void *self, const char *key, uint64_t offset, void *data,
                                   size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_READ, key);
    uint64_t total = 0;
    size_t got = 0;
    enum ulp_status status;

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, key);
    status = as_seen(faulty, key, fault,
                     ulp_store_read(seen(faulty, fault), key, offset, data, bytes, &got, &total));
    status = answer(faulty, key, fault, status);
    if (status)
        return status;
    if (fault == ULP_FAULT_TRUNCATE) {
        total /= 2;
        got = offset >= total ? 0 : got < total - offset ? got : (size_t)(total - offset);
    }
    if (fault == ULP_FAULT_FLIP && got)
        ((uint8_t *)data)[got / 2] ^= 1;
    *ret_read = got;
    *ret_total = total;
    return ULP_OK;
}

static enum ulp_status faulty_stat(void *self, const char *key, uint64_t *ret_bytes) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_STAT, key);
    uint64_t bytes = 0;
    enum ulp_status status;

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, key);
    status = as_seen(faulty, key, fault, ulp_store_stat(seen(faulty, fault), key, &bytes));
    status = answer(faulty, key, fault, status);
    if (!status)
        *ret_bytes = fault == ULP_FAULT_TRUNCATE ? bytes / 2 : bytes;
    return status;
}

struct first_only {
    ulp_store_entry entry;
    void *user;
    bool heard;
    int said;
};

static int only_the_first(void *user, const char *key, uint64_t bytes) {
    struct first_only *first = user;

    if (!first->heard)
        first->said = first->entry(first->user, key, bytes);
    first->heard = true;
    return first->said;
}

static enum ulp_status faulty_list(void *self, const char *prefix, const char *after,
                                   ulp_store_entry entry, void *user) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_LIST, prefix);
    struct first_only first = {.entry = entry, .user = user};

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, prefix);
    if (fault == ULP_FAULT_TRUNCATE)
        return ulp_store_list(faulty->inner, prefix, after, only_the_first, &first);
    return answer(faulty, prefix, fault,
                  ulp_store_list(seen(faulty, fault), prefix, after, entry, user));
}

/* ---- writing ---- */

struct creation {
    const char *key;
    const void *data;
    size_t bytes;
    enum ulp_fault fault;
};

/* Where nothing may be done, whoever is first and whoever is not are told the truth, or the
 * opposite. */
static enum ulp_status pretend_to_create(struct faulty *faulty, const struct creation *creation) {
    bool there = false, told;
    enum ulp_status status = is_there(faulty, creation->key, &there);

    if (status)
        return status;
    told = creation->fault == ULP_FAULT_INVERT ? !there : there;
    return told ? fail(ULP_E_EXISTS, "store %s: there is an object %s already",
                       quote(ulp_store_name(faulty->inner)).text, quote(creation->key).text)
                : ULP_OK;
}

static enum ulp_status create_now(struct faulty *faulty, void *user) {
    const struct creation *creation = user;

    if (creation->fault == ULP_FAULT_FORCE)
        return ulp_store_put(faulty->inner, creation->key, creation->data, creation->bytes);
    return ulp_store_create(faulty->inner, creation->key, creation->data, creation->bytes);
}

static enum ulp_status faulty_create(void *self, const char *key, const void *data, size_t bytes) {
    struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_CREATE, key);
    struct creation creation = {key, data, fault == ULP_FAULT_TRUNCATE ? bytes / 2 : bytes, fault};

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, key);
    if (fault == ULP_FAULT_LOSE || fault == ULP_FAULT_INVERT)
        return pretend_to_create(faulty, &creation);
    return answer(faulty, key, fault, change(faulty, key, OBJECT_IS_THERE, create_now, &creation));
}

static void writer_free(struct faulty_writer *writer) {
    mem_free(writer->key);
    mem_free(writer);
}

static enum ulp_status faulty_put_begin(void *self, const char *key, void **ret_writer) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_PUT_BEGIN, key);
    struct faulty_writer *writer = NULL;
    enum ulp_status status;

    if (fault == ULP_FAULT_BEFORE || fault == ULP_FAULT_AFTER) /* nobody can tell them apart */
        return injected(faulty, key);
    status = mem_zeroed(1, sizeof *writer, &writer);
    if (status)
        return status;
    status = mem_copy_text(key, &writer->key);
    if (!status)
        status = ulp_store_put_begin(faulty->inner, key, &writer->inner);
    if (status) {
        writer_free(writer);
        return status;
    }
    *ret_writer = writer;
    return ULP_OK;
}

static enum ulp_status faulty_put_write(void *self, void *to, const void *data, size_t bytes) {
    const struct faulty *faulty = self;
    struct faulty_writer *writer = to;
    enum ulp_fault fault = decide(faulty, ULP_STORE_PUT_WRITE, writer->key);

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, writer->key);
    return answer(
        faulty, writer->key, fault,
        ulp_store_put_write(writer->inner, data, fault == ULP_FAULT_TRUNCATE ? bytes / 2 : bytes));
}

static enum ulp_status end_now(struct faulty *faulty, void *user) {
    struct faulty_writer *writer = user;
    struct ulp_store_writer *inner = writer->inner;

    (void)faulty;
    writer->inner = NULL;
    return ulp_store_put_end(inner, 1);
}

/* Whatever is decided, the writer within has to end. */
static enum ulp_status faulty_put_end(void *self, void *to, int keep) {
    struct faulty *faulty = self;
    struct faulty_writer *writer = to;
    enum ulp_fault fault = decide(faulty, ULP_STORE_PUT_END, writer->key);
    struct error_note note;
    enum ulp_status status;

    if (fault == ULP_FAULT_BEFORE)
        status = injected(faulty, writer->key);
    else if (!keep || fault == ULP_FAULT_LOSE)
        status = ULP_OK;
    else
        status = change(faulty, writer->key, OBJECT_IS_THERE, end_now, writer);
    error_save(&note);
    if (writer->inner)
        ulp_store_put_end(writer->inner, 0);
    error_restore(&note);
    status = answer(faulty, writer->key, fault, status);
    writer_free(writer);
    return status;
}

static enum ulp_status remove_now(struct faulty *faulty, void *user) {
    return ulp_store_remove(faulty->inner, user);
}

static enum ulp_status faulty_remove(void *self, const char *key) {
    struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_REMOVE, key);

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, key);
    if (fault == ULP_FAULT_LOSE)
        return ULP_OK;
    return answer(faulty, key, fault, change(faulty, key, OBJECT_IS_GONE, remove_now, (char *)key));
}

/* ---- opening ---- */

static void faulty_free(void *self) {
    struct faulty *faulty = self;

    ulp_store_free(faulty->inner);
    ulp_store_free(faulty->before);
    lock_destroy(&faulty->lock);
    mem_free(faulty);
}

enum ulp_status ulp_store_fault(struct ulp_store *inner, ulp_store_decide decide, void *user,
                                struct ulp_store **ret_store) {
    static const struct ulp_store_ops ops = {
        .read = faulty_read,
        .create = faulty_create,
        .put_begin = faulty_put_begin,
        .put_write = faulty_put_write,
        .put_end = faulty_put_end,
        .stat = faulty_stat,
        .list = faulty_list,
        .remove = faulty_remove,
        .free = faulty_free,
    };
    struct ulp_store *before = NULL;
    struct faulty *faulty = NULL;
    enum ulp_status status =
        inner && decide && ret_store ? ULP_OK : store_argument_missing(__func__);

    if (!status)
        status = ulp_store_memory(&before);
    if (!status)
        status = mem_zeroed(1, sizeof *faulty, &faulty);
    if (status) {
        ulp_store_free(before);
        ulp_store_free(inner);
        return status;
    }
    *faulty = (struct faulty){.inner = inner, .decide = decide, .user = user, .before = before};
    lock_make(&faulty->lock);
    return ulp_store_new(&ops, faulty, ulp_store_name(inner), ret_store);
}
