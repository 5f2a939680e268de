// SPDX-License-Identifier: Apache-2.0
/*
 * The only door to the heap. Tests replace what is behind it, to count and to fail allocations.
 * Memory comes zeroed where the name says so; asking for 0 bytes gives a valid pointer.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* `count` elements of `size` bytes; ULP_E_NOMEM also when the product overflows. */
enum ulp_status mem_zeroed(size_t count, size_t size, void *ret_pointer);

/* Grows or shrinks *pointer (which may be NULL); on failure *pointer is untouched and still owned.
 * */
enum ulp_status mem_resize(void *pointer, size_t count, size_t size);

/* Makes room for one more element in an array of *room elements, `count` of them used. */
enum ulp_status mem_grow(void *array, size_t count, size_t size, size_t *room);

enum ulp_status mem_copy_text(const char *text, char **ret_copy);
void mem_free(void *pointer);

/* Zeroes a secret that is not needed any more; no optimisation leaves this out. */
void mem_wipe(void *secret, size_t bytes);

struct mem_hooks {
    void *(*resize)(void *user, void *old, size_t bytes);
    void (*release)(void *user, void *pointer);
    void *user;
};

/* For tests, before any other thread runs. NULL restores the C library's allocator. */
void mem_install(const struct mem_hooks *hooks);

#endif
