// SPDX-License-Identifier: Apache-2.0
/* For builds without zstd. */
#include "gaps.h"

size_t gaps_squeezed(const void *data, size_t bytes) {
    (void)data;
    (void)bytes;
    return 0;
}
