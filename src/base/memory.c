// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "base/memory.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

static void *libc_resize(void *user, void *old, size_t bytes) {
    (void)user;
    return realloc(old, bytes);
}

static void libc_release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

static const struct mem_hooks libc_hooks = {libc_resize, libc_release, NULL};
static struct mem_hooks active = {libc_resize, libc_release, NULL};

void mem_install(const struct mem_hooks *hooks) {
    active = hooks ? *hooks : libc_hooks;
}

/* Pointers are stored through memcpy because ret_pointer is a pointer to any kind of pointer. */
static enum ulp_status allocate(void *old, size_t count, size_t size, void *ret_pointer) {
    uint64_t bytes;
    void *fresh = NULL;

    if (!mul_overflows(count, size, &bytes) && bytes <= PTRDIFF_MAX)
        fresh = active.resize(active.user, old, bytes ? (size_t)bytes : 1);
    if (!fresh)
        return fail(ULP_E_NOMEM, "out of memory: %zu elements of %zu bytes were needed", count,
                    size);
    memcpy(ret_pointer, &fresh, sizeof fresh);
    return ULP_OK;
}

enum ulp_status mem_zeroed(size_t count, size_t size, void *ret_pointer) {
    void *fresh = NULL;
    enum ulp_status status = allocate(NULL, count, size, &fresh);

    if (status)
        return status;
    memset(fresh, 0, count * size);
    memcpy(ret_pointer, &fresh, sizeof fresh);
    return ULP_OK;
}

enum ulp_status mem_resize(void *pointer, size_t count, size_t size) {
    void *old;

    memcpy(&old, pointer, sizeof old);
    return allocate(old, count, size, pointer);
}

enum ulp_status mem_grow(void *array, size_t count, size_t size, size_t *room) {
    size_t wanted = *room ? 2 * *room : 16;
    enum ulp_status status;

    if (count < *room)
        return ULP_OK;
    status = mem_resize(array, wanted, size);
    if (!status)
        *room = wanted;
    return status;
}

enum ulp_status mem_copy_text(const char *text, char **ret_copy) {
    size_t bytes = strlen(text) + 1;
    char *copy = NULL;
    enum ulp_status status = allocate(NULL, bytes, 1, &copy);

    if (status)
        return status;
    memcpy(copy, text, bytes);
    *ret_copy = copy;
    return ULP_OK;
}

void mem_free(void *pointer) {
    if (pointer)
        active.release(active.user, pointer);
}

void mem_wipe(void *secret, size_t bytes) {
    explicit_bzero(secret, bytes);
}
