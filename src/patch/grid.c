// SPDX-License-Identifier: Apache-2.0
#include "patch/grid.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/word.h"

#include <string.h>

static uint32_t blocks_of(uint32_t words) {
    return words / CODE_BLOCK_MAX + (words % CODE_BLOCK_MAX != 0);
}

static uint64_t words_of(const struct ulp_tensor *tensor) {
    return tensor->bytes / word_bytes_of(tensor->bits);
}

void grid_view(const struct ulp_tensor *tensor, uint64_t *ret_rows, uint64_t *ret_pitch) {
    uint64_t words = words_of(tensor), rows = 1;

    for (uint32_t i = 0; i + 1 < tensor->rank; i++)
        rows *= tensor->shape[i];
    if (!words || !rows || words % rows)
        rows = 1; /* packed elements may share a word across rows; then there is only one */
    *ret_rows = rows;
    *ret_pitch = words / rows;
}

static enum ulp_status whole_tensors(struct grid *grid) {
    enum ulp_status status = mem_zeroed(grid->tensor_count, sizeof *grid->regions, &grid->regions);

    for (size_t i = 0; !status && i < grid->tensor_count; i++) {
        struct grid_region *region = &grid->regions[i];

        region->tensor = (uint32_t)i;
        region->box.tensor = grid->tensors[i].name;
        grid_view(&grid->tensors[i], &region->box.rows, &region->pitch);
        region->box.columns = region->pitch;
        region->words = words_of(&grid->tensors[i]);
    }
    grid->region_count = status ? 0 : grid->tensor_count;
    grid->whole = true;
    return status;
}

static enum ulp_status bad_region(const struct ulp_region *box, const char *what) {
    return fail(ULP_E_REGIONS, "rows %llu + %llu, columns %llu + %llu of tensor %s: %s",
                (unsigned long long)box->row, (unsigned long long)box->rows,
                (unsigned long long)box->column, (unsigned long long)box->columns,
                quote(box->tensor).text, what);
}

/* The digest works on 8-byte words, which must not be torn between two owners. */
bool grid_on_words(const struct ulp_tensor *tensor, const struct ulp_region *box) {
    const uint64_t per_word = 8 / word_bytes_of(tensor->bits);
    uint64_t rows, pitch, start;
    bool to_the_end;

    grid_view(tensor, &rows, &pitch);
    start = box->row * pitch + box->column;
    to_the_end = box->row + box->rows == rows && box->column + box->columns == pitch;
    if (box->columns == pitch || box->rows == 1)
        return start % per_word == 0 &&
               (to_the_end || (start + box->rows * box->columns) % per_word == 0);
    return pitch % per_word == 0 && box->column % per_word == 0 && box->columns % per_word == 0;
}

static enum ulp_status measure_region(const struct grid *grid, struct grid_region *region) {
    const struct ulp_tensor *tensor = &grid->tensors[region->tensor];
    const struct ulp_region *box = &region->box;
    uint64_t rows;

    grid_view(tensor, &rows, &region->pitch);
    if (!box->rows || !box->columns || box->row > rows || box->rows > rows - box->row ||
        box->column > region->pitch || box->columns > region->pitch - box->column)
        return bad_region(box, "not inside of it");
    region->words = box->rows * box->columns;
    if (!grid_on_words(tensor, box))
        return bad_region(box, "does not start and end on words of 8 bytes");
    return ULP_OK;
}

static bool overlap(const struct ulp_region *a, const struct ulp_region *b) {
    return a->row < b->row + b->rows && b->row < a->row + a->rows &&
           a->column < b->column + b->columns && b->column < a->column + a->columns;
}

/* Whether `b` may follow `a` in the list. */
static bool in_order(const struct grid_region *a, const struct grid_region *b) {
    if (a->tensor != b->tensor)
        return a->tensor < b->tensor;
    if (a->box.row != b->box.row)
        return a->box.row < b->box.row;
    return a->box.column < b->box.column;
}

/* Regions come sorted by row, so one is compared with those in front of it until none of the rest
 * reaches down to it. `reach[i]` is where the lowest of the tensor's regions up to i ends. */
static enum ulp_status check_apart(const struct grid *grid, size_t i, const uint64_t *reach,
                                   uint64_t *pairs) {
    const struct grid_region *b = &grid->regions[i];

    for (size_t k = i; k-- > 0 && grid->regions[k].tensor == b->tensor && reach[k] > b->box.row;) {
        if (overlap(&grid->regions[k].box, &b->box))
            return bad_region(&b->box, "overlaps another region");
        if (++*pairs > LIMIT_REGION_PAIRS)
            return fail(ULP_E_LIMIT, "regions that are too many to compare: over %u pairs",
                        LIMIT_REGION_PAIRS);
    }
    return ULP_OK;
}

static enum ulp_status check_order(const struct grid *grid) {
    uint64_t *reach = NULL, pairs = 0;
    enum ulp_status status = mem_zeroed(grid->region_count, sizeof *reach, &reach);

    for (size_t i = 0; !status && i < grid->region_count; i++) {
        const struct grid_region *b = &grid->regions[i], *a = i ? b - 1 : NULL;
        const bool same_tensor = a && a->tensor == b->tensor;

        status = check_apart(grid, i, reach, &pairs);
        if (!status && a && !in_order(a, b))
            status = bad_region(&b->box, "out of order; sort by tensor, row and column");
        reach[i] = b->box.row + b->box.rows;
        if (same_tensor && reach[i - 1] > reach[i])
            reach[i] = reach[i - 1];
    }
    mem_free(reach);
    return status;
}

static size_t tensor_named(const struct grid *grid, const char *name) {
    size_t low = 0, high = grid->tensor_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(grid->tensors[middle].name, name);

        if (!order)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return grid->tensor_count;
}

static enum ulp_status take_regions(struct grid *grid, const struct ulp_region *boxes,
                                    size_t count) {
    enum ulp_status status;

    if (count > LIMIT_REGIONS)
        return fail(ULP_E_LIMIT, "%zu regions; the limit is %u", count, LIMIT_REGIONS);
    status = mem_zeroed(count, sizeof *grid->regions, &grid->regions);
    grid->region_count = status ? 0 : count;
    for (size_t i = 0; !status && i < count; i++) {
        struct grid_region *region = &grid->regions[i];
        size_t tensor = boxes[i].tensor ? tensor_named(grid, boxes[i].tensor) : grid->tensor_count;

        if (tensor == grid->tensor_count)
            return fail(ULP_E_LAYOUT, "region %zu is of tensor %s, which is not there", i,
                        quote(boxes[i].tensor ? boxes[i].tensor : "").text);
        region->box = boxes[i];
        region->box.tensor = grid->tensors[tensor].name;
        region->tensor = (uint32_t)tensor;
        status = measure_region(grid, region);
    }
    return status ? status : check_order(grid);
}

static struct code_kind kind_of_region(const struct grid *grid, size_t region) {
    const struct ulp_tensor *tensor = &grid->tensors[grid->regions[region].tensor];

    return code_kind_of(tensor->dtype, tensor->bits);
}

static bool same_kind(struct code_kind a, struct code_kind b) {
    return a.width == b.width && a.exponent_shift == b.exponent_shift &&
           a.exponent_bits == b.exponent_bits && a.lowest == b.lowest;
}

static bool has_room(const struct grid_chunk *chunk, uint32_t words, struct code_kind kind) {
    return same_kind(chunk->kind, kind) && chunk->words + words <= GRID_PIECE_WORDS &&
           chunk->blocks + blocks_of(words) <= CODE_BLOCKS_MAX;
}

/* Adds a piece to the last chunk, or opens a new one for it. */
static void place_piece(struct grid *grid, struct grid_piece piece, struct code_kind kind) {
    struct grid_chunk *chunk = grid->chunks + grid->chunk_count; /* a new one */
    uint32_t blocks = blocks_of(piece.words);

    if (grid->chunk_count && has_room(chunk - 1, piece.words, kind)) {
        chunk--;
    } else {
        grid->chunk_count++;
        chunk->kind = kind;
        chunk->first_piece = (uint32_t)grid->piece_count;
    }
    grid->pieces[grid->piece_count++] = piece;
    chunk->pieces++;
    chunk->words += piece.words;
    chunk->blocks += blocks;
}

static void cut_region(struct grid *grid, size_t region, struct code_kind kind) {
    for (uint64_t at = 0; at < grid->regions[region].words; at += GRID_PIECE_WORDS) {
        uint64_t left = grid->regions[region].words - at;
        uint32_t words = left < GRID_PIECE_WORDS ? (uint32_t)left : GRID_PIECE_WORDS;

        place_piece(grid, (struct grid_piece){(uint32_t)region, words, at}, kind);
    }
}

/* Regions of the kind that the first region not placed yet has; returns how many were placed. A
 * state has a handful of kinds, so going through all regions for each is cheap. */
static size_t cut_kind(struct grid *grid, bool *placed, size_t first) {
    const struct code_kind kind = kind_of_region(grid, first);
    size_t count = 0;

    for (size_t i = first; i < grid->region_count; i++) {
        if (placed[i] || !same_kind(kind_of_region(grid, i), kind))
            continue;
        cut_region(grid, i, kind);
        placed[i] = true;
        count++;
    }
    return count;
}

static enum ulp_status count_pieces(struct grid *grid, size_t *ret_pieces) {
    uint64_t pieces = 0;

    for (size_t i = 0; i < grid->region_count; i++) {
        uint64_t words = grid->regions[i].words;

        pieces += words / GRID_PIECE_WORDS + (words % GRID_PIECE_WORDS != 0);
        grid->words += words;
        if (pieces > LIMIT_PIECES || grid->words < words)
            return fail(ULP_E_LIMIT, "more than %u pieces of 2^24 elements", LIMIT_PIECES);
    }
    *ret_pieces = (size_t)pieces;
    return ULP_OK;
}

static enum ulp_status cut(struct grid *grid) {
    size_t pieces = 0, left = grid->region_count;
    bool *placed = NULL;
    enum ulp_status status = count_pieces(grid, &pieces);

    if (!status)
        status = mem_zeroed(pieces, sizeof *grid->pieces, &grid->pieces);
    if (!status)
        status = mem_zeroed(pieces, sizeof *grid->chunks, &grid->chunks);
    if (!status)
        status = mem_zeroed(left, sizeof *placed, &placed);
    for (size_t first = 0; !status && left; first++) {
        if (!placed[first])
            left -= cut_kind(grid, placed, first);
    }
    mem_free(placed);
    return status;
}

enum ulp_status grid_make(const struct ulp_tensor *tensors, size_t count,
                          const struct ulp_region *regions, size_t region_count,
                          struct grid *ret_grid) {
    struct grid grid = {.tensors = tensors, .tensor_count = count};
    enum ulp_status status =
        region_count ? take_regions(&grid, regions, region_count) : whole_tensors(&grid);

    if (!status)
        status = cut(&grid);
    if (status) {
        grid_release(&grid);
        return status;
    }
    *ret_grid = grid;
    return ULP_OK;
}

void grid_release(struct grid *grid) {
    mem_free(grid->regions);
    mem_free(grid->pieces);
    mem_free(grid->chunks);
    *grid = (struct grid){0};
}

enum ulp_status grid_first_pieces(const struct grid *grid, size_t **ret_first) {
    size_t *first = NULL;
    enum ulp_status status = mem_zeroed(grid->tensor_count, sizeof *first, &first);

    if (status)
        return status;
    for (size_t i = grid->piece_count; i-- > 0;)
        first[piece_region(grid, i)->tensor] = i;
    *ret_first = first;
    return ULP_OK;
}

/* ---- regions of one grid among those of another ---- */

/* Held regions are sorted, so the one that begins like `box` is found by halving. */
static const struct grid_region *region_like(const struct grid *held,
                                             const struct grid_region *wanted) {
    size_t low = 0, high = held->region_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (in_order(&held->regions[middle], wanted))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == held->region_count || in_order(wanted, &held->regions[low]) ||
        held->regions[low].box.rows != wanted->box.rows ||
        held->regions[low].box.columns != wanted->box.columns)
        return NULL;
    return &held->regions[low];
}

static enum ulp_status first_piece_of_regions(const struct grid *grid, size_t **ret_first) {
    size_t *first = NULL;
    enum ulp_status status = mem_zeroed(grid->region_count, sizeof *first, &first);

    if (status)
        return status;
    for (size_t i = grid->piece_count; i-- > 0;)
        first[grid->pieces[i].region] = i;
    *ret_first = first;
    return ULP_OK;
}

enum ulp_status grid_find_regions(const struct grid *held, const struct grid *part,
                                  size_t **ret_first) {
    size_t *first_held = NULL, *first = NULL;
    enum ulp_status status = first_piece_of_regions(held, &first_held);

    if (!status)
        status = mem_zeroed(part->region_count, sizeof *first, &first);
    for (size_t i = 0; !status && i < part->region_count; i++) {
        const struct grid_region *found = region_like(held, &part->regions[i]);

        if (found)
            first[i] = first_held[found - held->regions];
        else
            status =
                bad_region(&part->regions[i].box, "not one of the regions that the weights hold");
    }
    mem_free(first_held);
    if (status) {
        mem_free(first);
        return status;
    }
    *ret_first = first;
    return ULP_OK;
}

/* ---- blocks ---- */

/* Starts in front of the first block. */
struct block_walk block_walk_start(const struct grid *grid, size_t chunk) {
    return (struct block_walk){.grid = grid,
                               .chunk = &grid->chunks[chunk],
                               .index = SIZE_MAX,
                               .piece = grid->chunks[chunk].first_piece};
}

bool block_walk_next(struct block_walk *walk) {
    const struct grid_piece *piece = &walk->grid->pieces[walk->piece];
    uint32_t left;

    walk->first += walk->words;
    if (walk->index != SIZE_MAX && walk->first == piece->words) {
        walk->first = 0;
        walk->piece++;
    }
    walk->index++;
    if (walk->index == walk->chunk->blocks)
        return false;
    left = walk->grid->pieces[walk->piece].words - walk->first;
    walk->words = left < CODE_BLOCK_MAX ? left : CODE_BLOCK_MAX;
    return true;
}
