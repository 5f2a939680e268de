// SPDX-License-Identifier: Apache-2.0
/*
 * The contents of a tensor as a keyed sum.
 *
 * A tensor's bytes are split into 8-byte little-endian words (the last padded with zeros). Each
 * word is mixed with its position into two 64-bit lanes, and the lanes are added up modulo 2^64. A
 * sum does not care about order, so threads and instruction sets cannot change it, and a changed
 * word is replaced by subtracting its old mix and adding the new one.
 *
 * docs/format/root.md defines all of this for other implementations.
 */
#ifndef SCAN_DIGEST_SUM_H
#define SCAN_DIGEST_SUM_H

#include <ulpsync/model.h>

#define DIGEST_WORD_BYTES 8u

/* Adds the mixes of `bytes` bytes, the first of which begins word `first_word` of its tensor. Only
 * the last piece of a tensor may have a length that is not a multiple of a word. */
void digest_add(const void *data, size_t bytes, uint64_t first_word, struct ulp_sum *sum);

/*
 * Adjusts `sum` for a change that is about to happen: in `data` (as above; untouched) the elements
 * of `width` bytes at `positions` (strictly ascending) become `values`. The same call made after
 * the change, with the old values, undoes it.
 */
void digest_replace(const void *data, size_t bytes, uint64_t first_word, unsigned width,
                    const uint32_t *positions, size_t count, const void *values,
                    struct ulp_sum *sum);

#endif
