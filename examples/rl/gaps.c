// SPDX-License-Identifier: Apache-2.0
#include "gaps.h"

#include "memory.h"

static size_t write_varint(uint8_t *at, size_t value) {
    size_t bytes = 0;

    for (; value >= 128; value >>= 7)
        at[bytes++] = (uint8_t)(value | 128);
    at[bytes++] = (uint8_t)value;
    return bytes;
}

void gaps_measure(const uint16_t *old, const uint16_t *new, size_t count, size_t *ret_before,
                  size_t *ret_after) {
    uint8_t *data = zeroed(count, 12); /* a varint of 10 bytes and a value for each, at most */
    size_t bytes = 0, next = 0;

    for (size_t i = 0; i < count; i++)
        if (old[i] != new[i]) {
            bytes += write_varint(data + bytes, i - next);
            next = i + 1;
        }
    for (size_t i = 0; i < count; i++)
        if (old[i] != new[i]) {
            data[bytes++] = (uint8_t) new[i];
            data[bytes++] = (uint8_t)(new[i] >> 8);
        }
    *ret_before = bytes;
    *ret_after = gaps_squeezed(data, bytes);
    free(data);
}
