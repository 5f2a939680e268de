// SPDX-License-Identifier: Apache-2.0
#include "gpu/window_fill.h"

#include "cuda/memory.h"

#include <string.h>

/* Copies below this cost more than the bytes do: shorter stretches are put together first. */
#define DIRECT_LEAST ((size_t)64 << 10)

/* What is put together goes in pieces, so that one is on its way while the next is filled; threads
 * take parts of a piece. */
#define PIECE_BYTES ((size_t)8 << 20)
#define PART_BYTES ((size_t)512 << 10)

/* ---- elements ---- */

/* A run of stretches that are put together in pinned memory. */
struct filling {
    const struct stretch *stretches;
    size_t count, begin, end; /* bytes of the window: a piece of the run */
    uint8_t *staged;
};

static size_t find_stretch(const struct filling *filling, size_t at) {
    size_t low = 0, high = filling->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (filling->stretches[middle].at + filling->stretches[middle].bytes <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum ulp_status fill_part(void *user, uint64_t part) {
    const struct filling *filling = user;
    const size_t begin = filling->begin + (size_t)part * PART_BYTES;
    const size_t rest = filling->end - begin;
    const size_t end = begin + (rest < PART_BYTES ? rest : PART_BYTES);

    for (size_t i = find_stretch(filling, begin);
         i < filling->count && filling->stretches[i].at < end; i++) {
        const struct stretch *stretch = &filling->stretches[i];
        const size_t from = stretch->at > begin ? stretch->at : begin;
        const size_t behind = stretch->at + stretch->bytes;

        memcpy(filling->staged + from, stretch->from + (from - stretch->at),
               (behind < end ? behind : end) - from);
    }
    return ULP_OK;
}

static enum ulp_status copy_staged(const struct windows *windows, struct window *window,
                                   size_t first, size_t behind, struct ulp_pool *pool) {
    const struct stretch *last = &window->stretches[behind - 1];
    const size_t all = last->at + last->bytes;
    struct filling filling = {window->stretches + first, behind - first, 0, 0, NULL};
    enum ulp_status status = ULP_OK;

    if (!window->staged.memory)
        status = room_take(&(struct room){0}, windows->bytes, true, &window->staged);
    filling.staged = window->staged.memory;
    for (filling.begin = window->stretches[first].at; !status && filling.begin < all;
         filling.begin = filling.end) {
        const size_t rest = all - filling.begin;

        filling.end = filling.begin + (rest < PIECE_BYTES ? rest : PIECE_BYTES);
        status = ulp_pool_run(pool, (filling.end - filling.begin + PART_BYTES - 1) / PART_BYTES,
                              fill_part, &filling, NULL);
        if (!status)
            status = device_status(cuda_copy_in(window->old.memory + filling.begin,
                                                filling.staged + filling.begin,
                                                filling.end - filling.begin, window->stream),
                                   "copying old weights");
    }
    return status;
}

static bool is_direct(const struct windows *windows, const struct stretch *stretch) {
    return windows->pinned[stretch->tensor] && stretch->bytes >= DIRECT_LEAST;
}

enum ulp_status window_copy_old(const struct windows *windows, struct window *window,
                                struct ulp_pool *pool) {
    enum ulp_status status = ULP_OK;
    size_t i = 0;

    while (!status && i < window->stretch_count) {
        const struct stretch *stretch = &window->stretches[i];
        const size_t first = i++;

        if (is_direct(windows, stretch)) {
            status = device_status(cuda_copy_in(window->old.memory + stretch->at, stretch->from,
                                                stretch->bytes, window->stream),
                                   "copying old weights");
            continue;
        }
        while (i < window->stretch_count && !is_direct(windows, &window->stretches[i]))
            i++;
        status = copy_staged(windows, window, first, i, pool);
    }
    return status;
}

/* ---- history ---- */

/* The moves of a window's blocks, as the device wants them. */
struct packing {
    const struct window *window;
    const struct moves *moves;
    uint64_t *first;
    uint32_t *count;
    decode_move *packed;
};

static struct code_block moves_of(const struct packing *packing, const struct cuda_block *block) {
    struct code_block of = {0};

    chunk_moves_of(&packing->moves->chunks[packing->window->first + block->segment], block->index,
                   &of);
    return of;
}

static enum ulp_status pack_block(void *user, uint64_t b) {
    const struct packing *packing = user;
    const struct code_block of = moves_of(packing, &packing->window->blocks[b]);
    decode_move *to = packing->packed + packing->first[b];

    for (uint32_t i = 0; i < of.move_count; i++)
        to[i] = of.moves[i].position << 8 | (uint8_t)of.moves[i].move;
    return ULP_OK;
}

static enum ulp_status take_history_room(struct window *window, size_t bytes) {
    enum ulp_status status = ULP_OK;

    if (window->history.bytes < bytes) {
        room_release(&window->history);
        room_release(&window->staged_history);
        status = room_take(&(struct room){0}, bytes + bytes / 4, false, &window->history);
        if (!status)
            status = room_take(&(struct room){0}, bytes + bytes / 4, true, &window->staged_history);
        if (status)
            room_release(&window->history);
    }
    return status;
}

enum ulp_status window_copy_moves(const struct windows *windows, struct window *window,
                                  struct ulp_pool *pool, struct cuda_moves *ret_moves) {
    struct packing packing = {.window = window, .moves = windows->snapshot->moves};
    const uint32_t blocks = window_plan(windows, window).block_count;
    size_t bytes = 0, total = 0;
    const size_t first = room_place(&bytes, blocks, sizeof *packing.first);
    const size_t count = room_place(&bytes, blocks, sizeof *packing.count);
    size_t packed;
    enum ulp_status status;

    for (uint32_t b = 0; b < blocks; b++)
        total += moves_of(&packing, &window->blocks[b]).move_count;
    packed = room_place(&bytes, total, sizeof *packing.packed);
    status = take_history_room(window, bytes);
    if (status)
        return status;
    packing.first = (uint64_t *)(void *)(window->staged_history.memory + first);
    packing.count = (uint32_t *)(void *)(window->staged_history.memory + count);
    packing.packed = (decode_move *)(void *)(window->staged_history.memory + packed);
    total = 0;
    for (uint32_t b = 0; b < blocks; b++) {
        packing.first[b] = total;
        packing.count[b] = moves_of(&packing, &window->blocks[b]).move_count;
        total += packing.count[b];
    }
    status = ulp_pool_run(pool, blocks, pack_block, &packing, NULL);
    if (!status)
        status = device_status(cuda_copy_in(window->history.memory, window->staged_history.memory,
                                            bytes, window->stream),
                               "copying moves");
    *ret_moves = (struct cuda_moves){(const decode_move *)(void *)(window->history.memory + packed),
                                     (const uint64_t *)(void *)(window->history.memory + first),
                                     (const uint32_t *)(void *)(window->history.memory + count)};
    return status;
}

enum ulp_status window_find_moves(const struct windows *windows, struct window *window,
                                  const struct device_moves *of, struct cuda_moves *ret_moves) {
    const uint32_t blocks = window_plan(windows, window).block_count;
    const uint32_t from = windows->plan->segments[window->first].first_block;
    size_t bytes = 0;
    const size_t first = room_place(&bytes, blocks, sizeof *of->first);
    const size_t count = room_place(&bytes, blocks, sizeof *of->count);
    enum ulp_status status = take_history_room(window, bytes);

    if (status)
        return status;
    memcpy(window->staged_history.memory + first, of->first + from, blocks * sizeof *of->first);
    memcpy(window->staged_history.memory + count, of->count + from, blocks * sizeof *of->count);
    *ret_moves = (struct cuda_moves){(const decode_move *)(void *)of->room.memory,
                                     (const uint64_t *)(void *)(window->history.memory + first),
                                     (const uint32_t *)(void *)(window->history.memory + count)};
    return device_status(
        cuda_copy_in(window->history.memory, window->staged_history.memory, bytes, window->stream),
        "copying moves");
}
