// SPDX-License-Identifier: Apache-2.0
/*
 * The patch file, apart from its chunks: header, table of contents, trailer. docs/format/patch.md
 * describes every byte.
 *
 *     header | chunk | chunk | ... | table | trailer
 *
 * The table comes last, so that a patch can be written while it is being made.
 */
#ifndef PATCH_TABLE_H
#define PATCH_TABLE_H

#include "base/arena.h"
#include "base/cursor.h"
#include "patch/grid.h"

#define PATCH_MAGIC "ulpatch"
#define PATCH_END_MAGIC "ulpe"
#define PATCH_VERSION 1u
#define PATCH_HEADER_BYTES 8u
#define PATCH_TRAILER_BYTES 16u

struct table_chunk {
    uint64_t offset; /* in the file; follows from the lengths */
    uint64_t bytes;  /* 0: nothing changed in it */
    uint64_t changes;
    uint64_t checksum;
};

/* Zeroed means none. A partial patch (of regions) has no child root. */
struct table {
    bool history;
    struct ulp_root parent, child;
    struct ulp_root before; /* the parent's own parent, with history */
    struct arena arena;
    const struct ulp_tensor *tensors; /* without data */
    size_t tensor_count;
    struct grid grid;
    struct table_chunk *chunks;
    struct ulp_sum *sums; /* of the pieces, afterwards */
    uint64_t changes;     /* of all chunks */
};

void table_release(struct table *table);

void header_write(uint8_t header[PATCH_HEADER_BYTES]);
enum ulp_status header_check(const char *what, const uint8_t header[PATCH_HEADER_BYTES]);

/* Table and trailer. */
enum ulp_status table_write(const struct table *table, struct buffer *out);

/* What a trailer says. `file_bytes` is how long the file is. */
struct trailer {
    uint64_t table_offset, table_bytes;
    uint64_t checksum;
};
enum ulp_status trailer_read(const char *what, const uint8_t bytes[PATCH_TRAILER_BYTES],
                             uint64_t file_bytes, struct trailer *ret_trailer);

/* Checks everything: that the table is the one that was written, canonical, and that its sums give
 * the child root. */
enum ulp_status table_read(const char *what, const struct trailer *trailer, const uint8_t *bytes,
                           struct table *ret_table);

/* The same but for the checksum and the child root, which no damage gets past. */
enum ulp_status table_parse(const char *what, const struct trailer *trailer, const uint8_t *bytes,
                            struct table *ret_table);

/* The first lane of the keyed sum of these bytes. */
uint64_t patch_checksum(const void *data, size_t bytes);

/* The root that the sums of a whole state's pieces give. */
enum ulp_status table_root(const struct grid *grid, const struct ulp_sum *sums,
                           struct ulp_root *ret_root);

#endif
