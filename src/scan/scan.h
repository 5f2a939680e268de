// SPDX-License-Identifier: Apache-2.0
/*
 * Which elements differ, bit by bit; fetching and storing single elements.
 *
 * scan_portable.c is the definition. Each other file is its twin for one instruction set and must
 * give the same answers; which one runs is decided by the CPU and by nothing else. No alignment is
 * needed, no byte outside the arrays is read.
 */
#ifndef SCAN_SCAN_H
#define SCAN_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* Positions are 32 bits wide, so one call covers at most this many elements. */
#define SCAN_ELEMENTS_MAX UINT32_MAX

/* All for one element width; `n` counts elements. */
struct scan_kernels {
    /* How many elements of a and b differ. */
    uint64_t (*count)(const void *a, const void *b, size_t n);

    /* Writes the places where a and b differ, ascending, and returns how many; `positions` needs
     * room for that many and no more. */
    size_t (*collect)(const void *a, const void *b, size_t n, uint32_t *positions);

    /* values[i] = from[positions[i]] */
    void (*gather)(const void *from, const uint32_t *positions, size_t n, void *values);

    /* to[positions[i]] = values[i] */
    void (*scatter)(void *to, const uint32_t *positions, size_t n, const void *values);
};

/* The best for the running CPU; `width` is 1, 2, 4 or 8 bytes. */
const struct scan_kernels *scan_kernels(unsigned width);

/* "avx512", "avx2", "neon" or "portable": whose kernels those are. */
const char *scan_twin_name(void);

#endif
