// SPDX-License-Identifier: Apache-2.0
/* A store around another one that fails as it is told to: for tests of whatever uses stores. */
#include "base/memory.h"
#include "base/quote.h"
#include "store/store.h"

#include <stdbool.h>

struct faulty {
    struct ulp_store *inner;
    ulp_store_decide decide;
    void *user;
};

struct faulty_writer {
    struct ulp_store_writer *inner;
    char *key;
};

static enum ulp_status injected(const struct faulty *faulty, const char *key) {
    return fail(ULP_E_IO, "store %s: an injected fault at %s",
                quote(ulp_store_name(faulty->inner)).text, quote(key).text);
}

/* What is not there yet, as somebody sees it who is behind. */
static enum ulp_status unseen(const struct faulty *faulty, const char *key) {
    return fail(ULP_E_NOT_FOUND, "store %s: there is no %s yet",
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

static enum ulp_status faulty_read(void *self, const char *key, uint64_t offset, void *data,
                                   size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_READ, key);
    uint64_t total = 0;
    size_t got = 0;
    enum ulp_status status;

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, key);
    if (fault == ULP_FAULT_STALE)
        return unseen(faulty, key);
    status = answer(faulty, key, fault,
                    ulp_store_read(faulty->inner, key, offset, data, bytes, &got, &total));
    if (status)
        return status;
    if (fault == ULP_FAULT_TRUNCATE) {
        total /= 2;
        got = offset >= total ? 0 : got < total - offset ? got : (size_t)(total - offset);
    }
    *ret_read = got;
    *ret_total = total;
    return ULP_OK;
}

static enum ulp_status faulty_create(void *self, const char *key, const void *data, size_t bytes) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_CREATE, key);

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, key);
    return answer(faulty, key, fault,
                  ulp_store_create(faulty->inner, key, data,
                                   fault == ULP_FAULT_TRUNCATE ? bytes / 2 : bytes));
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

/* Whatever is decided, the writer within has to end. */
static enum ulp_status faulty_put_end(void *self, void *to, int keep) {
    const struct faulty *faulty = self;
    struct faulty_writer *writer = to;
    enum ulp_fault fault = decide(faulty, ULP_STORE_PUT_END, writer->key);
    enum ulp_status status = ulp_store_put_end(writer->inner, keep && fault != ULP_FAULT_BEFORE);

    status =
        answer(faulty, writer->key, fault == ULP_FAULT_BEFORE ? ULP_FAULT_AFTER : fault, status);
    writer_free(writer);
    return status;
}

static enum ulp_status faulty_stat(void *self, const char *key, uint64_t *ret_bytes) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_STAT, key);
    uint64_t bytes = 0;
    enum ulp_status status;

    if (fault == ULP_FAULT_BEFORE)
        return injected(faulty, key);
    if (fault == ULP_FAULT_STALE)
        return unseen(faulty, key);
    status = answer(faulty, key, fault, ulp_store_stat(faulty->inner, key, &bytes));
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
    if (fault == ULP_FAULT_STALE)
        return ULP_OK;
    if (fault == ULP_FAULT_TRUNCATE)
        return ulp_store_list(faulty->inner, prefix, after, only_the_first, &first);
    return answer(faulty, prefix, fault, ulp_store_list(faulty->inner, prefix, after, entry, user));
}

static enum ulp_status faulty_remove(void *self, const char *key) {
    const struct faulty *faulty = self;
    enum ulp_fault fault = decide(faulty, ULP_STORE_REMOVE, key);

    return fault == ULP_FAULT_BEFORE
               ? injected(faulty, key)
               : answer(faulty, key, fault, ulp_store_remove(faulty->inner, key));
}

static void faulty_free(void *self) {
    struct faulty *faulty = self;

    ulp_store_free(faulty->inner);
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
    struct faulty *faulty = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *faulty, &faulty);

    if (status) {
        ulp_store_free(inner);
        return status;
    }
    *faulty = (struct faulty){inner, decide, user};
    return ulp_store_new(&ops, faulty, ulp_store_name(inner), ret_store);
}
