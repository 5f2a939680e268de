// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

#define CHUNK_BYTES 65536u
#define ALIGNMENT 8u

struct arena_chunk {
    struct arena_chunk *older;
    size_t used, room;
    uint64_t bytes[]; /* of words, for alignment */
};

static enum ulp_status add_chunk(struct arena *arena, size_t bytes) {
    struct arena_chunk *chunk = NULL;
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    enum ulp_status status = mem_zeroed(1, sizeof *chunk + room, &chunk);

    if (status)
        return status;
    chunk->older = arena->newest;
    chunk->room = room;
    arena->newest = chunk;
    return ULP_OK;
}

enum ulp_status arena_zeroed(struct arena *arena, size_t count, size_t size, void *ret_pointer) {
    struct arena_chunk *chunk = arena->newest;
    uint64_t bytes;
    void *place;

    if (mul_overflows(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return fail(ULP_E_NOMEM, "out of memory: %zu elements of %zu bytes", count, size);
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!chunk || chunk->room - chunk->used < bytes) {
        enum ulp_status status = add_chunk(arena, (size_t)bytes);

        if (status)
            return status;
        chunk = arena->newest;
    }
    place = (uint8_t *)chunk->bytes + chunk->used;
    chunk->used += (size_t)bytes;
    memcpy(ret_pointer, &place, sizeof place);
    return ULP_OK;
}

enum ulp_status arena_text(struct arena *arena, const char *text, size_t length,
                           const char **ret_copy) {
    char *copy = NULL;
    enum ulp_status status = arena_zeroed(arena, length + 1, 1, &copy);

    if (status)
        return status;
    memcpy(copy, text, length);
    *ret_copy = copy;
    return ULP_OK;
}

void arena_release(struct arena *arena) {
    struct arena_chunk *chunk = arena->newest;

    while (chunk) {
        struct arena_chunk *older = chunk->older;

        mem_free(chunk);
        chunk = older;
    }
    arena->newest = NULL;
}
