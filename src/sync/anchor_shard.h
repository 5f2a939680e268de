// SPDX-License-Identifier: Apache-2.0
/* A file of an anchor, fetched and read but not in use yet: in memory while it is small, else in a
 * file without a name. */
#ifndef SYNC_ANCHOR_SHARD_H
#define SYNC_ANCHOR_SHARD_H

#include "base/spool.h"
#include "sync/holder.h"
#include "tensor/safetensors.h"

/* Zeroed means none. */
struct fetched_shard {
    struct spool spool;
    const uint8_t *data; /* that it holds */
    size_t bytes;
    struct shard shard; /* what these say */
};

/* Whether a file of an anchor holds tensors. */
bool holds_tensors(const char *file_name);

/* `memory_bytes`: what may stay in memory. */
enum ulp_status shard_fetch(const struct work *work, const struct anchor_file *file,
                            size_t memory_bytes, struct fetched_shard *ret_shard);
void fetched_shard_release(struct fetched_shard *shard);

/* Fetches the anchor's files of weights one after the other, and shows each until `fn` returns. */
typedef enum ulp_status (*anchor_shard)(void *user, const struct anchor_file *file,
                                        const struct fetched_shard *fetched);
enum ulp_status anchor_each_shard(const struct work *work, const struct anchor *anchor,
                                  anchor_shard fn, void *user);

#endif
