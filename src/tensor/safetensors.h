// SPDX-License-Identifier: Apache-2.0
/*
 * The safetensors file: 8 bytes of header length (little-endian), a JSON header, the tensors'
 * bytes.
 *
 *     {"__metadata__":{"format":"pt"},"a.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}
 *
 * Reading is strict: the data section is tiled by the tensors exactly, every field is there once,
 * sizes agree. Writing is canonical: one set of tensors has one encoding.
 */
#ifndef TENSOR_SAFETENSORS_H
#define TENSOR_SAFETENSORS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/file.h"

#include <ulpsync/model.h>

#define SAFETENSORS_LENGTH_BYTES 8u

/* One file, read. Zeroed means none. */
struct shard {
    const char *path; /* in the arena */
    struct file_map map;
    struct arena arena;
    struct ulp_tensor *tensors; /* by name; data points into the map */
    size_t count;
    struct ulp_text_pair *metadata; /* by key */
    size_t metadata_count;
};

enum ulp_status shard_open(const char *path, struct shard *ret_shard);
void shard_release(struct shard *shard);

/* The same for bytes that are in memory already and outlive the shard; for tests and fuzzing. */
enum ulp_status shard_parse(const char *what, const void *data, size_t bytes,
                            struct shard *ret_shard);

/* Sorts by key; ULP_E_DUPLICATE names one that occurs twice. */
enum ulp_status metadata_sort(const char *what, struct ulp_text_pair *pairs, size_t count);

/*
 * Length field and header of the canonical file. `ret_offsets` receives, for each tensor in the
 * order given, where its bytes start in the file; `ret_file_bytes` how long the file will be.
 */
enum ulp_status safetensors_encode_header(const char *what, const struct ulp_tensor *tensors,
                                          size_t count, const struct ulp_text_pair *metadata,
                                          size_t metadata_count, struct buffer *header,
                                          uint64_t *ret_offsets, uint64_t *ret_file_bytes);

#endif
