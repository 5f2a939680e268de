// SPDX-License-Identifier: Apache-2.0
#include "patch/moves.h"

#include "base/memory.h"

#include <string.h>

#define MOVE_MAX 127

enum ulp_status moves_new(size_t chunks, struct moves **ret_moves) {
    struct moves *moves = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *moves, &moves);

    if (!status)
        status = mem_zeroed(chunks, sizeof *moves->chunks, &moves->chunks);
    if (status) {
        moves_free(moves);
        return status;
    }
    moves->chunk_count = chunks;
    *ret_moves = moves;
    return ULP_OK;
}

void chunk_moves_release(struct chunk_moves *chunk) {
    mem_free(chunk->moves);
    mem_free(chunk->starts);
    *chunk = (struct chunk_moves){0};
}

void moves_free(struct moves *moves) {
    if (!moves)
        return;
    for (size_t i = 0; i < moves->chunk_count; i++)
        chunk_moves_release(&moves->chunks[i]);
    mem_free(moves->chunks);
    mem_free(moves);
}

enum ulp_status chunk_moves_begin(struct chunk_moves *chunk, size_t blocks) {
    mem_free(chunk->starts);
    chunk->starts = NULL;
    chunk->count = 0;
    return mem_zeroed(blocks + 1, sizeof *chunk->starts, &chunk->starts);
}

static enum ulp_status make_room(struct chunk_moves *chunk, uint32_t count) {
    size_t room = chunk->room ? chunk->room : 64;
    enum ulp_status status;

    if (count <= chunk->room - chunk->count)
        return ULP_OK;
    while (room - chunk->count < count)
        room *= 2;
    status = mem_resize(&chunk->moves, room, sizeof *chunk->moves);
    if (!status)
        chunk->room = room;
    return status;
}

static int8_t clip(int64_t step) {
    return (int8_t)(step < -MOVE_MAX ? -MOVE_MAX : step > MOVE_MAX ? MOVE_MAX : step);
}

/* A step of the bit pattern wraps around at the element's width, and so has a sign. */
#define DEFINE_ADD(WIDTH, TYPE, STEP)                                                              \
    static void add_##WIDTH(struct code_move *to, const uint32_t *positions, uint32_t count,       \
                            const uint8_t *old, const uint8_t *new) {                              \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            TYPE a, b;                                                                             \
                                                                                                   \
            memcpy(&a, old + WIDTH * (size_t)i, WIDTH);                                            \
            memcpy(&b, new + WIDTH *(size_t)i, WIDTH);                                             \
            to[i] = (struct code_move){positions[i], clip((STEP)(TYPE)(b - a))};                   \
        }                                                                                          \
    }

DEFINE_ADD(1, uint8_t, int8_t)
DEFINE_ADD(2, uint16_t, int16_t)
DEFINE_ADD(4, uint32_t, int32_t)
DEFINE_ADD(8, uint64_t, int64_t)

enum ulp_status chunk_moves_add(struct chunk_moves *chunk, size_t block, unsigned width,
                                const uint32_t *positions, uint32_t count, const void *old,
                                const void *new) {
    static void (*const adds[])(struct code_move *, const uint32_t *, uint32_t, const uint8_t *,
                                const uint8_t *) = {add_1, add_2, add_4, add_8};
    enum ulp_status status = make_room(chunk, count);

    if (status)
        return status;
    if (count)
        adds[__builtin_ctz(width)](chunk->moves + chunk->count, positions, count, old, new);
    chunk->count += count;
    chunk->starts[block + 1] = (uint32_t)chunk->count;
    return ULP_OK;
}
