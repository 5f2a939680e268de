// SPDX-License-Identifier: Apache-2.0
/*
 * Stores: named bytes, wherever they are kept. A run's log and parts live in one.
 *
 *     struct ulp_store *store = NULL;
 *     ulp_store_open("s3://bucket/weights", &store);      or a directory: "/mnt/shared/weights"
 *     ulp_store_create(store, "run/log/1", data, bytes);  ULP_E_EXISTS if somebody was first
 *     ulp_store_free(store);
 *
 * A key is one or more parts joined by '/': letters, digits, '.', '-' and '_', not beginning with
 * '.'; a part has at most 200 bytes, a key at most 900. In a directory there cannot be both an
 * object `a` and one `a/b`: whoever comes second fails with ULP_E_FILE_KIND. What a store holds is
 * untrusted: whoever reads verifies.
 */
#ifndef ULPSYNC_STORE_H
#define ULPSYNC_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ULP_KEY_BYTES_MAX 900
#define ULP_KEY_PART_BYTES_MAX 200

/* Hears of one object; a non-zero answer ends the listing, which then fails with ULP_E_CANCELLED.
 * */
typedef int (*ulp_store_entry)(void *user, const char *key, uint64_t bytes);

/* Takes bytes of an object, which stand at `offset`; one that fails ends the stream. Called in order
 * and never twice at a time, but not always by the thread that asked for the stream. */
typedef enum ulp_status (*ulp_store_piece)(void *user, uint64_t offset, const void *data,
                                           size_t bytes);

/*
 * What a store must be able to do. All functions may be called from several threads at once. Keys
 * have been checked. A failure leaves a message with ulp_fail(). Objects that are being written are
 * invisible until they are complete, to last: when a function returns ULP_OK, what it wrote
 * survives a crash of the machine that keeps it.
 */
struct ulp_store_ops {
    /* Reads up to `bytes` bytes from `offset` on and says how many there were and how long the
     * object is. An offset at or behind its end gives none. ULP_E_NOT_FOUND. */
    enum ulp_status (*read)(void *self, const char *key, uint64_t offset, void *data, size_t bytes,
                            size_t *ret_read, uint64_t *ret_total);

    /* Puts a small object where none is: exactly one of several callers succeeds, the others fail
     * with ULP_E_EXISTS and change nothing. Log records are written with this. */
    enum ulp_status (*create)(void *self, const char *key, const void *data, size_t bytes);

    /* A large object, written in order. `put_end` with `keep` puts it into place, over what may be
     * there (parts are named by their contents, so that is the same); without, nothing of it is
     * left. It ends the writer either way. */
    enum ulp_status (*put_begin)(void *self, const char *key, void **ret_writer);
    enum ulp_status (*put_write)(void *self, void *writer, const void *data, size_t bytes);
    enum ulp_status (*put_end)(void *self, void *writer, int keep);

    /* How long an object is. ULP_E_NOT_FOUND. */
    enum ulp_status (*stat)(void *self, const char *key, uint64_t *ret_bytes);

    /* All keys that begin with `prefix` and are greater than `after` ("": all), ascending in byte
     * order. A hint: it may lack what was just written, and never decides anything. */
    enum ulp_status (*list)(void *self, const char *prefix, const char *after,
                            ulp_store_entry entry, void *user);

    /* One that is not there is no failure. */
    enum ulp_status (*remove)(void *self, const char *key);
    void (*free)(void *self);

    /* As `read`, for many bytes: handed over in order, one piece after the other, by whichever
     * thread. NULL: `read` is used, for 8 MiB at a time. */
    enum ulp_status (*stream)(void *self, const char *key, uint64_t offset, uint64_t bytes,
                              ulp_store_piece piece, void *user, uint64_t *ret_total);
};

/* A handle may be used by several threads at once. */
struct ulp_store;

/* Takes over `self`, also when it fails. `name` is for messages. */
ULP_API enum ulp_status ulp_store_new(const struct ulp_store_ops *ops, void *self, const char *name,
                                      struct ulp_store **ret_store);

/*
 * Where a store is:
 *     /mnt/weights, file:///mnt/weights   a directory, which is made if its parent is there
 *     s3://bucket/prefix                  S3, or a store that speaks like it
 *     https://host/path, http://...       any web server, for reading only
 * Nothing is asked of a server yet. Other schemes fail with ULP_E_UNSUPPORTED, and so do the last
 * two where the library was built without libcurl. docs/stores.md tells how credentials are found.
 */
ULP_API enum ulp_status ulp_store_open(const char *url, struct ulp_store **ret_store);

/* For stores over a network; zero and NULL stand for what is usual. Of S3 alone are the first four,
 * which may also stand in the URL: s3://bucket/prefix?endpoint=https://host&region=eu-west-1 and
 * style=path, style=virtual, anonymous=1. */
struct ulp_store_options {
    const char *endpoint; /* instead of AWS: http(s)://host; else AWS_ENDPOINT_URL_S3, or
                             AWS_ENDPOINT_URL */
    const char *region;   /* else AWS_REGION, AWS_DEFAULT_REGION, the profile's, us-east-1 */
    int style;            /* ULP_STYLE_... */
    int anonymous;        /* requests are not signed; also ULPSYNC_S3_ANONYMOUS=1 */
    const char *ca_file;  /* certificates that are trusted; else AWS_CA_BUNDLE, the system's */
    uint32_t
        timeout_ms;    /* a server may be silent for so long; else ULPSYNC_STALL_SECONDS, 60 s, and
                             30 s amid an object */
    uint32_t attempts; /* of each request: 8 */
    uint32_t give_up_ms; /* no more attempts after so long; else ULPSYNC_OPERATION_SECONDS, 120 s */
};

/* Where S3's bucket stands: in the path (usual for an endpoint), or in the name of the host (usual
 * for AWS). */
enum { ULP_STYLE_USUAL, ULP_STYLE_PATH, ULP_STYLE_VIRTUAL };

/* `options` NULL: all of them usual. */
ULP_API enum ulp_status ulp_store_open_with(const char *url,
                                            const struct ulp_store_options *options,
                                            struct ulp_store **ret_store);

/* In memory, gone with the handle. */
ULP_API enum ulp_status ulp_store_memory(struct ulp_store **ret_store);
ULP_API void ulp_store_free(struct ulp_store *store);
ULP_API const char *ulp_store_name(const struct ulp_store *store);

/* The operations, with the arguments checked first (ULP_E_USAGE where one is NULL; no data may be),
 * and the key (ULP_E_NAME). */
ULP_API enum ulp_status ulp_store_read(struct ulp_store *store, const char *key, uint64_t offset,
                                       void *data, size_t bytes, size_t *ret_read,
                                       uint64_t *ret_total);

/* Up to `bytes` bytes from `offset` on, in order, however many there are. `piece` may be called by
 * other threads than this one, one call at a time, and all of them are over when this returns. Over
 * a network this is one request, and memory for one piece of 1 MiB; from 2 MiB on S3 is asked for
 * pieces of 256 KiB to 4 MiB over up to eight connections, which takes up to 32 MiB. Either goes on
 * where a connection broke. */
ULP_API enum ulp_status ulp_store_stream(struct ulp_store *store, const char *key, uint64_t offset,
                                         uint64_t bytes, ulp_store_piece piece, void *user,
                                         uint64_t *ret_total);
ULP_API enum ulp_status ulp_store_create(struct ulp_store *store, const char *key, const void *data,
                                         size_t bytes);
ULP_API enum ulp_status ulp_store_put(struct ulp_store *store, const char *key, const void *data,
                                      size_t bytes);
ULP_API enum ulp_status ulp_store_stat(struct ulp_store *store, const char *key,
                                       uint64_t *ret_bytes);
ULP_API enum ulp_status ulp_store_list(struct ulp_store *store, const char *prefix,
                                       const char *after, ulp_store_entry entry, void *user);
ULP_API enum ulp_status ulp_store_remove(struct ulp_store *store, const char *key);

/* Writing a large object in order; ulp_store_put_end() ends the writer in any case. After a piece
 * that could not be written all others fail in the same way, and the object is not kept. */
struct ulp_store_writer;
ULP_API enum ulp_status ulp_store_put_begin(struct ulp_store *store, const char *key,
                                            struct ulp_store_writer **ret_writer);
ULP_API enum ulp_status ulp_store_put_write(struct ulp_store_writer *writer, const void *data,
                                            size_t bytes);
ULP_API enum ulp_status ulp_store_put_end(struct ulp_store_writer *writer, int keep);

/* Who may use a store for what. */
enum ulp_store_verdict {
    ULP_STORE_READ_ONLY,     /* nothing can be written: for followers */
    ULP_STORE_UNFIT,         /* what is written cannot be relied on: for nobody */
    ULP_STORE_ONE_PUBLISHER, /* creating does not keep others out: one publisher, who is careful */
    ULP_STORE_SEVERAL_PUBLISHERS /* as it should be */
};

/* What a store was seen to do: 1, or 0. */
struct ulp_store_report {
    int writes;         /* objects can be created and put */
    int reads_own;      /* what was written is there at once, with its length and its bytes */
    int ranges;         /* reading from the middle, up to the end and behind it */
    int refuses_second; /* creating over an object fails and changes nothing */
    int one_of_many;    /* of many who create the same object at once just one succeeds */
    int lists;          /* what was written, and in order */
    int removes;
    enum ulp_store_verdict verdict;
    char why[256]; /* what was wrong first, as a sentence; "" if nothing was */
};

/*
 * Tries whether a store keeps its promises, by writing some small objects below
 * `ulpsync-check/`, which are removed again. A store that passes may still break its promises
 * another day; one that does not pass has no place in a run with several publishers. Fails only if
 * the store cannot be tried at all.
 */
ULP_API enum ulp_status ulp_store_check(struct ulp_store *store,
                                        struct ulp_store_report *ret_report);

/* "several publishers", "one publisher", "read only", "unfit"; never NULL. */
ULP_API const char *ulp_store_verdict_name(enum ulp_store_verdict verdict);

/*
 * A store that keeps what is read from `inner` in a directory of this machine, which is made if its
 * parent is there: for followers, several of which may share the directory and so fetch bytes once.
 * Takes over `inner`, also when it fails.
 *
 * Only objects whose key ends in the 64 hexadecimal digits of their SHA-256 are kept, as the parts of
 * a run are; they never change. All else (records of a log, what is written, listed or looked at)
 * goes straight to `inner`, and so does reading from the middle of an object that is not there yet.
 * A read from the beginning fetches the whole object; others who want it meanwhile wait for it, as
 * long as it grows. Whatever is in the directory is verified when it was fetched and whenever it is
 * read from the beginning, and fetched anew if it is damaged. It stays within `bytes_max` (and what
 * several fetch at the same moment): what was not read for longest goes. A directory that is full or
 * cannot be written costs time only.
 *
 * What is kept may be read after it has gone from `inner`. So whoever wants to know what `inner`
 * holds, to check or to publish, reads it without a cache.
 */
ULP_API enum ulp_status ulp_store_cache(struct ulp_store *inner, const char *directory,
                                        uint64_t bytes_max, struct ulp_store **ret_store);

/* What is done to a store. */
enum ulp_store_op {
    ULP_STORE_READ,
    ULP_STORE_CREATE,
    ULP_STORE_PUT_BEGIN,
    ULP_STORE_PUT_WRITE,
    ULP_STORE_PUT_END,
    ULP_STORE_STAT,
    ULP_STORE_LIST,
    ULP_STORE_REMOVE
};

/* One operation that has ended; a stream is one read. `key` is the prefix of a listing; `bytes` is what was read or
 * written, for the end of a writer all that it put into place, and 0 for what failed. */
struct ulp_store_event {
    enum ulp_store_op op;
    const char *key;
    uint64_t bytes, duration_ns;
    enum ulp_status status;
};

/* Called from whichever thread uses the store, also from several at once. */
typedef void (*ulp_store_heard)(void *user, const struct ulp_store_event *event);

/* A store that does what `inner` does and tells of it. Takes over `inner`, also when it fails. */
ULP_API enum ulp_status ulp_store_trace(struct ulp_store *inner, ulp_store_heard heard, void *user,
                                        struct ulp_store **ret_store);

/*
 * How an operation goes wrong, or lies. Where one makes no sense, the operation just works.
 *
 * The past that ULP_FAULT_OLD shows is what each object was before it was last created, put or
 * removed through this handle: one that was created is not there, one that was replaced has its old
 * bytes, one that was removed is still there. What was never changed through this handle counts as
 * just created by somebody else.
 */
enum ulp_fault {
    ULP_FAULT_NONE,
    ULP_FAULT_BEFORE,   /* any: fails with ULP_E_IO, and nothing was done */
    ULP_FAULT_AFTER,    /* any: is done, and then fails in the same way: a lost response */
    ULP_FAULT_TRUNCATE, /* read, stat, create, put_write: succeeds, with the first half of the bytes;
                           list: with the first entry */
    ULP_FAULT_OLD,      /* read, stat, list: shows the past */
    ULP_FAULT_LOSE,     /* create, put_end, remove: succeeds as it should, and nothing was done */
    ULP_FAULT_FORCE,    /* create: replaces what may be there, and succeeds */
    ULP_FAULT_INVERT, /* create: changes nothing; ULP_E_EXISTS if nothing is there, or else success */
    ULP_FAULT_FLIP /* read: one bit of the bytes, the lowest of the one in the middle, is wrong */
};

/* Asked before each operation, from whichever thread uses the store, also from several at once. */
typedef enum ulp_fault (*ulp_store_decide)(void *user, enum ulp_store_op op, const char *key);

/* For tests: a store that does what `inner` does, except where it is told to fail or to lie. A
 * stream is several reads of up to 8 MiB, about each of which it asks. It keeps
 * what was replaced or removed in memory. Takes over `inner`, also when it fails itself. */
ULP_API enum ulp_status ulp_store_fault(struct ulp_store *inner, ulp_store_decide decide,
                                        void *user, struct ulp_store **ret_store);

#ifdef __cplusplus
}
#endif

#endif
