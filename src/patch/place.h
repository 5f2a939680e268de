// SPDX-License-Identifier: Apache-2.0
/*
 * Where the elements of a block are. Most blocks are one stretch of a tensor's memory; those of a
 * band of columns are many short ones, and are copied together for the codec.
 */
#ifndef PATCH_PLACE_H
#define PATCH_PLACE_H

#include "patch/grid.h"

/* Memory for a block of the widest elements. */
#define PLACE_WORD_BYTES 8u
#define PLACE_BYTES (PLACE_WORD_BYTES * (size_t)CODE_BLOCK_MAX)

/* The block's elements, in place or copied to `scratch`, which has room for them. `data` is the
 * whole tensor's. */
const void *place_read(const struct block_walk *block, const void *data, void *scratch);

/* Adds the sum of the block's elements. */
void place_digest(const struct block_walk *block, const void *data, struct ulp_sum *sum);

/* Adjusts `sum` for changes that are about to be made; positions count from the start of the block.
 * */
void place_replace(const struct block_walk *block, const void *data, const uint32_t *positions,
                   uint32_t count, const void *values, struct ulp_sum *sum);

/* The same for the pieces of another grid, of whole tensors, into which a block of a region may
 * fall: `sums` is that of the tensor's first piece. */
void place_replace_split(const struct block_walk *block, const void *data,
                         const uint32_t *positions, uint32_t count, const void *values,
                         struct ulp_sum *sums);

/* Both for a copy of the block's elements, end to end. */
void place_replace_copy(const struct block_walk *block, const void *copy, const uint32_t *positions,
                        uint32_t count, const void *values, struct ulp_sum *sum);
void place_replace_split_copy(const struct block_walk *block, const void *copy,
                              const uint32_t *positions, uint32_t count, const void *values,
                              struct ulp_sum *sums);

/* Writes the values and leaves in their place what was there before. */
void place_swap(const struct block_walk *block, void *data, const uint32_t *positions,
                uint32_t count, void *values);

/* Goes through the stretches of the block that are contiguous in the tensor: where each begins there,
 * in bytes, and its part of `elements`, which are the block's, end to end. */
typedef enum ulp_status (*place_stretch_fn)(void *user, uint64_t offset, const void *data,
                                            size_t bytes);
enum ulp_status place_each_stretch(const struct block_walk *block, const void *elements,
                                   place_stretch_fn fn, void *user);

/* Byte of the tensor where an element of the block is. */
uint64_t place_offset(const struct block_walk *block, uint32_t position);

#endif
