// SPDX-License-Identifier: Apache-2.0
#include "gpu/part_plan.h"

#include "base/memory.h"
#include "cuda/memory.h"
#include "patch/place.h"
#include "scan/digest_sum.h"

#define PACKED_ALIGNMENT 16u

static size_t packed_room(uint32_t elements, unsigned width) {
    return ((size_t)elements * width + PACKED_ALIGNMENT - 1) / PACKED_ALIGNMENT * PACKED_ALIGNMENT;
}

/* ---- where a block is ---- */

/* A band of columns is as wide as the kernels need to know: no block has more elements. */
static uint32_t upto_block(uint64_t elements) {
    return elements < CODE_BLOCK_MAX ? (uint32_t)elements : CODE_BLOCK_MAX;
}

static struct cuda_place place_of(const struct block_walk *block, const uint8_t *data) {
    const struct grid_region *region = piece_region(block->grid, block->piece);
    const struct ulp_region *box = &region->box;
    const uint64_t offset = place_offset(block, 0);
    const uint64_t column = (block->grid->pieces[block->piece].first + block->first) % box->columns;
    struct cuda_place place = {.old = data + offset,
                               .first_word = offset / DIGEST_WORD_BYTES,
                               .pitch = region->pitch,
                               .next = region->pitch - column,
                               .left = PLACE_END_TO_END,
                               .columns = upto_block(box->columns)};

    if (box->columns != region->pitch && box->columns - column < block->words) {
        place.left = upto_block(box->columns - column);
        place.packed = 1;
    }
    return place;
}

/* The piece of whole weights in which a block begins. One that does not end in it is copied, too: the
 * scan has one sum for each block. */
static void split_at_pieces(const struct block_walk *block, size_t first_piece,
                            struct cuda_place *place) {
    const uint64_t first = place_offset(block, 0) / block->chunk->kind.width;
    const uint64_t last = place_offset(block, block->words - 1) / block->chunk->kind.width;

    place->piece = (uint32_t)(first_piece + first / GRID_PIECE_WORDS);
    place->in_piece = (uint32_t)(first % GRID_PIECE_WORDS);
    place->split = first / GRID_PIECE_WORDS != last / GRID_PIECE_WORDS;
    place->packed |= place->split;
}

static void find_piece(const struct part_view *view, size_t part, const struct block_walk *block,
                       struct cuda_place *place) {
    const struct grid *grid = view->grids[part];

    if (view->first_piece)
        split_at_pieces(block, view->first_piece[piece_region(grid, block->piece)->tensor], place);
    else if (view->first_held)
        place->piece = (uint32_t)held_piece(view->first_held[part], &grid->pieces[block->piece]);
    else
        place->piece = (uint32_t)block->piece;
}

/* Sums are those of the weights; else those of the grid itself. */
static bool for_weights(const struct part_view *view) {
    return view->first_piece || view->first_held;
}

/* ---- all of them ---- */

static void fill_chunk(const struct part_view *view, size_t part, size_t chunk,
                       struct device_plan *plan) {
    const struct grid *grid = view->grids[part];
    const uint32_t segment = plan->device.segment_count++;
    const uint32_t first = plan->device.block_count;
    struct block_walk block = block_walk_start(grid, chunk);

    plan->segments[segment] =
        (struct cuda_segment){first, block.chunk->blocks, block.chunk->words, block.chunk->kind};
    while (block_walk_next(&block)) {
        const uint32_t number = plan->device.block_count++;
        const uint8_t *data = view->tensors[piece_region(grid, block.piece)->tensor].data;
        struct cuda_place *place = &plan->places[number];
        struct cuda_block *to = &plan->blocks[number];

        *place = place_of(&block, data);
        find_piece(view, part, &block, place);
        *to = (struct cuda_block){.old = place->old,
                                  .first_word = place->first_word,
                                  .elements = block.words,
                                  .segment = segment,
                                  .piece = place->piece,
                                  .index = (uint32_t)block.index};
        if (place->packed && for_weights(view))
            to->piece = (uint32_t)view->pieces;
    }
}

static size_t end_of_chunks(const struct part_view *view, size_t part) {
    return view->chunks ? view->first_chunk + view->chunks : view->grids[part]->chunk_count;
}

static enum ulp_status take_room(const struct part_view *view, struct device_plan *plan) {
    uint64_t chunks = 0, blocks = 0;
    enum ulp_status status;

    for (size_t i = 0; i < view->count; i++) {
        for (size_t c = view->first_chunk; c < end_of_chunks(view, i); c++, chunks++)
            blocks += view->grids[i]->chunks[c].blocks;
    }
    if (blocks > UINT32_MAX)
        return fail(ULP_E_LIMIT, "%llu blocks of elements are too many for one device",
                    (unsigned long long)blocks);
    status = mem_zeroed((size_t)chunks, sizeof *plan->segments, &plan->segments);
    if (!status)
        status = mem_zeroed((size_t)blocks, sizeof *plan->blocks, &plan->blocks);
    return status ? status : mem_zeroed((size_t)blocks, sizeof *plan->places, &plan->places);
}

enum ulp_status part_plan_make(const struct part_view *view, struct device_plan *ret_plan) {
    struct device_plan plan = {0};
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < view->count; i++)
        status = device_plan_check_aligned(view->grids[i], view->tensors);
    if (!status)
        status = take_room(view, &plan);
    for (size_t i = 0; !status && i < view->count; i++) {
        for (size_t c = view->first_chunk; c < end_of_chunks(view, i); c++)
            fill_chunk(view, i, c, &plan);
    }
    if (status) {
        device_plan_release(&plan);
        return status;
    }
    plan.device.piece_count =
        (uint32_t)(view->first_piece || view->first_held ? view->pieces + 1
                                                         : view->grids[0]->piece_count);
    *ret_plan = plan;
    return ULP_OK;
}

enum ulp_status part_plan_set_new(struct device_plan *plan, const struct part_view *view,
                                  const struct ulp_tensor *tensors) {
    const struct grid *grid = view->grids[0];
    size_t number = 0;
    enum ulp_status status = device_plan_check_aligned(grid, tensors);

    for (size_t i = view->first_chunk; !status && i < end_of_chunks(view, 0); i++) {
        struct block_walk block = block_walk_start(grid, i);

        for (; block_walk_next(&block); number++) {
            const uint8_t *data = tensors[piece_region(grid, block.piece)->tensor].data;

            plan->places[number].new_ = data + place_offset(&block, 0);
            plan->blocks[number].new_ = plan->places[number].new_;
        }
    }
    return status;
}

/* ---- rounds ---- */

static size_t packed_of(const struct device_plan *plan, uint32_t number) {
    const struct cuda_block *block = &plan->blocks[number];

    if (!plan->places[number].packed)
        return 0;
    return packed_room(block->elements, plan->segments[block->segment].kind.width);
}

size_t part_plan_round(const struct device_plan *plan, uint32_t first, size_t most,
                       uint32_t *ret_end) {
    uint32_t end = first;
    size_t bytes = 0;

    for (; end < plan->device.block_count; end++) {
        const size_t here = packed_of(plan, end);

        if (end > first && bytes + here > most)
            break;
        bytes += here;
    }
    *ret_end = end;
    return bytes;
}

void part_plan_point(struct device_plan *plan, uint32_t first, uint32_t count, uint8_t *packed,
                     uint8_t *new_packed) {
    size_t at = 0;

    for (uint32_t i = first; i < first + count; i++) {
        const size_t here = packed_of(plan, i);

        if (!here)
            continue;
        plan->blocks[i].old = packed + at;
        if (new_packed)
            plan->blocks[i].new_ = new_packed + at;
        at += here;
    }
}

/* ---- on the device ---- */

enum ulp_status part_plan_upload(struct device_plan *plan, struct room *spare, void *stream) {
    const size_t segment_bytes = plan->device.segment_count * sizeof *plan->segments;
    const size_t block_bytes = plan->device.block_count * sizeof *plan->blocks;
    const size_t place_bytes = plan->device.block_count * sizeof *plan->places;
    size_t bytes = 0;
    const size_t segments = room_place(&bytes, 1, segment_bytes);
    const size_t blocks = room_place(&bytes, 1, block_bytes);
    const size_t places = room_place(&bytes, 1, place_bytes);
    enum ulp_status status = room_take(spare, bytes, false, &plan->room);

    if (status)
        return status;
    plan->device.segments = (const struct cuda_segment *)(void *)(plan->room.memory + segments);
    plan->device.blocks = (const struct cuda_block *)(void *)(plan->room.memory + blocks);
    plan->device_places = (const struct cuda_place *)(void *)(plan->room.memory + places);
    status = cuda_copy_in(plan->room.memory + segments, plan->segments, segment_bytes, stream);
    if (!status)
        status = cuda_copy_in(plan->room.memory + blocks, plan->blocks, block_bytes, stream);
    if (!status)
        status = cuda_copy_in(plan->room.memory + places, plan->places, place_bytes, stream);
    return device_status(status, "taking the description of regions");
}

enum ulp_status part_plan_pack(const struct device_plan *plan, uint32_t first, uint32_t count,
                               bool next, void *stream) {
    struct cuda_plan round = plan->device;

    round.blocks += first;
    round.block_count = count;
    return device_status(cuda_pack_blocks(&round, plan->device_places + first, next, stream),
                         "copying columns together");
}
