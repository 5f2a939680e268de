// SPDX-License-Identifier: Apache-2.0
/*
 * Dtypes are widths. Weights are never computed with, so all that matters of a dtype is how many
 * bits one element takes; one that is not in the table is carried by name, its width following
 * from its bytes.
 */
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* 0 for a dtype that is not in the table. */
uint32_t dtype_bits(const char *dtype);

/* Letters, digits and underscores, 1 to LIMIT_DTYPE_BYTES of them. */
bool dtype_name_allowed(const char *dtype);

#endif
