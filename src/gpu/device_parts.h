// SPDX-License-Identifier: Apache-2.0
/*
 * The patches that are applied together: one whole patch, or some of regions. Their chunks, one patch behind
 * the other, are the segments of one plan, so that everything is decoded in one go and written in one.
 */
#ifndef GPU_DEVICE_PARTS_H
#define GPU_DEVICE_PARTS_H

#include "gpu/coded.h"
#include "gpu/device_weights.h"

struct device_parts {
    struct device_weights *weights;
    const struct ulp_patch **patches;
    size_t count;
    uint64_t changes;
    struct device_plan *plan; /* that of the weights, or: */
    struct device_plan own;   /* of regions */
    struct room packed;       /* copies of columns, while they are decoded */
    size_t **first_held;      /* of each patch; see struct sum_target */
    size_t *first_piece;
};

/* The patches have been found to fit the weights (fit_check()). */
enum ulp_status device_parts_make(struct device_weights *weights,
                                  const struct ulp_patch *const *patches, size_t count,
                                  struct device_parts *ret_parts);
void device_parts_release(struct device_parts *parts);

/* All chunks, with nothing parsed yet, and the bytes that they have together. */
enum ulp_status device_parts_chunks(const struct device_parts *parts,
                                    struct coded_chunk **ret_chunks, size_t *ret_bytes);

/* Where the sums of a part are. `lock` is needed by regions of a whole state. */
struct sum_target device_parts_target(const struct device_parts *parts, uint32_t part,
                                      struct ulp_sum *sums, struct lock *lock);

/* Before anything is laid out on the device: regions are described there. */
enum ulp_status device_parts_upload(struct device_parts *parts);

/* Scans what was decoded (cuda_decode_scan()), with the sums of regions. `blocks` are those of `decode`, in
 * the host's memory. */
enum ulp_status device_parts_scan(const struct device_parts *parts,
                                  const struct cuda_decode *decode,
                                  const struct decode_block *blocks);

/* Lets go of what only decoding needs. */
void device_parts_decoded(struct device_parts *parts);

/* ULP_E_WRONG_RESULT unless the sums are those that the patches name. Of a whole patch or a tile they are
 * compared one by one; those of regions of a whole state have to give the root of the child. */
enum ulp_status device_parts_check(const struct device_parts *parts, struct ulp_sum *sums,
                                   const struct ulp_root *child);

#endif
