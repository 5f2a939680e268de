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

    *output = (struct patch_output){.sink = sink, .table = *table, .failed = SIZE_MAX};
    *table = (struct table){0};
    pthread_mutex_init(&output->lock, NULL);
    pthread_cond_init(&output->turn, NULL);
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

/* The lowest-numbered failure is the one that is reported, so only chunks behind it give up: one in front of
 * it goes on and may have something worse to say. */
enum ulp_status output_chunk(struct patch_output *output, size_t chunk, const void *data,
                             size_t bytes, uint64_t changes) {
    struct table_chunk *entry = &output->table.chunks[chunk];
    enum ulp_status status = ULP_OK;

    entry->bytes = changes ? bytes : 0;
    entry->changes = changes;
    entry->checksum = changes ? patch_checksum(data, bytes) : 0;
    pthread_mutex_lock(&output->lock);
    while (output->next != chunk && output->failed > chunk)
        pthread_cond_wait(&output->turn, &output->lock);
    if (output->failed < chunk)
        status = fail(ULP_E_CANCELLED, "another chunk failed");
    pthread_mutex_unlock(&output->lock);
    if (!status && entry->bytes)
        status = put(output, data, bytes);
    if (status)
        return status;
    pthread_mutex_lock(&output->lock);
    output->table.changes += changes;
    output->next++;
    pthread_cond_broadcast(&output->turn);
    pthread_mutex_unlock(&output->lock);
    return ULP_OK;
}

void output_fail(struct patch_output *output, size_t chunk) {
    pthread_mutex_lock(&output->lock);
    output->failed = chunk < output->failed ? chunk : output->failed;
    pthread_cond_broadcast(&output->turn);
    pthread_mutex_unlock(&output->lock);
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
    pthread_mutex_destroy(&output->lock);
    pthread_cond_destroy(&output->turn);
}
