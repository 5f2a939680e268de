// SPDX-License-Identifier: Apache-2.0
#include "patch/table.h"

#include "base/checked.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/word.h"
#include "digest/root.h"
#include "patch/layout.h"
#include "scan/digest_sum.h"

#include <string.h>

/* The first byte of the table. */
#define FLAG_HISTORY 1u
#define FLAG_REGIONS 2u

void table_release(struct table *table) {
    grid_release(&table->grid);
    mem_free(table->chunks);
    mem_free(table->sums);
    arena_release(&table->arena);
    *table = (struct table){0};
}

uint64_t patch_checksum(const void *data, size_t bytes) {
    struct ulp_sum sum = {{0, 0}};

    digest_add(data, bytes, 0, &sum);
    return sum.lane[0];
}

void header_write(uint8_t header[PATCH_HEADER_BYTES]) {
    memcpy(header, PATCH_MAGIC, PATCH_HEADER_BYTES - 1);
    header[PATCH_HEADER_BYTES - 1] = PATCH_VERSION;
}

enum ulp_status header_check(const char *what, const uint8_t header[PATCH_HEADER_BYTES]) {
    if (memcmp(header, PATCH_MAGIC, PATCH_HEADER_BYTES - 1) != 0)
        return fail(ULP_E_NOT_A_PATCH, "%s is not a patch", quote(what).text);
    if (header[PATCH_HEADER_BYTES - 1] != PATCH_VERSION)
        return fail(ULP_E_VERSION, "%s is a patch of version %u; this library reads version %u",
                    quote(what).text, header[PATCH_HEADER_BYTES - 1], PATCH_VERSION);
    return ULP_OK;
}

enum ulp_status table_root(const struct grid *grid, const struct ulp_sum *sums,
                           struct ulp_root *ret_root) {
    struct ulp_sum *totals = NULL;
    size_t *order = NULL;
    enum ulp_status status = mem_zeroed(grid->tensor_count, sizeof *totals, &totals);

    if (!status)
        status = mem_zeroed(grid->tensor_count, sizeof *order, &order);
    for (size_t i = 0; !status && i < grid->tensor_count; i++)
        order[i] = i;
    for (size_t i = 0; !status && i < grid->piece_count; i++) {
        struct ulp_sum *total = &totals[piece_region(grid, i)->tensor];

        total->lane[0] += sums[i].lane[0];
        total->lane[1] += sums[i].lane[1];
    }
    if (!status)
        status = root_of_sums(grid->tensors, order, grid->tensor_count, totals, ret_root);
    mem_free(order);
    mem_free(totals);
    return status;
}

/* ---- writing ---- */

static enum ulp_status put_regions(const struct grid *grid, struct buffer *out) {
    enum ulp_status status = put_varint(out, grid->region_count);

    for (size_t i = 0; !status && i < grid->region_count; i++) {
        const struct grid_region *region = &grid->regions[i];
        const uint64_t numbers[] = {region->tensor, region->box.row, region->box.rows,
                                    region->box.column, region->box.columns};

        for (size_t k = 0; !status && k < sizeof numbers / sizeof numbers[0]; k++)
            status = put_varint(out, numbers[k]);
    }
    return status;
}

static enum ulp_status put_chunk(const struct table_chunk *chunk, struct buffer *out) {
    enum ulp_status status = put_varint(out, chunk->bytes);

    if (status || !chunk->bytes)
        return status;
    status = put_varint(out, chunk->changes);
    return status ? status : put_u64(out, chunk->checksum);
}

static enum ulp_status put_body(const struct table *table, struct buffer *out) {
    const struct grid *grid = &table->grid;
    uint8_t flags =
        (uint8_t)((table->history ? FLAG_HISTORY : 0) | (grid->whole ? 0 : FLAG_REGIONS));
    enum ulp_status status = buffer_append(out, &flags, 1);

    if (!status)
        status = buffer_append(out, table->parent.bytes, ULP_ROOT_BYTES);
    if (!status && grid->whole)
        status = buffer_append(out, table->child.bytes, ULP_ROOT_BYTES);
    if (!status && table->history)
        status = buffer_append(out, table->before.bytes, ULP_ROOT_BYTES);
    if (!status)
        status = layout_write(table->tensors, table->tensor_count, out);
    if (!status && !grid->whole)
        status = put_regions(grid, out);
    for (size_t i = 0; !status && i < grid->chunk_count; i++)
        status = put_chunk(&table->chunks[i], out);
    for (size_t i = 0; !status && i < grid->piece_count; i++) {
        status = put_u64(out, table->sums[i].lane[0]);
        if (!status)
            status = put_u64(out, table->sums[i].lane[1]);
    }
    return status;
}

static enum ulp_status put_trailer(size_t table_from, struct buffer *out) {
    size_t bytes = out->used - table_from;
    uint8_t length[4] = {(uint8_t)bytes, (uint8_t)(bytes >> 8), (uint8_t)(bytes >> 16),
                         (uint8_t)(bytes >> 24)};
    enum ulp_status status = put_u64(out, patch_checksum(out->data + table_from, bytes));

    if (!status)
        status = buffer_append(out, length, sizeof length);
    return status ? status : buffer_append(out, PATCH_END_MAGIC, 4);
}

enum ulp_status table_write(const struct table *table, struct buffer *out) {
    size_t from = out->used;
    enum ulp_status status = put_body(table, out);

    if (!status && out->used - from > LIMIT_TABLE_BYTES)
        status = fail(ULP_E_LIMIT, "the table of the patch exceeds %u bytes", LIMIT_TABLE_BYTES);
    return status ? status : put_trailer(from, out);
}

/* ---- reading ---- */

enum ulp_status trailer_read(const char *what, const uint8_t bytes[PATCH_TRAILER_BYTES],
                             uint64_t file_bytes, struct trailer *ret_trailer) {
    struct trailer trailer = {.checksum = load_le64(bytes)};

    if (memcmp(bytes + 12, PATCH_END_MAGIC, 4) != 0)
        return fail(ULP_E_TRUNCATED, "%s does not end like a patch: it is cut short or damaged",
                    quote(what).text);
    trailer.table_bytes = load_le_partial(bytes + 8, 4);
    if (trailer.table_bytes > LIMIT_TABLE_BYTES)
        return fail(ULP_E_LIMIT, "%s: its table would have %llu bytes; the limit is %u",
                    quote(what).text, (unsigned long long)trailer.table_bytes, LIMIT_TABLE_BYTES);
    if (trailer.table_bytes > file_bytes - PATCH_HEADER_BYTES - PATCH_TRAILER_BYTES)
        return fail(ULP_E_TRUNCATED, "%s is shorter than its table", quote(what).text);
    trailer.table_offset = file_bytes - PATCH_TRAILER_BYTES - trailer.table_bytes;
    *ret_trailer = trailer;
    return ULP_OK;
}

static enum ulp_status malformed(const char *what, const char *how) {
    return fail(ULP_E_TABLE, "%s: its table is damaged: %s", quote(what).text, how);
}

static void read_root(struct cursor *cursor, struct ulp_root *root) {
    const uint8_t *bytes = cursor_bytes(cursor, ULP_ROOT_BYTES);

    if (bytes)
        memcpy(root->bytes, bytes, ULP_ROOT_BYTES);
}

/* Each region takes at least five bytes, so their number is bounded by what is there. */
static enum ulp_status read_regions(const char *what, struct cursor *cursor,
                                    const struct table *table, struct ulp_region **ret_regions,
                                    size_t *ret_count) {
    size_t count = (size_t)cursor_varint_upto(cursor, LIMIT_REGIONS);
    struct ulp_region *regions = NULL;
    enum ulp_status status;

    if (!count || count > (size_t)(cursor->end - cursor->at) / 5)
        return malformed(what, "the number of regions");
    status = mem_zeroed(count, sizeof *regions, &regions);
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t tensor = cursor_varint(cursor);

        if (tensor >= table->tensor_count) {
            status = malformed(what, "a region of no tensor");
            break;
        }
        regions[i].tensor = table->tensors[tensor].name;
        regions[i].row = cursor_varint(cursor);
        regions[i].rows = cursor_varint(cursor);
        regions[i].column = cursor_varint(cursor);
        regions[i].columns = cursor_varint(cursor);
    }
    if (status) {
        mem_free(regions);
        return status;
    }
    *ret_regions = regions;
    *ret_count = count;
    return ULP_OK;
}

/* At least so many pieces are announced. What is not inside of its tensor counts for nothing here,
 * and is refused by the grid. */
static uint64_t pieces_announced(const struct table *table, const struct ulp_region *regions,
                                 size_t region_count) {
    uint64_t pieces = 0, words;

    for (size_t i = 0; i < region_count; i++) {
        if (!mul_overflows(regions[i].rows, regions[i].columns, &words))
            pieces += words / GRID_PIECE_WORDS;
    }
    for (size_t i = 0; !region_count && i < table->tensor_count; i++)
        pieces +=
            table->tensors[i].bytes / word_bytes_of(table->tensors[i].bits) / GRID_PIECE_WORDS;
    return pieces;
}

static enum ulp_status read_grid(const char *what, struct cursor *cursor, bool partial,
                                 struct table *table) {
    struct ulp_tensor *tensors = NULL;
    struct ulp_region *regions = NULL;
    size_t region_count = 0;
    enum ulp_status status = layout_read(cursor, &table->arena, &tensors, &table->tensor_count);

    table->tensors = tensors;
    if (!status && partial)
        status = read_regions(what, cursor, table, &regions, &region_count);
    /* each piece has a sum in the table; looked at before memory is taken for the grid */
    if (!status && pieces_announced(table, regions, region_count) >
                       (uint64_t)(cursor->end - cursor->at) / sizeof(struct ulp_sum))
        status = malformed(what, "the sums of the pieces are not all there");
    if (!status)
        status = grid_make(tensors, table->tensor_count, regions, region_count, &table->grid);
    mem_free(regions);
    return status;
}

/* Far more than any coder makes of a chunk, and in proportion to it. */
static uint64_t chunk_bytes_max(const struct grid_chunk *chunk) {
    return UINT64_C(8) * chunk->words * chunk->kind.width + UINT64_C(256) * chunk->blocks + 65536;
}

/* A change costs something, and no chunk changes more than it has. */
static enum ulp_status read_chunks(const char *what, struct cursor *cursor, uint64_t table_offset,
                                   struct table *table) {
    uint64_t offset = PATCH_HEADER_BYTES;
    enum ulp_status status =
        mem_zeroed(table->grid.chunk_count, sizeof *table->chunks, &table->chunks);

    for (size_t i = 0; !status && i < table->grid.chunk_count; i++) {
        struct table_chunk *chunk = &table->chunks[i];

        chunk->offset = offset;
        chunk->bytes = cursor_varint(cursor);
        if (!chunk->bytes)
            continue;
        chunk->changes = cursor_varint(cursor);
        chunk->checksum = cursor_u64(cursor);
        table->changes += chunk->changes;
        if (cursor->failed || !chunk->changes || chunk->changes > table->grid.chunks[i].words)
            return malformed(what, "the number of changes of a chunk");
        if (chunk->bytes > chunk_bytes_max(&table->grid.chunks[i]) ||
            add_overflows(offset, chunk->bytes, &offset))
            return malformed(what, "the length of a chunk");
    }
    if (!status && offset != table_offset)
        status = malformed(what, "the chunks do not fill the file");
    return status;
}

static enum ulp_status read_sums(const char *what, struct cursor *cursor, struct table *table) {
    const size_t pieces = table->grid.piece_count;
    enum ulp_status status;

    if (cursor->failed || (size_t)(cursor->end - cursor->at) != pieces * 16)
        return malformed(what, "the sums of the pieces are not all there, or more than those");
    status = mem_zeroed(pieces, sizeof *table->sums, &table->sums);
    for (size_t i = 0; !status && i < pieces; i++) {
        table->sums[i].lane[0] = cursor_u64(cursor);
        table->sums[i].lane[1] = cursor_u64(cursor);
    }
    return status;
}

/* There is one way to write a table, so writing it again must give the same bytes. */
static enum ulp_status check_canonical(const char *what, const struct table *table,
                                       const uint8_t *bytes, size_t count) {
    struct buffer again = BUFFER((size_t)LIMIT_TABLE_BYTES + PATCH_TRAILER_BYTES);
    enum ulp_status status = put_body(table, &again);

    if (!status && (again.used != count || memcmp(again.data, bytes, count) != 0))
        status = malformed(what, "it is not in its canonical form");
    buffer_release(&again);
    return status;
}

static enum ulp_status check_child(const char *what, const struct table *table) {
    struct ulp_root root;
    enum ulp_status status = table_root(&table->grid, table->sums, &root);

    if (!status && memcmp(root.bytes, table->child.bytes, ULP_ROOT_BYTES) != 0)
        status = malformed(what, "the sums of its pieces do not give the root that it leads to");
    return status;
}

static enum ulp_status read_body(const char *what, struct cursor *cursor, uint64_t table_offset,
                                 struct table *table) {
    const uint8_t *flags = cursor_bytes(cursor, 1);
    bool partial;
    enum ulp_status status;

    if (!flags || *flags & ~(FLAG_HISTORY | FLAG_REGIONS))
        return malformed(what, "flags that are not known");
    table->history = *flags & FLAG_HISTORY;
    partial = *flags & FLAG_REGIONS;
    read_root(cursor, &table->parent);
    if (!partial)
        read_root(cursor, &table->child);
    if (table->history)
        read_root(cursor, &table->before);
    if (cursor->failed)
        return malformed(what, "it ends within the roots");
    if (table->history && partial) /* moves are known by the chunks of whole tensors alone */
        return malformed(what, "regions cannot be coded with history");
    status = read_grid(what, cursor, partial, table);
    if (!status)
        status = read_chunks(what, cursor, table_offset, table);
    return status ? status : read_sums(what, cursor, table);
}

enum ulp_status table_parse(const char *what, const struct trailer *trailer, const uint8_t *bytes,
                            struct table *ret_table) {
    const size_t count = (size_t)trailer->table_bytes;
    struct cursor cursor = {bytes, bytes + count, false};
    struct table table = {0};
    enum ulp_status status = read_body(what, &cursor, trailer->table_offset, &table);

    if (!status)
        status = check_canonical(what, &table, bytes, count);
    if (status) {
        table_release(&table);
        return status;
    }
    *ret_table = table;
    return ULP_OK;
}

enum ulp_status table_read(const char *what, const struct trailer *trailer, const uint8_t *bytes,
                           struct table *ret_table) {
    struct table table = {0};
    enum ulp_status status;

    if (patch_checksum(bytes, (size_t)trailer->table_bytes) != trailer->checksum)
        return fail(ULP_E_CHECKSUM, "%s: the bytes of its table are not those that were written",
                    quote(what).text);
    status = table_parse(what, trailer, bytes, &table);
    if (!status && table.grid.whole)
        status = check_child(what, &table);
    if (status) {
        table_release(&table);
        return status;
    }
    *ret_table = table;
    return ULP_OK;
}
