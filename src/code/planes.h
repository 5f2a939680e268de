// SPDX-License-Identifier: Apache-2.0
/*
 * Elements as planes of bytes. An element with an exponent is first rotated left by one bit, which
 * puts its sign at the bottom and, of BF16 and FP32, the whole exponent into the top byte: that
 * plane has much to gain from a table, the others little or nothing.
 */
#ifndef CODE_PLANES_H
#define CODE_PLANES_H

#include "code/kind.h"
#include "code/stream.h"

#include <stddef.h>
#include <stdint.h>

/* Byte p of each of the `n` elements goes to planes[p]. */
void planes_split(struct code_kind kind, const void *elements, size_t n, uint8_t *const *planes);

/* The elements again. */
void planes_merge(struct code_kind kind, const uint8_t *const *planes, size_t n, void *elements);

/* Adds to `counts` how often each byte occurs. */
void plane_count(const uint8_t *plane, size_t n, uint64_t *counts);

/* The model of a plane with such bytes, coded if that is worth it; returns the bits it saves. */
uint64_t plane_choose(const uint64_t *counts, struct plane_model *model);

#endif
