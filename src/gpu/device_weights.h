// SPDX-License-Identifier: Apache-2.0
/*
 * A whole state, or a tile of one, in device memory with the sums of its pieces, as struct ulp_weights
 * is one in the host's; or such a one in the host's, for comparing it with another on the device. The
 * memory belongs to the caller. One thread at a time uses a handle. What it enqueues goes to the stream
 * that it was made with, or begins when that has come to an end (gpu/windows.h), and all of it is done
 * when a call returns.
 */
#ifndef GPU_DEVICE_WEIGHTS_H
#define GPU_DEVICE_WEIGHTS_H

#include "cuda/encode.h"
#include "gpu/device_moves.h"
#include "gpu/device_plan.h"
#include "gpu/part_encoder.h"
#include "gpu/windows.h"
#include "patch/weights.h"

struct device_second;

struct device_weights {
    struct ulp_weights *weights; /* names, grid, sums, root; of `moves` only the state before */
    struct device_plan plan;
    struct device_moves *moves; /* NULL when nothing is remembered */
    struct windows *windows;    /* NULL, or how the device sees weights of the host's memory: then
                                `weights` are the caller's, with `moves`, and never written */
    struct windows *rounds;     /* of a large state: NULL until a patch is made ... */
    size_t round_bytes;         /* ... and how large they are; 0: as usual */
    void *stream;
    uint32_t *poisoned; /* see device_weights_new() */
    struct room own_flag;
    struct device_cast *cast;                     /* NULL until something is cast */
    uint32_t cast_pool;                           /* entries for that; 0: as many as usual */
    struct cuda_encoder *encoder;                 /* NULL until a patch is made */
    struct room spare, spare_bytes, spare_arrays; /* of the last patch: its own, and pinned */
    struct device_second *second;                 /* see device_second.h; NULL without */

    struct part_encoders part_encoders; /* of the last partial patch that was made ... */
    struct room spare_plan,
        spare_packed;   /* ... or applied: its blocks, and copies of columns ... */
    size_t packed_most; /* ... of so many bytes at a time: PART_PACKED_MOST */
};

/*
 * Digests the tensors, whose `data` are device memory, on `stream` (a cudaStream_t; NULL is the
 * default stream). While weights are being written the word at `poisoned` is 1: memory that the
 * device can write and that others who share the weights can read; NULL if there are none, then it
 * is the handle's own. Statuses are those of ulp_weights_new(); ULP_E_POISONED when the word is
 * not 0, ULP_E_DEVICE when the device fails.
 */
enum ulp_status device_weights_new(const struct ulp_tensor *tensors, size_t count,
                                   uint32_t *poisoned, void *stream,
                                   struct device_weights **ret_weights);

/* The same for a tile, with the root of its state: see ulp_weights_new_tile(). */
enum ulp_status device_weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                        const struct ulp_region *regions, size_t region_count,
                                        const struct ulp_root *state, uint32_t *poisoned,
                                        void *stream, struct device_weights **ret_weights);
void device_weights_free(struct device_weights *weights);

/*
 * For comparing: `snapshot`, in the host's memory, as it is whenever a patch is made, which must outlive
 * this. `window_bytes` is as in windows_new(). ULP_E_REGIONS for a tile.
 */
enum ulp_status device_weights_on_host(const struct ulp_weights *snapshot, size_t window_bytes,
                                       void *stream, struct device_weights **ret_weights);

/* ULP_E_USAGE for weights of the host's memory: `instead` says what to call. */
enum ulp_status device_weights_check_here(const struct device_weights *weights,
                                          const char *instead);

/* Digests everything anew: ULP_E_WRONG_BASE, naming a tensor, when a bit is not what it was. Of two
 * states both, and the one beside the present is copied anew by the next patch if it is not. */
enum ulp_status device_weights_audit(struct device_weights *weights);

/* The sums of all pieces as they are now. */
enum ulp_status device_weights_digest(struct device_weights *weights, struct ulp_sum *ret_sums);

/* ULP_E_POISONED when an apply died half-way. */
enum ulp_status device_weights_check(struct device_weights *weights);

/* Lets go of the memory that is kept for the next patch. */
void device_weights_trim(struct device_weights *weights);

/* What it remembers is let go of. */
void device_weights_forget(struct device_weights *weights);

#endif
