// SPDX-License-Identifier: Apache-2.0
/*
 * For tests that prepare tens of thousands of patches: the few large blocks of working memory are
 * kept for the next one, since sanitizers map and unmap them each time. Small ones go the usual
 * way.
 */
#ifndef TESTS_PATCH_BIG_BLOCKS_H
#define TESTS_PATCH_BIG_BLOCKS_H

#include "base/memory.h"

#include <malloc.h>
#include <stdlib.h>

#define BIG_BYTES (1u << 17)
#define BIG_KEPT 32u

static _Thread_local void *big_kept[BIG_KEPT];

static inline void *big_resize(void *user, void *old, size_t bytes) {
    (void)user;
    for (size_t i = 0; !old && bytes >= BIG_BYTES && i < BIG_KEPT; i++) {
        void *block = big_kept[i];
        size_t room = block ? malloc_usable_size(block) : 0;

        if (room >= bytes && room < bytes + 65536) {
            big_kept[i] = NULL;
            return block;
        }
    }
    return realloc(old, bytes);
}

static inline void big_release(void *user, void *block) {
    (void)user;
    for (size_t i = 0; block && malloc_usable_size(block) >= BIG_BYTES && i < BIG_KEPT; i++) {
        if (!big_kept[i]) {
            big_kept[i] = block;
            return;
        }
    }
    free(block);
}

static inline void big_blocks_install(void) {
    static const struct mem_hooks hooks = {big_resize, big_release, NULL};

    mem_install(&hooks);
}

/* In each thread, when it has done its share. */
static inline void big_blocks_drop(void) {
    for (size_t i = 0; i < BIG_KEPT; i++) {
        free(big_kept[i]);
        big_kept[i] = NULL;
    }
}

#endif
