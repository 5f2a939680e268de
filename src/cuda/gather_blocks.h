// SPDX-License-Identifier: Apache-2.0
/* The elements of many blocks, end to end, so that one copy brings them to the host. */
#ifndef CUDA_GATHER_BLOCKS_H
#define CUDA_GATHER_BLOCKS_H

#include "cuda/plan.h"

#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies block i, of elements of `width` bytes, to byte offsets[i] of `to`. All device memory;
 * offsets are multiples of the width. Enqueued on `stream`; returns at once. */
enum ulp_status cuda_gather_blocks(const struct cuda_block *blocks, const uint64_t *offsets,
                                   uint32_t count, uint32_t width, uint8_t *to, void *stream);

#ifdef __cplusplus
}
#endif

#endif
