// SPDX-License-Identifier: Apache-2.0
/* A file of an anchor, fetched and read but not in use yet: in memory while it is small, else in a
 * file without a name. */
#ifndef SYNC_MEMORY_SHARD_H
#define SYNC_MEMORY_SHARD_H

#include "base/spool.h"
#include "sync/holder.h"
#include "tensor/safetensors.h"

/* Zeroed means none. */
struct fetched_shard {
    struct spool spool;
    struct shard shard; /* of what the spool holds */
};

/* Whether a file of an anchor holds tensors. */
bool holds_tensors(const struct anchor_file *file);

/* `memory_bytes`: what may stay in memory. */
enum ulp_status shard_fetch(const struct work *work, const struct anchor_file *file,
                            size_t memory_bytes, struct fetched_shard *ret_shard);
void fetched_shard_release(struct fetched_shard *shard);

#endif
