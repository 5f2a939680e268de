// SPDX-License-Identifier: Apache-2.0
/*
 * How a state is cut up. Tensors are taken in name order, grouped by kind; each is cut into pieces
 * of up to 2^24 elements, and consecutive pieces of one kind fill chunks of up to 2^24. The grid
 * follows from names, dtypes, shapes and regions alone, so a patch need not describe it, and a
 * piece of a tensor is the same piece in every patch.
 *
 * Elements are counted in words of 1, 2, 4 or 8 bytes, as the dtype's width allows.
 */
#ifndef PATCH_GRID_H
#define PATCH_GRID_H

#include "base/status.h"
#include "code/code.h"

#include <stdbool.h>
#include <ulpsync/patch.h>

#define GRID_PIECE_WORDS CODE_SEGMENT_MAX

/* A region with what follows from its tensor. */
struct grid_region {
    struct ulp_region box;
    uint32_t tensor;
    uint64_t pitch; /* words from row to row of the tensor */
    uint64_t words; /* of the region */
};

struct grid_piece {
    uint32_t region;
    uint32_t words;
    uint64_t first; /* word of the region */
};

struct grid_chunk {
    struct code_kind kind;
    uint32_t first_piece, pieces;
    uint32_t words, blocks;
};

struct grid {
    const struct ulp_tensor *tensors; /* in name order */
    size_t tensor_count;
    bool whole; /* every region is a whole tensor */
    struct grid_region *regions;
    size_t region_count;
    struct grid_piece *pieces;
    size_t piece_count;
    struct grid_chunk *chunks;
    size_t chunk_count;
    uint64_t words;
};

/*
 * `tensors` are sorted by name and outlive the grid. Regions, unless there are none (then every
 * tensor is one), are sorted by tensor, row and column and must not overlap: ULP_E_REGIONS.
 */
enum ulp_status grid_make(const struct ulp_tensor *tensors, size_t count,
                          const struct ulp_region *regions, size_t region_count,
                          struct grid *ret_grid);
void grid_release(struct grid *grid);

/* A tensor as rows and columns: the last extent runs along a row. */
void grid_view(const struct ulp_tensor *tensor, uint64_t *ret_rows, uint64_t *ret_pitch);

/* Whether a region, which is inside of its tensor, starts and ends on words of 8 bytes. */
bool grid_on_words(const struct ulp_tensor *tensor, const struct ulp_region *box);

static inline const struct grid_region *piece_region(const struct grid *grid, size_t piece) {
    return &grid->regions[grid->pieces[piece].region];
}

/* Where the pieces of each tensor begin, in a grid of whole tensors. */
enum ulp_status grid_first_pieces(const struct grid *grid, size_t **ret_first);

/* Of each region of `part` the first piece in `held`, a grid of the same tensors; its other pieces
 * follow. ULP_E_REGIONS for a region that `held` has not, with just these bounds. */
enum ulp_status grid_find_regions(const struct grid *held, const struct grid *part,
                                  size_t **ret_first);

/* The same piece in `held`. */
static inline size_t held_piece(const size_t *first, const struct grid_piece *piece) {
    return first[piece->region] + (size_t)(piece->first / GRID_PIECE_WORDS);
}

static inline const struct ulp_tensor *piece_tensor(const struct grid *grid, size_t piece) {
    return &grid->tensors[piece_region(grid, piece)->tensor];
}

/* Goes through the blocks of a chunk, in order. */
struct block_walk {
    const struct grid *grid;
    const struct grid_chunk *chunk;
    size_t index;   /* of the block in the chunk */
    size_t piece;   /* of the grid */
    uint32_t first; /* word of the piece */
    uint32_t words;
};

struct block_walk block_walk_start(const struct grid *grid, size_t chunk);
bool block_walk_next(struct block_walk *walk);

#endif
