// SPDX-License-Identifier: Apache-2.0
/* Where the tensors of a model are in its files, and writing changed blocks there. */
#ifndef PATCH_SHARD_WRITE_H
#define PATCH_SHARD_WRITE_H

#include "patch/apply.h"
#include "tensor/model.h"

struct tensor_place {
    uint32_t shard;
    uint64_t offset; /* in the file */
};

/* One for each of the model's tensors. */
enum ulp_status tensor_places(const struct ulp_model *model, struct tensor_place **ret_places);

/* Something that takes bytes at a place of shard number `shard`. */
typedef enum ulp_status (*shard_put)(void *user, size_t shard, uint64_t offset, const void *data,
                                     size_t bytes);

struct shard_writer {
    const struct ulp_model *model;
    const struct tensor_place *places;
    shard_put put;
    void *user;
    uint8_t *block; /* PLACE_BYTES */
};

/* Puts a block with its changes; a staged_block_fn, with a struct shard_writer. */
enum ulp_status shard_write_block(void *writer, const struct staged_block *staged);

#endif
