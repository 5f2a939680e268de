// SPDX-License-Identifier: Apache-2.0
/*
 * `model.safetensors.index.json`: which tensor is in which file.
 *     {"metadata":{"total_size":24},"weight_map":{"a.weight":"model-00001-of-00002.safetensors"}}
 */
#ifndef TENSOR_SHARD_INDEX_H
#define TENSOR_SHARD_INDEX_H

#include "base/arena.h"
#include "base/buffer.h"

#include <ulpsync/model.h>

struct index_entry {
    const char *tensor;
    const char *file; /* a plain name ending in ".safetensors" */
};

/* Zeroed means none. */
struct shard_index {
    struct arena arena;
    struct index_entry *entries; /* by tensor */
    size_t count;
    const char **files; /* by name, each once */
    size_t file_count;
};

enum ulp_status shard_index_parse(const char *what, const void *text, size_t bytes,
                                  struct shard_index *ret_index);
void shard_index_release(struct shard_index *index);

/* Entries are written in the order given. */
enum ulp_status shard_index_encode(const struct index_entry *entries, size_t count,
                                   uint64_t total_bytes, struct buffer *out);

#endif
