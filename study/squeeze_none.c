// SPDX-License-Identifier: Apache-2.0
/* For builds without zstd. */
#include "study/squeeze.h"

bool squeeze_available(void) {
    return false;
}

size_t squeeze_room(size_t bytes) {
    return bytes;
}

size_t squeeze(const void *data, size_t bytes, void *room, size_t room_bytes) {
    (void)data;
    (void)bytes;
    (void)room;
    (void)room_bytes;
    return 0;
}
