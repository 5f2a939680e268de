// SPDX-License-Identifier: Apache-2.0
/*
 * The table of a patch from any bytes, under a trailer that fits them: the first byte says how long
 * the chunks in front of it are. What is accepted is canonical, its grid covers what it says, and
 * its sums give its child.
 */
#include "fuzz/target.h"
#include "patch/table.h"

#include <string.h>

/* The chunks of the grid are made of its pieces, in order, and so are their blocks. */
static void check_grid(const struct table *table) {
    const struct grid *grid = &table->grid;
    size_t piece = 0;
    uint64_t words = 0;

    for (size_t i = 0; i < grid->chunk_count; i++) {
        const struct grid_chunk *chunk = &grid->chunks[i];
        uint32_t in_chunk = 0;

        MUST(chunk->first_piece == piece && chunk->pieces && chunk->words <= CODE_SEGMENT_MAX);
        MUST(chunk->blocks <= CODE_BLOCKS_MAX && table->chunks[i].changes <= chunk->words);
        MUST(!table->chunks[i].bytes == !table->chunks[i].changes);
        for (uint32_t k = 0; k < chunk->pieces; k++, piece++) {
            const struct grid_piece *of = &grid->pieces[piece];

            MUST(of->words && of->first + of->words <= grid->regions[of->region].words);
            in_chunk += of->words;
        }
        MUST(in_chunk == chunk->words);
        words += in_chunk;
    }
    MUST(piece == grid->piece_count && words == grid->words);
}

static void check_again(const struct table *table, const uint8_t *bytes, size_t count) {
    struct buffer again = BUFFER(1 << 20);

    MUST(!table_write(table, &again));
    MUST(again.used == count + PATCH_TRAILER_BYTES && !memcmp(again.data, bytes, count));
    buffer_release(&again);
}

static bool is_refusal(enum ulp_status status) {
    return status == ULP_E_TABLE || status == ULP_E_LIMIT || status == ULP_E_REGIONS ||
           status == ULP_E_LAYOUT || status == ULP_E_NAME || status == ULP_E_UTF8 ||
           status == ULP_E_SIZE;
}

/* A fuzzer does not find a SHA-256, so the right child is put into its place. Then nothing is left
 * that could be wrong. */
static void check_proved(const struct table *table, struct trailer trailer, uint8_t *bytes) {
    struct table proved = {0};
    struct ulp_root root;

    if (table->grid.whole) {
        MUST(!table_root(&table->grid, table->sums, &root));
        memcpy(bytes + 1 + ULP_ROOT_BYTES, root.bytes, ULP_ROOT_BYTES);
    }
    trailer.checksum = patch_checksum(bytes, (size_t)trailer.table_bytes);
    MUST(!table_read("fuzz", &trailer, bytes, &proved));
    MUST(proved.grid.chunk_count == table->grid.chunk_count && proved.changes == table->changes);
    table_release(&proved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct trailer trailer = {0};
    struct table table = {0};
    uint8_t *bytes;
    enum ulp_status status;

    if (!size)
        return 0;
    bytes = malloc(size);
    MUST(bytes);
    memcpy(bytes, data + 1, size - 1);
    trailer.table_bytes = size - 1;
    trailer.table_offset = PATCH_HEADER_BYTES + data[0];
    status = table_parse("fuzz", &trailer, bytes, &table);
    MUST(!status || is_refusal(status));
    if (!status) {
        check_grid(&table);
        check_again(&table, bytes, size - 1);
        check_proved(&table, trailer, bytes);
    }
    table_release(&table);
    free(bytes);
    return 0;
}
