// SPDX-License-Identifier: Apache-2.0
/* Bytes that are named by their SHA-256: what was fetched is what was meant, or it is refused. */
#ifndef SYNC_PARTS_H
#define SYNC_PARTS_H

#include "base/spool.h"
#include "chain/record.h"
#include "store/store.h"

#include <ulpsync/patch.h>

/* The most bytes of a patch in one part: it is in memory while it is sent. */
#define PART_BYTES ((size_t)16 << 20)

/* Bytes that are sent one behind the other. */
struct piece {
    const void *data;
    size_t bytes;
};

/* Hands over bytes that are where the CPU does not reach, from the first to the last. */
struct piece_reader {
    enum ulp_status (*read)(void *user, const void *data, size_t bytes,
                            const struct ulp_sink *sink);
    void *user;
};

/* `reader` NULL: they are in memory. */
enum ulp_status piece_read(const struct piece_reader *reader, const struct piece *piece,
                           const struct ulp_sink *sink);

/* Stores bytes as a part in a folder. */
enum ulp_status part_put(struct ulp_store *store, const char *run, uint64_t folder,
                         const struct piece *pieces, size_t count, struct part *ret_part);

/* The same where somebody else must read them, twice: the name comes before the bytes. */
enum ulp_status part_put_read(struct ulp_store *store, const char *run, uint64_t folder,
                              const struct piece *pieces, size_t count,
                              const struct piece_reader *reader, struct part *ret_part);

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
