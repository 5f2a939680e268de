// SPDX-License-Identifier: Apache-2.0
/* Gaps between changed places as others write them: 7 bits to a byte, the lowest first. */
#ifndef STUDY_GAPS_H
#define STUDY_GAPS_H

#include <stddef.h>
#include <stdint.h>

#define GAP_BYTES_MAX 10u

static inline size_t gap_bytes(uint64_t gap) {
    size_t bytes = 1;

    for (; gap >= 128; gap >>= 7)
        bytes++;
    return bytes;
}

/* Returns how many bytes it took. */
static inline size_t gap_write(uint8_t *at, uint64_t gap) {
    size_t bytes = 0;

    for (; gap >= 128; gap >>= 7)
        at[bytes++] = (uint8_t)(gap | 128);
    at[bytes++] = (uint8_t)gap;
    return bytes;
}

#endif
