// SPDX-License-Identifier: Apache-2.0
#include "patch/output.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"

static enum ulp_status put(struct patch_output *output, const void *data, size_t bytes) {
    uint64_t started = clock_monotonic_ns();
    enum ulp_status status = output->sink->write(output->sink->user, data, bytes);

    output->write_ns += clock_monotonic_ns() - started;
    output->bytes += bytes;
    return status;
}

enum ulp_status output_begin(const struct ulp_sink *sink, struct table *table,
                             struct patch_output *output) {
    uint8_t header[PATCH_HEADER_BYTES];
    enum ulp_status status;

    *output = (struct patch_output){.sink = sink, .table = *table, .failed_from = SIZE_MAX};
    *table = (struct table){0};
    lock_make(&output->lock);
    status = mem_zeroed(output->table.grid.chunk_count, sizeof *output->table.chunks,
                        &output->table.chunks);
    if (!status)
        status = mem_zeroed(output->table.grid.piece_count, sizeof *output->table.sums,
                            &output->table.sums);
    if (!status) {
        header_write(header);
        status = put(output, header, sizeof header);
    }
    return status;
}

/* The message of a failure is the failing thread's own; who only waited has nothing to add. It is
 * behind the chunk that failed, so its failure is not the lowest-numbered one; those in front still
 * go out. */
enum ulp_status output_summed_chunk(struct patch_output *output, size_t chunk, const void *data,
                                    size_t bytes, uint64_t changes, uint64_t checksum) {
    struct table_chunk *entry = &output->table.chunks[chunk];
    enum ulp_status status = ULP_OK;

    entry->bytes = changes ? bytes : 0;
    entry->changes = changes;
    entry->checksum = checksum;
    lock_take(&output->lock);
    while (output->next != chunk && chunk < output->failed_from)
        lock_wait(&output->lock);
    if (output->next != chunk)
        status = fail(ULP_E_CANCELLED, "another chunk failed");
    lock_give(&output->lock);
    if (!status && entry->bytes)
        status = put(output, data, bytes);
    if (status)
        return status;
    lock_take(&output->lock);
    output->table.changes += changes;
    output->next++;
    lock_wake(&output->lock);
    lock_give(&output->lock);
    return ULP_OK;
}

enum ulp_status output_chunk(struct patch_output *output, size_t chunk, const void *data,
                             size_t bytes, uint64_t changes) {
    return output_summed_chunk(output, chunk, data, bytes, changes,
                               changes ? patch_checksum(data, bytes) : 0);
}

void output_fail(struct patch_output *output, size_t chunk) {
    lock_take(&output->lock);
    if (chunk < output->failed_from)
        output->failed_from = chunk;
    lock_wake(&output->lock);
    lock_give(&output->lock);
}

enum ulp_status output_end(struct patch_output *output) {
    struct buffer table = BUFFER((size_t)LIMIT_TABLE_BYTES + PATCH_TRAILER_BYTES);
    enum ulp_status status = ULP_OK;

    if (output->table.grid.whole)
        status = table_root(&output->table.grid, output->table.sums, &output->table.child);
    if (!status)
        status = table_write(&output->table, &table);
    if (!status)
        status = put(output, table.data, table.used);
    buffer_release(&table);
    return status;
}

void output_release(struct patch_output *output) {
    table_release(&output->table);
    lock_destroy(&output->lock);
}
