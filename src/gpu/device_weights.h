// SPDX-License-Identifier: Apache-2.0
/*
 * A whole state in device memory with the sums of its pieces, as struct ulp_weights is one in the
 * host's. The memory belongs to the caller. One thread at a time uses a handle, and everything that
 * it enqueues goes to the one stream that it was made with.
 */
#ifndef GPU_DEVICE_WEIGHTS_H
#define GPU_DEVICE_WEIGHTS_H

#include "cuda/encode.h"
#include "gpu/device_moves.h"
#include "gpu/device_plan.h"
#include "patch/weights.h"

struct device_weights {
    struct ulp_weights *weights; /* names, grid, sums, root; of `moves` only the state before */
    struct device_plan plan;
    struct device_moves *moves; /* NULL when nothing is remembered */
    void *stream;
    uint32_t *poisoned; /* see device_weights_new() */
    struct room own_flag;
    struct device_cast *cast;                     /* NULL until something is cast */
    uint32_t cast_pool;                           /* entries for that; 0: as many as usual */
    struct cuda_encoder *encoder;                 /* NULL until a patch is made */
    struct room spare, spare_bytes, spare_arrays; /* of the last patch: its own, and pinned */
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
void device_weights_free(struct device_weights *weights);

/* Digests everything anew: ULP_E_WRONG_BASE, naming a tensor, when a bit is not what it was. */
enum ulp_status device_weights_audit(struct device_weights *weights);

/* ULP_E_POISONED when an apply died half-way. */
enum ulp_status device_weights_check(struct device_weights *weights);

/* Lets go of the memory that is kept for the next patch. */
void device_weights_trim(struct device_weights *weights);

/* What it remembers is let go of. */
void device_weights_forget(struct device_weights *weights);

#endif
