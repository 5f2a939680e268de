// SPDX-License-Identifier: Apache-2.0
/*
 * A long object over several connections. One alone starts slowly after every pause, and a far
 * server answers each round with no more than it did the round before twice over; eight together
 * fill the line eight times as soon. Ranges are fetched beside each other and handed over in order.
 */
#include "base/checked.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/thread.h"
#include "store/remote.h"

#include <string.h>

#define LANES 8u
#define PIECE_BYTES_MIN (UINT64_C(256) << 10)
#define PIECE_BYTES_MAX (UINT64_C(4) << 20)

struct wide {
    struct remote *remote;
    const char *key;
    uint64_t offset, bytes; /* wanted */
    uint64_t piece_bytes;
    ulp_store_piece piece;
    void *user;

    struct lock lock;
    uint64_t taken, shown; /* pieces */
    uint64_t total;
    char etag[HTTP_TEXT_BYTES]; /* of the first piece that had one */
    bool total_known, stop;
    enum ulp_status status; /* of the first that failed */
    struct error_note note;
};

struct lane {
    struct wide *wide;
    struct thread thread;
    uint8_t *data;
    char etag[HTTP_TEXT_BYTES]; /* of these */
};

/* The number of a piece that nobody has taken; false when there is none left. */
static bool take(struct wide *wide, uint64_t *ret_index) {
    bool left;

    lock_take(&wide->lock);
    left = !wide->stop && wide->taken * wide->piece_bytes < wide->bytes;
    if (left)
        *ret_index = wide->taken++;
    lock_give(&wide->lock);
    return left;
}

static void end_with(struct wide *wide, enum ulp_status status) {
    lock_take(&wide->lock);
    if (status && !wide->status) {
        wide->status = status;
        error_save(&wide->note);
    }
    wide->stop = true;
    lock_wake(&wide->lock);
    lock_give(&wide->lock);
}

/* Waits until all pieces in front were handed over; false if that will not happen. */
static bool wait_for_turn(struct wide *wide, uint64_t index) {
    bool mine;

    lock_take(&wide->lock);
    while (!wide->stop && wide->shown != index)
        lock_wait(&wide->lock);
    mine = !wide->stop;
    lock_give(&wide->lock);
    return mine;
}

static void pass_turn(struct wide *wide) {
    lock_take(&wide->lock);
    wide->shown++;
    lock_wake(&wide->lock);
    lock_give(&wide->lock);
}

/* It is this lane's turn, so nobody else is here. Pieces of two objects are never put together. */
static enum ulp_status show(struct lane *lane, uint64_t at, size_t bytes, uint64_t total) {
    struct wide *wide = lane->wide;
    const bool other = wide->total_known && wide->total != total;
    const bool replaced = *wide->etag && *lane->etag && strcmp(wide->etag, lane->etag) != 0;

    if (other || replaced)
        return fail(ULP_E_FILE_CHANGED, "store %s: %s was replaced while it was read",
                    quote(wide->remote->name).text, quote(wide->key).text);
    wide->total = total;
    wide->total_known = true;
    if (*lane->etag)
        memcpy(wide->etag, lane->etag, sizeof wide->etag);
    return bytes ? wide->piece(wide->user, wide->offset + at, lane->data, bytes) : ULP_OK;
}

static bool run_piece(struct lane *lane, uint64_t index) {
    struct wide *wide = lane->wide;
    const uint64_t at = index * wide->piece_bytes;
    const size_t want = (size_t)smaller(wide->piece_bytes, wide->bytes - at);
    size_t got = 0;
    uint64_t total = 0;
    enum ulp_status status = remote_read(wide->remote, wide->key, wide->offset + at, lane->data,
                                         want, &got, &total, lane->etag);

    if (status) {
        end_with(wide, status);
        return false;
    }
    if (!wait_for_turn(wide, index))
        return false;
    status = show(lane, at, got, total);
    if (status || got < want) { /* the object ends here */
        end_with(wide, status);
        return false;
    }
    pass_turn(wide);
    return true;
}

static void run_lane(void *user) {
    struct lane *lane = user;
    uint64_t index;

    while (take(lane->wide, &index) && run_piece(lane, index))
        ;
}

static enum ulp_status run_lanes(struct wide *wide, struct lane *lanes) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < LANES; i++) {
        lanes[i].wide = wide;
        status = mem_resize(&lanes[i].data, (size_t)wide->piece_bytes, 1);
        if (!status && i) /* the first one is ours */
            status = thread_start(&lanes[i].thread, run_lane, &lanes[i]);
    }
    if (status)
        end_with(wide, status);
    else
        run_lane(&lanes[0]);
    for (size_t i = 0; i < LANES; i++) {
        thread_join(&lanes[i].thread);
        mem_free(lanes[i].data);
    }
    if (wide->status)
        error_restore(&wide->note);
    return wide->status;
}

enum ulp_status remote_stream_wide(struct remote *remote, const char *key, uint64_t offset,
                                   uint64_t bytes, ulp_store_piece piece, void *user,
                                   uint64_t *ret_total) {
    const uint64_t share = bytes / LANES + 1;
    struct wide wide = {
        .remote = remote,
        .key = key,
        .offset = offset,
        .bytes = bytes,
        .piece_bytes = smaller(share < PIECE_BYTES_MIN ? PIECE_BYTES_MIN : share, PIECE_BYTES_MAX),
        .piece = piece,
        .user = user};
    struct lane lanes[LANES] = {{0}};
    enum ulp_status status;

    lock_make(&wide.lock);
    status = run_lanes(&wide, lanes);
    lock_destroy(&wide.lock);
    if (!status)
        *ret_total = wide.total;
    return status;
}
