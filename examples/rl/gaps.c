// SPDX-License-Identifier: Apache-2.0
#include "gaps.h"

#include "memory.h"
#include "study/gaps.h"
#include "study/squeeze.h"

static size_t squeezed(const void *data, size_t bytes) {
    const size_t room_bytes = squeeze_room(bytes);
    void *room = zeroed(room_bytes, 1);
    const size_t after = squeeze(data, bytes, room, room_bytes);

    free(room);
    return after;
}

void gaps_measure(const uint16_t *old, const uint16_t *new, size_t count, size_t *ret_before,
                  size_t *ret_after) {
    uint8_t *data = zeroed(count, 12); /* a varint of 10 bytes and a value for each, at most */
    size_t bytes = 0, next = 0;

    for (size_t i = 0; i < count; i++)
        if (old[i] != new[i]) {
            bytes += gap_write(data + bytes, i - next);
            next = i + 1;
        }
    for (size_t i = 0; i < count; i++)
        if (old[i] != new[i]) {
            data[bytes++] = (uint8_t) new[i];
            data[bytes++] = (uint8_t)(new[i] >> 8);
        }
    *ret_before = bytes;
    *ret_after = squeezed(data, bytes);
    free(data);
}
