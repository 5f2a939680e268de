// SPDX-License-Identifier: Apache-2.0
#include "patch/journal.h"

#include "base/endian.h"
#include "base/quote.h"

#include <string.h>

static const char magic[8] = "ulpjrnl";

/* magic, parent, child, number of records */
#define HEADER_BYTES (8u + 2 * ULP_ROOT_BYTES + 8u)

/* chunk, block, count, nothing; then positions and values, padded to a multiple of 8 */
#define RECORD_BYTES 16u

#define FLUSH_BYTES (1u << 20)

static size_t record_bytes(uint32_t count, unsigned width) {
    size_t bytes = RECORD_BYTES + (size_t)count * (sizeof(uint32_t) + width);

    return (bytes + 7) / 8 * 8;
}

/* In the machine's own order, as the arrays are. */
static uint32_t load_u32(const uint8_t *from) {
    uint32_t value;

    memcpy(&value, from, sizeof value);
    return value;
}

/* ---- writing ---- */

struct journal_writer {
    struct file_writer file;
    struct buffer pending;
    uint64_t written, records;
};

static enum ulp_status flush(struct journal_writer *writer) {
    enum ulp_status status =
        file_writer_put(&writer->file, writer->written, writer->pending.data, writer->pending.used);

    writer->written += writer->pending.used;
    buffer_clear(&writer->pending);
    return status;
}

static enum ulp_status write_record(void *user, const struct staged_block *staged) {
    struct journal_writer *writer = user;
    const struct block_walk *block = &staged->block;
    const unsigned width = block->chunk->kind.width;
    const size_t before = writer->pending.used;
    const uint32_t head[4] = {(uint32_t)(block->chunk - block->grid->chunks),
                              (uint32_t)block->index, staged->count, 0};
    enum ulp_status status = buffer_append(&writer->pending, head, sizeof head);

    if (!status)
        status = buffer_append(&writer->pending, staged->positions,
                               staged->count * sizeof *staged->positions);
    if (!status)
        status = buffer_append(&writer->pending, staged->values, (size_t)staged->count * width);
    if (!status)
        status =
            buffer_append_fill(&writer->pending, 0,
                               before + record_bytes(staged->count, width) - writer->pending.used);
    writer->records++;
    if (!status && writer->pending.used >= FLUSH_BYTES)
        status = flush(writer);
    return status;
}

enum ulp_status journal_write(const char *path, const struct ulp_apply *apply) {
    struct journal_writer writer = {.pending = BUFFER((size_t)1 << 32), .written = HEADER_BYTES};
    uint8_t header[HEADER_BYTES];
    enum ulp_status status = file_writer_open(path, 0, &writer.file);

    if (!status)
        status = apply_each_block(apply, write_record, &writer);
    if (!status)
        status = flush(&writer);
    if (!status) {
        memcpy(header, magic, sizeof magic);
        memcpy(header + 8, apply->report.parent.bytes, ULP_ROOT_BYTES);
        memcpy(header + 8 + ULP_ROOT_BYTES, apply->report.child.bytes, ULP_ROOT_BYTES);
        store_le64(header + 8 + 2 * ULP_ROOT_BYTES, writer.records);
        status = file_writer_put(&writer.file, 0, header, sizeof header);
    }
    if (!status)
        status = file_writer_commit(&writer.file, ULP_COMMIT_NEW);
    file_writer_release(&writer.file);
    buffer_release(&writer.pending);
    return status;
}

/* ---- reading ---- */

enum ulp_status journal_parse(const char *what, struct file_map *map, struct journal *ret_journal) {
    struct journal journal = {.map = *map};

    *map = (struct file_map){0};
    if (journal.map.bytes < HEADER_BYTES || memcmp(journal.map.data, magic, sizeof magic) != 0) {
        journal_release(&journal);
        return fail(ULP_E_JOURNAL, "%s is not a journal of this version", quote(what).text);
    }
    memcpy(journal.parent.bytes, journal.map.data + 8, ULP_ROOT_BYTES);
    memcpy(journal.child.bytes, journal.map.data + 8 + ULP_ROOT_BYTES, ULP_ROOT_BYTES);
    journal.records = load_le64(journal.map.data + 8 + 2 * ULP_ROOT_BYTES);
    *ret_journal = journal;
    return ULP_OK;
}

enum ulp_status journal_open(const char *path, struct journal *ret_journal) {
    struct file_map map = {0};
    enum ulp_status status = file_map_open(path, FILE_REFUSE_LINKS, &map);

    return status ? status : journal_parse(path, &map, ret_journal);
}

void journal_release(struct journal *journal) {
    file_map_release(&journal->map);
    *journal = (struct journal){0};
}

static enum ulp_status damaged(void) {
    return fail(ULP_E_JOURNAL, "the journal does not fit this model; restore the model from "
                               "elsewhere, then remove the journal");
}

static bool positions_fit(const uint32_t *positions, uint32_t count, uint32_t words) {
    for (uint32_t i = 0; i < count; i++) {
        if (positions[i] >= words || (i && positions[i] <= positions[i - 1]))
            return false;
    }
    return true;
}

static bool seek_block(const struct grid *grid, uint32_t chunk, uint32_t index,
                       struct block_walk *block) {
    if (chunk >= grid->chunk_count || index >= grid->chunks[chunk].blocks)
        return false;
    *block = block_walk_start(grid, chunk);
    while (block_walk_next(block)) {
        if (block->index == index)
            return true;
    }
    return false;
}

/* Blocks come in order, so usually the next one is at hand. */
static bool next_block(const struct grid *grid, const uint8_t *record, struct block_walk *block) {
    uint32_t chunk = load_u32(record), index = load_u32(record + 4);

    if (block->chunk && block->chunk == grid->chunks + chunk && block->index != SIZE_MAX &&
        block->index + 1 == index && block_walk_next(block))
        return true;
    return seek_block(grid, chunk, index, block);
}

enum ulp_status journal_each_block(const struct journal *journal, const struct grid *grid,
                                   staged_block_fn fn, void *user) {
    const uint8_t *at = journal->map.data + HEADER_BYTES;
    const uint8_t *end = journal->map.data + journal->map.bytes;
    struct staged_block staged = {0};
    enum ulp_status status = ULP_OK;

    for (uint64_t i = 0; !status && i < journal->records; i++) {
        size_t bytes;
        unsigned width;

        if ((size_t)(end - at) < RECORD_BYTES || !next_block(grid, at, &staged.block))
            return damaged();
        width = staged.block.chunk->kind.width;
        staged.count = load_u32(at + 8);
        bytes = record_bytes(staged.count, width);
        staged.positions = (const uint32_t *)(const void *)(at + RECORD_BYTES);
        staged.values = (uint8_t *)(uintptr_t)(at + RECORD_BYTES) + 4 * (size_t)staged.count;
        if (staged.count > staged.block.words || bytes > (size_t)(end - at) ||
            !positions_fit(staged.positions, staged.count, staged.block.words))
            return damaged();
        status = fn(user, &staged);
        at += bytes;
    }
    return !status && at != end ? damaged() : status;
}
