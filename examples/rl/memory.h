// SPDX-License-Identifier: Apache-2.0
/* Memory for programs that cannot go on without it. */
#ifndef RL_MEMORY_H
#define RL_MEMORY_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *zeroed(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);

    if (!memory) {
        fprintf(stderr, "there is no memory for %zu times %zu bytes\n", count, size);
        exit(1);
    }
    return memory;
}

#endif
