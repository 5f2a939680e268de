// SPDX-License-Identifier: Apache-2.0
/*
 * A state that is compared by windows: some chunks at a time, so that the host takes what came out of one
 * while the device works on the next, and so that memory does not depend on how large the state is.
 *
 * Old weights in the host's memory are copied to the window. So a state that has no room on the device
 * can be compared with one that is there. Those of a large state on the device stay where they are.
 *
 * A window has a stream and an encoder of its own; what is copied and coded for one is ordered, and
 * windows do not know of each other. Memory of the host that is pinned is copied from directly. What is
 * not, or is in too many pieces, goes through pinned memory that the threads of a pool fill.
 */
#ifndef GPU_WINDOWS_H
#define GPU_WINDOWS_H

#include "cuda/encode.h"
#include "gpu/device_moves.h"
#include "gpu/device_plan.h"
#include "patch/weights.h"

/* One is copied, one compared, and of one the host takes what came out. */
#define WINDOWS 3u

/* Two chunks of BF16: enough to fill a GPU, and three of them fit beside any state. */
#define WINDOW_BYTES ((size_t)64 << 20)

/* Where nothing is copied there may be more, and the fewer of them the less is lost between two. */
#define WINDOW_BYTES_THERE ((size_t)2 << 30)

struct window {
    size_t first, chunks; /* of the plan: what it shows */
    struct cuda_segment *segments;
    struct cuda_block *blocks; /* of those chunks, counted from its first; old elements in `old` */
    size_t segment_room, block_room;
    struct stretch *stretches; /* where the old elements are in the host's memory */
    size_t stretch_count, stretch_room;
    struct room old, staged;             /* the device's, and pinned */
    struct room history, staged_history; /* where moves are, and the moves, in both */
    void *stream;
    struct cuda_encoder *encoder;
};

struct windows {
    const struct ulp_weights *snapshot;
    const struct device_plan *plan;
    bool there;       /* on the device; else the plan's old elements are the host's */
    bool *pinned;     /* the snapshot's tensors, if they are the host's */
    size_t bytes;     /* of each window; no chunk has more */
    struct room sums; /* of all pieces, on the device */
    void *aside;      /* a stream that goes in front of the windows' */
    struct window window[WINDOWS];
};

/* Both must outlive it. `there`: the plan's old elements are on the device. `bytes` is how large windows
 * are, 0 means as above; a chunk is never cut. */
enum ulp_status windows_new(const struct ulp_weights *snapshot, const struct device_plan *plan,
                            bool there, size_t bytes, struct windows **ret_windows);
void windows_free(struct windows *windows); /* NULL is fine */

/* Lets go of all memory of the device, and of pinned memory. */
void windows_trim(struct windows *windows);

/* The sums of the snapshot to the device, and what they have become to the host. On `stream`; returns
 * when it is done. */
enum ulp_status windows_begin(struct windows *windows, void *stream);
enum ulp_status windows_end(struct windows *windows, void *stream, struct ulp_sum *ret_sums);

/* What goes along with the old elements. */
struct window_extras {
    bool history;                         /* moves: the snapshot's, which it then must have, ... */
    const struct device_moves *moves;     /* ... or, of a state on the device, these */
    const struct device_journal *journal; /* of a state on the device; NULL: none */
    struct ulp_pool *pool;
};

/* Copies and compares the chunks from `first` on, as many as the window takes (window->chunks). Returns
 * before that is done. */
enum ulp_status window_open(struct windows *windows, struct window *window, size_t first,
                            const struct window_extras *extras);

/* Waits. The reports are those of the window's chunks. What it shows, and `*ret_output` in device
 * memory, are there until it is opened again. */
enum ulp_status window_finish(struct window *window, struct cuda_segment_report *ret_reports,
                              const uint8_t **ret_output);

/* Waits for all that are under way, and for what is made of them, whatever becomes of it: nothing reads the
 * snapshot any more, or writes to memory that is kept for others. */
void windows_stop(struct windows *windows);

/* Device memory that they hold. */
size_t windows_bytes(const struct windows *windows);

#endif
