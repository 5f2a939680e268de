// SPDX-License-Identifier: Apache-2.0
/* How states are cut into pieces and chunks, and which regions are taken. No data is looked at. */
#include "tests/patch/state.h"

#include "base/limits.h"
#include "patch/grid.h"

#define PIECE ((uint64_t)GRID_PIECE_WORDS)

static struct ulp_tensor tensor_of(const char *name, const char *dtype, const uint64_t *shape,
                                   uint32_t rank) {
    struct ulp_tensor tensor = {.name = name, .dtype = dtype, .shape = shape, .rank = rank};

    assert_ok(ulp_tensor_measure(&tensor));
    return tensor;
}

/* Every word of every region is in one piece, every piece in one chunk, in order; kinds do not mix.
 * */
static void check_cut(const struct grid *grid) {
    uint64_t words = 0;
    size_t piece = 0;

    for (size_t c = 0; c < grid->chunk_count; c++) {
        const struct grid_chunk *chunk = &grid->chunks[c];
        uint32_t in_chunk = 0, blocks = 0;

        assert_int_equal(chunk->first_piece, piece);
        assert_true(chunk->pieces > 0);
        for (uint32_t i = 0; i < chunk->pieces; i++, piece++) {
            const struct grid_piece *here = &grid->pieces[piece];
            const struct ulp_tensor *tensor = piece_tensor(grid, piece);

            assert_true(here->words > 0 && here->words <= PIECE);
            assert_int_equal(code_kind_of(tensor->dtype, tensor->bits).width, chunk->kind.width);
            if (here->first) { /* goes on where the piece before it ends */
                assert_int_equal(here[-1].region, here->region);
                assert_int_equal(here[-1].first + here[-1].words, here->first);
                assert_int_equal(here[-1].words, PIECE);
            }
            in_chunk += here->words;
            blocks += (here->words + CODE_BLOCK_MAX - 1) / CODE_BLOCK_MAX;
        }
        assert_int_equal(chunk->words, in_chunk);
        assert_int_equal(chunk->blocks, blocks);
        assert_true(in_chunk <= CODE_SEGMENT_MAX && blocks <= CODE_BLOCKS_MAX);
        words += in_chunk;
    }
    assert_int_equal(piece, grid->piece_count);
    assert_int_equal(words, grid->words);
}

/* The blocks of a chunk follow each other and never cross a piece. */
static void check_walk(const struct grid *grid) {
    for (size_t c = 0; c < grid->chunk_count; c++) {
        struct block_walk block = block_walk_start(grid, c);
        size_t index = 0, piece = grid->chunks[c].first_piece;
        uint64_t at = 0, words = 0;

        while (block_walk_next(&block)) {
            assert_int_equal(block.index, index++);
            if (at == grid->pieces[piece].words) {
                piece++;
                at = 0;
            }
            assert_int_equal(block.piece, piece);
            assert_int_equal(block.first, at);
            at += block.words;
            assert_true(at <= grid->pieces[piece].words);
            assert_true(block.words == CODE_BLOCK_MAX || at == grid->pieces[piece].words);
            words += block.words;
        }
        assert_int_equal(index, grid->chunks[c].blocks);
        assert_int_equal(words, grid->chunks[c].words);
    }
}

static struct grid make_grid(const struct ulp_tensor *tensors, size_t count) {
    struct grid grid = {0};

    assert_ok(grid_make(tensors, count, NULL, 0, &grid));
    assert_true(grid.whole);
    check_cut(&grid);
    check_walk(&grid);
    return grid;
}

/* Pieces and chunks that one tensor of so many words is cut into. */
static void cut_of_one(uint64_t words, size_t pieces, size_t chunks) {
    const uint64_t shape[] = {words};
    struct ulp_tensor tensor = tensor_of("t", "BF16", shape, 1);
    struct grid grid = make_grid(&tensor, 1);

    assert_int_equal(grid.piece_count, pieces);
    assert_int_equal(grid.chunk_count, chunks);
    grid_release(&grid);
}

static void test_around_the_limits(void **unused) {
    (void)unused;
    cut_of_one(0, 0, 0);
    cut_of_one(1, 1, 1);
    for (int64_t d = -1; d <= 1; d++) {
        cut_of_one((uint64_t)((int64_t)CODE_BLOCK_MAX + d), 1, 1);
        cut_of_one((uint64_t)((int64_t)PIECE + d), d > 0 ? 2 : 1, d > 0 ? 2 : 1);
        cut_of_one((uint64_t)((int64_t)(3 * PIECE) + d), d > 0 ? 4 : 3, d > 0 ? 4 : 3);
    }
    cut_of_one(UINT64_C(1) << 40, 1 << 16, 1 << 16);
}

/* The end of one tensor and the next ones share a chunk, as far as they fit whole. */
static void test_small_tensors_fill_chunks(void **unused) {
    static const uint64_t big[] = {PIECE - 100}, small[] = {100}, one[] = {1};
    struct ulp_tensor tensors[] = {tensor_of("a", "BF16", big, 1), tensor_of("b", "BF16", small, 1),
                                   tensor_of("c", "BF16", one, 1), tensor_of("d", "BF16", big, 1)};
    struct grid grid = make_grid(tensors, COUNT(tensors));

    (void)unused;
    assert_int_equal(grid.chunk_count, 2);
    assert_int_equal(grid.chunks[0].pieces, 2);
    assert_int_equal(grid.chunks[0].words, PIECE);
    assert_int_equal(grid.chunks[1].pieces, 2);
    grid_release(&grid);
}

/* More of them than a chunk has blocks. */
static void test_many_tiny_tensors(void **unused) {
    enum { MANY = CODE_BLOCKS_MAX + 1000 };
    static const uint64_t shape[] = {3};
    struct ulp_tensor *tensors = calloc(MANY, sizeof *tensors);
    char(*names)[16] = calloc(MANY, sizeof *names);
    struct grid grid;

    (void)unused;
    assert_true(tensors && names);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "t%07u", i);
        tensors[i] = tensor_of(names[i], i % 3 ? "BF16" : "F32", shape, 1);
    }
    grid = make_grid(tensors, MANY);
    assert_int_equal(grid.chunk_count, 2);
    assert_int_equal(grid.chunks[0].kind.width, 4); /* the first tensor's kind comes first */
    assert_int_equal(grid.chunks[1].kind.width, 2);
    grid_release(&grid);
    for (unsigned i = 0; i < MANY; i++)
        tensors[i] = tensor_of(names[i], "BF16", shape, 1);
    grid = make_grid(tensors, MANY);
    assert_int_equal(grid.chunk_count, 2);
    assert_int_equal(grid.chunks[0].blocks, CODE_BLOCKS_MAX);
    grid_release(&grid);
    free(tensors);
    free(names);
}

/* Kinds are told apart by what the codec makes of them, not by the dtype. */
static void test_kinds_are_grouped(void **unused) {
    static const uint64_t shape[] = {64};
    static const char *const dtypes[] = {"BF16", "F16", "BF16", "I16", "U16", "F16", "F32", "I32"};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct ulp_tensor tensors[COUNT(dtypes)];
    struct grid grid;

    (void)unused;
    for (size_t i = 0; i < COUNT(dtypes); i++)
        tensors[i] = tensor_of(names[i], dtypes[i], shape, 1);
    grid = make_grid(tensors, COUNT(dtypes));
    assert_int_equal(grid.chunk_count, 5); /* BF16; F16; I16 and U16; F32; I32 */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(grid.chunks[i].pieces, 2);
    grid_release(&grid);
}

static void test_too_many_pieces(void **unused) {
    static const uint64_t shape[] = {((uint64_t)LIMIT_PIECES << 24) + 1};
    struct ulp_tensor tensor = tensor_of("t", "F8_E4M3", shape, 1);
    struct grid grid = {0};

    (void)unused;
    assert_fails(grid_make(&tensor, 1, NULL, 0, &grid), ULP_E_LIMIT, "pieces");
    assert_null(grid.pieces);
}

TEST_MAIN(test_around_the_limits, test_small_tensors_fill_chunks, test_many_tiny_tensors,
          test_kinds_are_grouped, test_too_many_pieces)
