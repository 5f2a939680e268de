// SPDX-License-Identifier: Apache-2.0
/* Bytes that are named by their SHA-256: what was fetched is what was meant, or it is refused. */
#ifndef SYNC_PARTS_H
#define SYNC_PARTS_H

#include "base/spool.h"
#include "chain/record.h"
#include "store/store.h"

/* The most bytes of a patch in one part: it is in memory while it is sent. */
#define PART_BYTES ((size_t)16 << 20)

/* Bytes that are sent one behind the other. */
struct piece {
    const void *data;
    size_t bytes;
};

/* Stores bytes as a part in a folder. */
enum ulp_status part_put(struct ulp_store *store, const char *run, uint64_t folder,
                         const struct piece *pieces, size_t count, struct part *ret_part);

/* Appends the part's bytes to a spool. ULP_E_PART_MISSING, ULP_E_PART. */
enum ulp_status part_get(struct ulp_store *store, const char *run, const struct part *part,
                         struct spool *into);

/* The same into a file that appears complete or not at all. */
enum ulp_status part_get_file(struct ulp_store *store, const char *run, const struct part *part,
                              const char *path);

/* From one store to another; what is not the part does not appear there. */
enum ulp_status part_relay(struct ulp_store *from, struct ulp_store *to, const char *run,
                           const struct part *part);

/* Reads it piece by piece without keeping it, and says in the end whether it was the one. */
enum ulp_status part_verify(struct ulp_store *store, const char *run, const struct part *part);

#endif
