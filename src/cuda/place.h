// SPDX-License-Identifier: Apache-2.0
/*
 * Where the blocks of a partial patch are. Those of a band of rows lie end to end, as those of whole
 * tensors do; those of a band of columns lie in many short stretches. Kernels that compare or decode want
 * elements end to end, so such blocks are copied together first, and the plan's blocks point to the copies;
 * what is known of the tensor itself, its sums and what is written, goes by the places.
 */
#ifndef CUDA_PLACE_H
#define CUDA_PLACE_H

#include "cuda/decode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `left` of a block that lies end to end. */
#define PLACE_END_TO_END UINT32_MAX

/* Of one block. Everything counts elements, unless it says otherwise. */
struct cuda_place {
    const uint8_t *old, *new_; /* its first element, in the tensor; see struct cuda_block */
    uint64_t first_word;       /* where that is in the tensor, in words of 8 bytes */
    uint64_t pitch;            /* from row to row of the tensor */
    uint64_t next;             /* from the first element to where its next row begins */
    uint32_t left;             /* in its first row: no more than a block has */
    uint32_t columns;          /* in the rows behind: likewise */
    uint32_t piece;            /* whose sum it belongs to, or at least its first element ... */
    uint32_t in_piece;         /* ... which is this one of the piece ... */
    uint32_t split;            /* ... if 1: every 2^24 elements of the tensor are another piece */
    uint32_t packed;           /* 1: the plan's block is a copy */
};

/* Copies the blocks that are `packed` to where the plan's blocks have them: the old elements or, with
 * `next`, the new ones. All device memory, here and below; enqueued on `stream`. */
enum ulp_status cuda_pack_blocks(const struct cuda_plan *plan, const struct cuda_place *places,
                                 uint32_t next, void *stream);

/* As cuda_digest_blocks(), of the elements where they are: adds to the sums of the places' pieces. */
enum ulp_status cuda_digest_places(const struct cuda_plan *plan, const struct cuda_place *places,
                                   uint32_t next, unsigned long long *sums, void *stream);

/* How the sums change by what was decoded of packed blocks. To be called behind the scan; the copies
 * become new on the way. */
enum ulp_status cuda_decode_sums(const struct cuda_decode *decode, void *stream);

#ifdef __cplusplus
}
#endif

#endif
