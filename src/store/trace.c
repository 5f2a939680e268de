// SPDX-License-Identifier: Apache-2.0
/* A store around another one that tells of each operation. */
#include "base/clock.h"
#include "base/memory.h"
#include "store/store.h"

struct trace {
    struct ulp_store *inner;
    ulp_store_heard heard;
    void *user;
};

struct trace_writer {
    struct ulp_store_writer *inner;
    char *key;
    uint64_t bytes;
};

/* The listener may use the library, but the message of a failure is the store's. */
static enum ulp_status tell(const struct trace *trace, enum ulp_store_op op, const char *key,
                            uint64_t bytes, uint64_t since, enum ulp_status status) {
    struct ulp_store_event event = {op, key, status ? 0 : bytes, clock_monotonic_ns() - since,
                                    status};
    struct error_note note;

    error_save(&note);
    trace->heard(trace->user, &event);
    error_restore(&note);
    return status;
}

static enum ulp_status trace_read(void *self, const char *key, uint64_t offset, void *data,
                                  size_t bytes, size_t *ret_read, uint64_t *ret_total) {
    struct trace *trace = self;
    uint64_t since = clock_monotonic_ns();
    enum ulp_status status =
        ulp_store_read(trace->inner, key, offset, data, bytes, ret_read, ret_total);

    return tell(trace, ULP_STORE_READ, key, status ? 0 : *ret_read, since, status);
}

/* How much of a stream has passed. */
struct passing {
    ulp_store_piece piece;
    void *user;
    uint64_t bytes;
};

static enum ulp_status pass(void *user, uint64_t offset, const void *data, size_t bytes) {
    struct passing *passing = user;

    passing->bytes += bytes;
    return passing->piece(passing->user, offset, data, bytes);
}

static enum ulp_status trace_stream(void *self, const char *key, uint64_t offset, uint64_t bytes,
                                    ulp_store_piece piece, void *user, uint64_t *ret_total) {
    struct trace *trace = self;
    struct passing passing = {piece, user, 0};
    uint64_t since = clock_monotonic_ns();
    enum ulp_status status =
        ulp_store_stream(trace->inner, key, offset, bytes, pass, &passing, ret_total);

    return tell(trace, ULP_STORE_READ, key, passing.bytes, since, status);
}

static enum ulp_status trace_create(void *self, const char *key, const void *data, size_t bytes) {
    struct trace *trace = self;
    uint64_t since = clock_monotonic_ns();

    return tell(trace, ULP_STORE_CREATE, key, bytes, since,
                ulp_store_create(trace->inner, key, data, bytes));
}

static enum ulp_status begin(struct trace *trace, const char *key, void **ret_writer) {
    struct trace_writer *writer = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *writer, &writer);

    if (!status)
        status = mem_copy_text(key, &writer->key);
    if (!status)
        status = ulp_store_put_begin(trace->inner, key, &writer->inner);
    if (status) {
        if (writer)
            mem_free(writer->key);
        mem_free(writer);
        return status;
    }
    *ret_writer = writer;
    return ULP_OK;
}

static enum ulp_status trace_put_begin(void *self, const char *key, void **ret_writer) {
    uint64_t since = clock_monotonic_ns();

    return tell(self, ULP_STORE_PUT_BEGIN, key, 0, since, begin(self, key, ret_writer));
}

static enum ulp_status trace_put_write(void *self, void *to, const void *data, size_t bytes) {
    struct trace_writer *writer = to;
    uint64_t since = clock_monotonic_ns();

    writer->bytes += bytes;
    return tell(self, ULP_STORE_PUT_WRITE, writer->key, bytes, since,
                ulp_store_put_write(writer->inner, data, bytes));
}

static enum ulp_status trace_put_end(void *self, void *to, int keep) {
    struct trace_writer *writer = to;
    uint64_t since = clock_monotonic_ns();
    enum ulp_status status = ulp_store_put_end(writer->inner, keep);

    tell(self, ULP_STORE_PUT_END, writer->key, keep ? writer->bytes : 0, since, status);
    mem_free(writer->key);
    mem_free(writer);
    return status;
}

static enum ulp_status trace_stat(void *self, const char *key, uint64_t *ret_bytes) {
    struct trace *trace = self;
    uint64_t since = clock_monotonic_ns();

    return tell(trace, ULP_STORE_STAT, key, 0, since, ulp_store_stat(trace->inner, key, ret_bytes));
}

static enum ulp_status trace_list(void *self, const char *prefix, const char *after,
                                  ulp_store_entry entry, void *user) {
    struct trace *trace = self;
    uint64_t since = clock_monotonic_ns();

    return tell(trace, ULP_STORE_LIST, prefix, 0, since,
                ulp_store_list(trace->inner, prefix, after, entry, user));
}

static enum ulp_status trace_remove(void *self, const char *key) {
    struct trace *trace = self;
    uint64_t since = clock_monotonic_ns();

    return tell(trace, ULP_STORE_REMOVE, key, 0, since, ulp_store_remove(trace->inner, key));
}

static void trace_free(void *self) {
    struct trace *trace = self;

    ulp_store_free(trace->inner);
    mem_free(trace);
}

enum ulp_status ulp_store_trace(struct ulp_store *inner, ulp_store_heard heard, void *user,
                                struct ulp_store **ret_store) {
    static const struct ulp_store_ops ops = {
        .read = trace_read,
        .create = trace_create,
        .put_begin = trace_put_begin,
        .put_write = trace_put_write,
        .put_end = trace_put_end,
        .stat = trace_stat,
        .list = trace_list,
        .remove = trace_remove,
        .free = trace_free,
        .stream = trace_stream,
    };
    struct trace *trace = NULL;
    enum ulp_status status = inner && heard && ret_store ? mem_zeroed(1, sizeof *trace, &trace)
                                                         : store_argument_missing(__func__);

    if (status) {
        ulp_store_free(inner);
        return status;
    }
    *trace = (struct trace){inner, heard, user};
    return ulp_store_new(&ops, trace, ulp_store_name(inner), ret_store);
}
