// SPDX-License-Identifier: Apache-2.0
/*
 * A second state beside weights in device memory: one of the two is the present state, the front,
 * which is in use and never written; a patch goes into the other, the back, and then they change
 * roles.
 *
 * Both differ at no more places than those of one list, the positions of the patch that was written
 * last. Before the next one is written, the back is made equal by copying the elements of that list.
 * The plan and the tensors of the weights are always those of the front, here are those of the back.
 */
#ifndef GPU_DEVICE_SECOND_H
#define GPU_DEVICE_SECOND_H

#include "gpu/device_weights.h"

struct device_second {
    struct arena arena;
    struct ulp_tensor *tensors; /* in the weights' order */
    struct device_plan plan;
    struct ulp_sum *sums;    /* what the pieces of the back should sum up to ... */
    struct ulp_root root;    /* ... and its root */
    bool whole;              /* else somebody failed while writing it, or it was found damaged */
    struct cuda_decode list; /* where both may differ: blocks, ranges and positions, in ... */
    struct room room;        /* ... this */
    struct room next;        /* for a longer list */
    uint32_t front;          /* number of the present state: 0 or 1 ... */
    uint32_t *shown;         /* ... and where it is shown to others; may be NULL */
};

/*
 * Takes `tensors`, the weights' by name, dtype and shape, in other device memory, as the back, and
 * copies the weights to it. The word at `front`, which the device can read and write, is 0 or 1: the
 * number of the state that the weights are now; NULL means 0. Statuses are those of
 * weights_match(); ULP_E_OVERLAP for tensors that share memory with each other or with the weights,
 * ULP_E_USAGE for a second second state, and for another number.
 */
enum ulp_status device_second_attach(struct device_weights *weights,
                                     const struct ulp_tensor *tensors, size_t count,
                                     uint32_t *front);
void device_second_free(struct device_second *second); /* NULL is fine */

/* Room for a list of so many changes, so that writing them needs none. */
enum ulp_status device_second_reserve(struct device_weights *weights,
                                      const struct cuda_decode *decode, uint64_t changes);

/*
 * The present state becomes the one whose root is `to`, which the changes lead to; they are
 * afterwards those that lead back. When the back is that state already only roles change. Root and
 * sums of the weights are left to the caller. After a failure the present state is what it was, but
 * the changes may be neither.
 */
enum ulp_status device_second_write(struct device_weights *weights,
                                    const struct cuda_decode *decode, uint64_t changes,
                                    const struct ulp_root *to);

#endif
