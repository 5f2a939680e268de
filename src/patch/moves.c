// SPDX-License-Identifier: Apache-2.0
#include "patch/moves.h"

#include "base/memory.h"

#include <string.h>

#define MOVE_MAX 127

/* ---- collecting ---- */

enum ulp_status moves_list_begin(struct moves_list *list, size_t blocks) {
    enum ulp_status status;

    list->count = list->blocks = 0;
    if (blocks >= list->block_room) {
        status = mem_resize(&list->starts, blocks + 1, sizeof *list->starts);
        if (status)
            return status;
        list->block_room = blocks + 1;
    }
    memset(list->starts, 0, (blocks + 1) * sizeof *list->starts);
    list->blocks = blocks;
    return ULP_OK;
}

static enum ulp_status make_room(struct moves_list *list, uint32_t count) {
    size_t room = list->room ? list->room : 64;
    enum ulp_status status;

    if (count <= list->room - list->count)
        return ULP_OK;
    while (room - list->count < count)
        room *= 2;
    status = mem_resize(&list->moves, room, sizeof *list->moves);
    if (!status)
        list->room = room;
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

enum ulp_status moves_list_add(struct moves_list *list, size_t block, unsigned width,
                               const uint32_t *positions, uint32_t count, const void *old,
                               const void *new) {
    static void (*const adds[])(struct code_move *, const uint32_t *, uint32_t, const uint8_t *,
                                const uint8_t *) = {add_1, add_2, add_4, add_8};
    enum ulp_status status = make_room(list, count);

    if (status)
        return status;
    if (count)
        adds[__builtin_ctz(width)](list->moves + list->count, positions, count, old, new);
    list->count += count;
    list->starts[block + 1] = (uint32_t)list->count;
    return ULP_OK;
}

/* The moves behind a block that was left out start where its own would. */
struct chunk_moves moves_list_view(struct moves_list *list) {
    for (size_t b = 0; b < list->blocks; b++) {
        if (list->starts[b + 1] < list->starts[b])
            list->starts[b + 1] = list->starts[b];
    }
    return (struct chunk_moves){list->count ? list->moves : NULL, list->starts};
}

void moves_list_release(struct moves_list *list) {
    mem_free(list->moves);
    mem_free(list->starts);
    *list = (struct moves_list){0};
}

/* ---- keeping ---- */

enum ulp_status moves_new(size_t chunks, struct staging_room room, struct moves **ret_moves) {
    struct moves *moves = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *moves, &moves);

    if (!status)
        status = mem_zeroed(chunks, sizeof *moves->chunks, &moves->chunks);
    if (!status)
        status = staging_new(room, &moves->staging);
    if (status) {
        moves_free(moves);
        return status;
    }
    *ret_moves = moves;
    return ULP_OK;
}

void moves_free(struct moves *moves) {
    if (!moves)
        return;
    staging_free(moves->staging);
    mem_free(moves->chunks);
    mem_free(moves);
}

enum ulp_status moves_keep(struct moves *moves, size_t chunk, struct moves_list *list) {
    const struct chunk_moves from = moves_list_view(list);
    const size_t bytes = list->count * sizeof *from.moves;
    const size_t start_bytes = (list->blocks + 1) * sizeof *from.starts;
    uint8_t *to = NULL;
    enum ulp_status status;

    if (!list->count)
        return ULP_OK;
    status = staging_take(moves->staging, bytes + start_bytes, &to);
    if (status)
        return status;
    memcpy(to, from.moves, bytes);
    memcpy(to + bytes, from.starts, start_bytes);
    moves->chunks[chunk] = (struct chunk_moves){(const struct code_move *)(void *)to,
                                                (const uint32_t *)(void *)(to + bytes)};
    return ULP_OK;
}
