// SPDX-License-Identifier: Apache-2.0
/*
 * A patch being written: chunks come from several threads and go out in order, then the table. A
 * thread waits for its turn with one chunk in hand, so memory does not grow with the patch.
 */
#ifndef PATCH_OUTPUT_H
#define PATCH_OUTPUT_H

#include "base/lock.h"
#include "patch/table.h"

struct patch_output {
    const struct ulp_sink *sink;
    struct table table; /* chunks and sums are filled in by whoever makes them */
    uint64_t bytes;     /* written so far */
    uint64_t write_ns;

    struct lock lock;   /* guards what follows */
    size_t next;        /* chunk to be written */
    size_t failed_from; /* the first chunk that failed */
};

/* Writes the header. The output takes over `table`, whose grid is made, also when it fails. */
enum ulp_status output_begin(const struct ulp_sink *sink, struct table *table,
                             struct patch_output *output);

/* Waits for the chunk's turn, writes it and notes its length and checksum. Every chunk must come,
 * in ascending order of starting, or output_fail() must. No bytes: nothing changed. */
enum ulp_status output_chunk(struct patch_output *output, size_t chunk, const void *data,
                             size_t bytes, uint64_t changes);

/* The same for who knows the checksum of the bytes already. */
enum ulp_status output_summed_chunk(struct patch_output *output, size_t chunk, const void *data,
                                    size_t bytes, uint64_t changes, uint64_t checksum);
void output_fail(struct patch_output *output, size_t chunk);

/* Writes table and trailer. */
enum ulp_status output_end(struct patch_output *output);
void output_release(struct patch_output *output);

#endif
