// SPDX-License-Identifier: Apache-2.0
#include "patch/patch.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "code/segment.h"

#include <string.h>

#define PATCH_BYTES_MIN (PATCH_HEADER_BYTES + PATCH_TRAILER_BYTES)

/* `bytes` bytes at `offset`: in place where the patch is in memory, else fetched into `into`. */
static enum ulp_status fetch(const struct ulp_patch *patch, uint64_t offset, size_t bytes,
                             struct buffer *into, const uint8_t **ret_bytes) {
    enum ulp_status status;

    if (patch->data) {
        *ret_bytes = patch->data + offset;
        return ULP_OK;
    }
    buffer_clear(into);
    status = buffer_reserve(into, bytes);
    if (!status)
        status = patch->source.read(patch->source.user, offset, into->data, bytes);
    if (!status)
        *ret_bytes = into->data;
    return status;
}

static enum ulp_status read_table(struct ulp_patch *patch) {
    struct buffer bytes = BUFFER((size_t)LIMIT_TABLE_BYTES);
    const uint64_t total = patch->source.bytes;
    const uint8_t *at = NULL;
    struct trailer trailer = {0};
    enum ulp_status status;

    if (total < PATCH_BYTES_MIN)
        return fail(ULP_E_TRUNCATED, "%s has %llu bytes; the shortest patch has more",
                    quote(patch->name).text, (unsigned long long)total);
    status = fetch(patch, 0, PATCH_HEADER_BYTES, &bytes, &at);
    if (!status)
        status = header_check(patch->name, at);
    if (!status)
        status = fetch(patch, total - PATCH_TRAILER_BYTES, PATCH_TRAILER_BYTES, &bytes, &at);
    if (!status)
        status = trailer_read(patch->name, at, total, &trailer);
    if (!status)
        status = fetch(patch, trailer.table_offset, (size_t)trailer.table_bytes, &bytes, &at);
    if (!status)
        status = table_read(patch->name, &trailer, at, &patch->table);
    buffer_release(&bytes);
    return status;
}

/* Takes over `map`. */
static enum ulp_status open_patch(const char *name, const struct ulp_source *source,
                                  struct file_map *map, const void *data,
                                  struct ulp_patch **ret_patch) {
    struct ulp_patch *patch = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *patch, &patch);

    if (status) {
        file_map_release(map);
        return status;
    }
    patch->source = *source;
    patch->map = *map;
    patch->data = data;
    status = mem_copy_text(name, &patch->name);
    if (!status)
        status = read_table(patch);
    if (status) {
        patch_free(patch);
        return status;
    }
    *ret_patch = patch;
    return ULP_OK;
}

enum ulp_status patch_open(const char *path, struct ulp_patch **ret_patch) {
    struct ulp_source source = {0};
    struct file_map map = {0};
    enum ulp_status status = file_map_open(path, FILE_FOLLOW_LINKS, &map);

    source.bytes = map.bytes;
    return status ? status : open_patch(path, &source, &map, map.data, ret_patch);
}

enum ulp_status patch_open_memory(const void *data, size_t bytes, struct ulp_patch **ret_patch) {
    struct ulp_source source = {.bytes = bytes};
    struct file_map none = {0};

    return open_patch("patch in memory", &source, &none, data, ret_patch);
}

enum ulp_status patch_open_source(const struct ulp_source *source, struct ulp_patch **ret_patch) {
    struct file_map none = {0};

    return open_patch("patch", source, &none, NULL, ret_patch);
}

void patch_free(struct ulp_patch *patch) {
    if (!patch)
        return;
    table_release(&patch->table);
    file_map_release(&patch->map);
    mem_free(patch->name);
    mem_free(patch);
}

enum ulp_status patch_chunk_bytes(const struct ulp_patch *patch, size_t chunk,
                                  struct worker *worker, const uint8_t **ret_bytes) {
    const struct table_chunk *entry = &patch->table.chunks[chunk];
    const uint8_t *bytes = NULL;
    enum ulp_status status;

    status = fetch(patch, entry->offset, (size_t)entry->bytes, &worker->bytes, &bytes);
    if (!status && patch_checksum(bytes, (size_t)entry->bytes) != entry->checksum)
        status = fail(ULP_E_CHECKSUM, "%s: the bytes of chunk %zu are not those that were written",
                      quote(patch->name).text, chunk);
    if (!status)
        *ret_bytes = bytes;
    return status;
}

/* More blocks with changes than the table says would be noticed later; history not announced, now.
 * */
static enum ulp_status check_segment(const struct ulp_patch *patch, size_t chunk,
                                     const struct code_segment *segment) {
    uint64_t changes = 0;

    if (code_needs_history(segment) && !patch->table.history)
        return fail(ULP_E_TABLE, "%s: chunk %zu needs history, which its table does not say",
                    quote(patch->name).text, chunk);
    for (size_t b = 0; b < patch->table.grid.chunks[chunk].blocks; b++)
        changes += code_changes(segment, b);
    if (code_coder_of(segment) != CODE_DENSE && changes != patch->table.chunks[chunk].changes)
        return fail(ULP_E_TABLE, "%s: chunk %zu has %llu changes, but its table says %llu",
                    quote(patch->name).text, chunk, (unsigned long long)changes,
                    (unsigned long long)patch->table.chunks[chunk].changes);
    return ULP_OK;
}

/* code_open() or code_parse() */
typedef enum ulp_status (*open_fn)(struct code_kind kind, const uint32_t *elements, size_t count,
                                   const uint8_t *bytes, size_t byte_count,
                                   struct code_segment **ret_segment);

static enum ulp_status open_segment(const struct ulp_patch *patch, size_t chunk,
                                    const uint8_t *bytes, struct worker *worker, open_fn open,
                                    struct code_segment **ret_segment) {
    const struct grid *grid = &patch->table.grid;
    struct block_walk block = block_walk_start(grid, chunk);
    struct code_segment *segment = NULL;
    enum ulp_status status = worker_blocks(worker, grid->chunks[chunk].blocks);

    while (!status && block_walk_next(&block))
        worker->sizes[block.index] = block.words;
    if (!status)
        status = open(grid->chunks[chunk].kind, worker->sizes, grid->chunks[chunk].blocks, bytes,
                      (size_t)patch->table.chunks[chunk].bytes, &segment);
    if (!status)
        status = check_segment(patch, chunk, segment);
    if (status) {
        code_close(segment);
        return status;
    }
    *ret_segment = segment;
    return ULP_OK;
}

enum ulp_status patch_chunk(const struct ulp_patch *patch, size_t chunk, struct worker *worker,
                            struct code_segment **ret_segment) {
    const uint8_t *bytes = NULL;
    enum ulp_status status = patch_chunk_bytes(patch, chunk, worker, &bytes);

    if (!status)
        status = open_segment(patch, chunk, bytes, worker, code_open, ret_segment);
    return status;
}

enum ulp_status patch_chunk_parse(const struct ulp_patch *patch, size_t chunk, uint8_t *copy,
                                  struct worker *worker, struct code_segment **ret_segment) {
    const uint8_t *bytes = NULL;
    enum ulp_status status = patch_chunk_bytes(patch, chunk, worker, &bytes);

    if (!status) {
        memcpy(copy, bytes, (size_t)patch->table.chunks[chunk].bytes);
        status = open_segment(patch, chunk, copy, worker, code_parse, ret_segment);
    }
    return status;
}

/* ---- without the weights ---- */

struct verify_job {
    const struct ulp_patch *patch;
    struct workers *workers;
};

static enum ulp_status verify_chunk(void *user, uint64_t chunk) {
    const struct verify_job *job = user;
    const size_t blocks = job->patch->table.grid.chunks[chunk].blocks;
    struct code_segment *segment = NULL;
    struct worker *worker = NULL;
    enum ulp_status status;

    if (!job->patch->table.chunks[chunk].bytes)
        return ULP_OK;
    status = workers_take(job->workers, job->patch->table.grid.chunks[chunk].words, &worker);
    if (!status)
        status = patch_chunk(job->patch, (size_t)chunk, worker, &segment);
    for (size_t b = 0; !status && b < blocks; b++)
        status = code_each_size(segment, worker->scratch, b, NULL, NULL);
    code_close(segment);
    workers_give(job->workers, worker);
    return status;
}

enum ulp_status patch_verify(const struct ulp_patch *patch, struct ulp_pool *pool,
                             const struct ulp_progress *progress) {
    struct verify_job job = {.patch = patch};
    enum ulp_status status = workers_new(&job.workers);

    if (!status)
        status = ulp_pool_run(pool, patch->table.grid.chunk_count, verify_chunk, &job, progress);
    workers_free(job.workers);
    return status;
}
