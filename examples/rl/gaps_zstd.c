// SPDX-License-Identifier: Apache-2.0
#include "gaps.h"

#include "memory.h"

#include <zstd.h>

#define LEVEL 1

size_t gaps_squeezed(const void *data, size_t bytes) {
    const size_t room = ZSTD_compressBound(bytes);
    void *squeezed = zeroed(room, 1);
    const size_t after = ZSTD_compress(squeezed, room, data, bytes, LEVEL);

    free(squeezed);
    return ZSTD_isError(after) ? 0 : after;
}
