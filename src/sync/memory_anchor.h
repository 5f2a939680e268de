// SPDX-License-Identifier: Apache-2.0
/* The weights of an anchor, fetched but not in use yet: in memory while they are few, else in files
 * without a name. */
#ifndef SYNC_MEMORY_ANCHOR_H
#define SYNC_MEMORY_ANCHOR_H

#include "base/spool.h"
#include "sync/holder.h"
#include "tensor/safetensors.h"

struct fetched_shard {
    struct spool spool;
    struct shard shard; /* of what the spool holds */
};

/* Zeroed means none. */
struct fetched_anchor {
    struct fetched_shard *shards;
    size_t count;
    struct ulp_tensor *tensors; /* of all shards */
    size_t tensor_count, room;
};

/* Whether a file of an anchor holds weights. */
bool is_shard(const struct anchor_file *file);

/* `memory_bytes`: what may stay in memory. */
enum ulp_status shard_fetch(const struct work *work, const struct anchor_file *file,
                            size_t memory_bytes, struct fetched_shard *ret_shard);
void fetched_shard_release(struct fetched_shard *shard);

enum ulp_status anchor_fetch(const struct work *work, const struct anchor *anchor,
                             struct fetched_anchor *ret_anchor);
void fetched_anchor_release(struct fetched_anchor *anchor);

#endif
