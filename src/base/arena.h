// SPDX-License-Identifier: Apache-2.0
/*
 * Many small things that die together: names, shapes. A zeroed arena is empty and ready; pointers
 * stay valid until arena_release().
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/status.h"

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *newest;
};

/* Zeroed, aligned for any integer. */
enum ulp_status arena_zeroed(struct arena *arena, size_t count, size_t size, void *ret_pointer);

/* A NUL-terminated copy of `length` bytes. */
enum ulp_status arena_text(struct arena *arena, const char *text, size_t length,
                           const char **ret_copy);

void arena_release(struct arena *arena);

#endif
