// SPDX-License-Identifier: Apache-2.0
#include "tests/sync/odd_store.h"

/* Whatever it does may come here again. */
static void run_once(struct odd_store *odd, _Atomic(odd_hook) *hook) {
    odd_hook run = atomic_exchange(hook, NULL);

    if (run)
        run(odd->user);
}

static enum ulp_status read_object(void *self, const char *key, uint64_t offset, void *data,
                                   size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    struct odd_store *odd = self;

    if (!strstr(key, "/part/"))
        odd->record_reads++;
    else if (odd->part_reads++ == odd->part_at)
        run_once(odd, &odd->before_part_read);
    return ulp_store_read(odd->inner, key, offset, data, bytes, ret_read, ret_total);
}

static enum ulp_status create(void *self, const char *key, const void *data, size_t bytes) {
    struct odd_store *odd = self;
    enum ulp_status status;

    odd->creates++;
    run_once(odd, &odd->before_create);
    if (odd->create == CREATE_FAILS)
        return ulp_fail(ULP_E_IO, "the store does not answer");
    status = ulp_store_create(odd->inner, key, data, bytes);
    if (!status && odd->create == CREATE_LOSES_THE_ANSWER)
        return ulp_fail(ULP_E_IO, "the answer was lost");
    if (!status && odd->create == CREATE_TRIES_AGAIN)
        return ulp_store_create(odd->inner, key, data, bytes);
    return status;
}

static enum ulp_status put_begin(void *self, const char *key, void **ret_writer) {
    struct odd_store *odd = self;
    struct ulp_store_writer *writer = NULL;
    enum ulp_status status;

    odd->puts++;
    run_once(odd, &odd->before_put);
    status = ulp_store_put_begin(odd->inner, key, &writer);
    if (!status)
        *ret_writer = writer;
    return status;
}

static enum ulp_status put_write(void *self, void *writer, const void *data, size_t bytes) {
    (void)self;
    return ulp_store_put_write(writer, data, bytes);
}

static enum ulp_status put_end(void *self, void *writer, int keep) {
    (void)self;
    return ulp_store_put_end(writer, keep);
}

static enum ulp_status stat_object(void *self, const char *key, uint64_t *ret_bytes) {
    return ulp_store_stat(((struct odd_store *)self)->inner, key, ret_bytes);
}

static enum ulp_status list(void *self, const char *prefix, const char *after,
                            ulp_store_entry entry, void *user) {
    return ulp_store_list(((struct odd_store *)self)->inner, prefix, after, entry, user);
}

static enum ulp_status remove_object(void *self, const char *key) {
    return ulp_store_remove(((struct odd_store *)self)->inner, key);
}

static void free_nothing(void *self) {
    (void)self;
}

struct ulp_store *odd_store_open(struct odd_store *odd) {
    static const struct ulp_store_ops ops = {.read = read_object,
                                             .create = create,
                                             .put_begin = put_begin,
                                             .put_write = put_write,
                                             .put_end = put_end,
                                             .stat = stat_object,
                                             .list = list,
                                             .remove = remove_object,
                                             .free = free_nothing};
    struct ulp_store *store = NULL;

    assert_ok(ulp_store_new(&ops, odd, "odd", &store));
    return store;
}
