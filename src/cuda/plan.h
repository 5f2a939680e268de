// SPDX-License-Identifier: Apache-2.0
/*
 * What kernels need to know of a state: its segments and blocks, in the order of the patch's grid, as
 * plain arrays. Made on the host from the grid, uploaded once, so that any number of tensors goes in
 * one launch. A block is up to 2^18 elements of one tensor that lie end to end; a segment is a chunk of
 * the patch.
 */
#ifndef CUDA_PLAN_H
#define CUDA_PLAN_H

#include "code/kind.h"

#include <stddef.h>
#include <stdint.h>

struct cuda_block {
    const uint8_t *old;  /* in device memory; aligned to its elements, not always to more */
    const uint8_t *new_; /* of an encoder; a decoder leaves it NULL */
    uint64_t first_word; /* of its tensor, in words of 8 bytes: a block starts on one */
    uint32_t elements;
    uint32_t segment;
    uint32_t piece; /* to whose sum it belongs */
    uint32_t index; /* in its segment */
};

struct cuda_segment {
    uint32_t first_block, blocks;
    uint32_t elements;
    struct code_kind kind;
};

struct cuda_plan {
    const struct cuda_segment *segments;
    const struct cuda_block *blocks;
    uint32_t segment_count, block_count, piece_count;
};

#endif
