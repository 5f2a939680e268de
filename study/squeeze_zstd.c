// SPDX-License-Identifier: Apache-2.0
#include "study/squeeze.h"

#include <zstd.h>

#define LEVEL 1

bool squeeze_available(void) {
    return true;
}

size_t squeeze_room(size_t bytes) {
    return ZSTD_compressBound(bytes);
}

size_t squeeze(const void *data, size_t bytes, void *room, size_t room_bytes) {
    const size_t after = ZSTD_compress(room, room_bytes, data, bytes, LEVEL);

    return ZSTD_isError(after) ? 0 : after;
}
