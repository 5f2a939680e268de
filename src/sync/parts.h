// SPDX-License-Identifier: Apache-2.0
/* Bytes that are named by their SHA-256: what was fetched is what was meant, or it is refused. */
#ifndef SYNC_PARTS_H
#define SYNC_PARTS_H

#include "base/buffer.h"
#include "chain/record.h"
#include "store/store.h"

/* The most bytes of a patch in one part. */
#define PART_BYTES ((size_t)64 << 20)

/* Stores bytes as a part; what is there already is not sent again. Adds to *stored what was sent.
 * */
enum ulp_status part_put(struct ulp_store *store, const char *run, const void *data, size_t bytes,
                         struct part *ret_part, uint64_t *stored);

/* Appends the part's bytes. ULP_E_PART if it is missing or another. */
enum ulp_status part_get(struct ulp_store *store, const char *run, const struct part *part,
                         struct buffer *into);

/* The same into a file that appears complete or not at all. */
enum ulp_status part_get_file(struct ulp_store *store, const char *run, const struct part *part,
                              const char *path);

/* The same, piece by piece, without keeping it; with NULL for `fn` it is only verified. */
typedef enum ulp_status (*part_piece)(void *user, uint64_t offset, const void *data, size_t bytes);
enum ulp_status part_visit(struct ulp_store *store, const char *run, const struct part *part,
                           part_piece fn, void *user);

#endif
