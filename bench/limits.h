// SPDX-License-Identifier: Apache-2.0
/*
 * What the machine's memory allows, measured in the same run as what we do with it: every figure of
 * ours stands beside one of these. They do the least that touches every byte.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes, in multiples of 64, 8-byte aligned. `ahead` is a prefetch distance in bytes. */
uint64_t limit_read(const void *a, size_t bytes, size_t ahead);
uint64_t limit_compare(const void *a, const void *b, size_t bytes, size_t ahead);

/* As fast as the C library copies. */
void limit_copy(void *to, const void *from, size_t bytes);

#endif
