// SPDX-License-Identifier: Apache-2.0
/* An opened patch: its table, and its chunks when they are asked for. */
#ifndef PATCH_PATCH_H
#define PATCH_PATCH_H

#include "base/file.h"
#include "patch/table.h"
#include "patch/workers.h"

struct ulp_patch {
    struct ulp_source source;
    struct file_map map; /* of a file */
    const uint8_t *data; /* all of it, where it is in memory; else NULL */
    char *name;          /* for messages */
    struct table table;
};

enum ulp_status patch_open(const char *path, struct ulp_patch **ret_patch);
enum ulp_status patch_open_memory(const void *data, size_t bytes, struct ulp_patch **ret_patch);
enum ulp_status patch_open_source(const struct ulp_source *source, struct ulp_patch **ret_patch);
void patch_free(struct ulp_patch *patch);

/* Fetches a chunk that has bytes, checks and opens it; the bytes may be the worker's. */
enum ulp_status patch_chunk(const struct ulp_patch *patch, size_t chunk, struct worker *worker,
                            struct code_segment **ret_segment);

/* The same for who decodes elsewhere: the bytes are copied to `copy`, of which the segment, without
 * tables, is then made. */
enum ulp_status patch_chunk_parse(const struct ulp_patch *patch, size_t chunk, uint8_t *copy,
                                  struct worker *worker, struct code_segment **ret_segment);

/* The bytes of a chunk, checked. */
enum ulp_status patch_chunk_bytes(const struct ulp_patch *patch, size_t chunk,
                                  struct worker *worker, const uint8_t **ret_bytes);

enum ulp_status patch_verify(const struct ulp_patch *patch, struct ulp_pool *pool,
                             const struct ulp_progress *progress);

#endif
