// SPDX-License-Identifier: Apache-2.0
#include "patch/shard_write.h"

#include "base/memory.h"
#include "patch/place.h"
#include "scan/scan.h"

#include <string.h>

static bool holds(const struct shard *shard, const void *data) {
    uintptr_t start = (uintptr_t)shard->map.data, at = (uintptr_t)data;

    return at >= start && at - start < shard->map.bytes;
}

/* Tensors of one file tend to follow each other, so the search starts where the last one was. */
enum ulp_status tensor_places(const struct ulp_model *model, struct tensor_place **ret_places) {
    struct tensor_place *places = NULL;
    uint32_t shard = 0;
    enum ulp_status status = mem_zeroed(model->count, sizeof *places, &places);

    for (size_t i = 0; !status && i < model->count; i++) {
        const struct ulp_tensor *tensor = &model->tensors[i];

        for (size_t k = 0; tensor->bytes && k < model->shard_count; k++) {
            if (holds(&model->shards[shard], tensor->data))
                break;
            shard = (uint32_t)((shard + 1) % model->shard_count);
        }
        if (tensor->bytes)
            places[i] = (struct tensor_place){
                shard, (uint64_t)((const uint8_t *)tensor->data - model->shards[shard].map.data)};
    }
    if (!status)
        *ret_places = places;
    return status;
}

/* Where in its file a tensor's bytes go. */
struct destination {
    const struct shard_writer *writer;
    const struct tensor_place *place;
};

static enum ulp_status put_stretch(void *user, uint64_t offset, const void *data, size_t bytes) {
    const struct destination *to = user;

    return to->writer->put(to->writer->user, to->place->shard, to->place->offset + offset, data,
                           bytes);
}

enum ulp_status shard_write_block(void *user, const struct staged_block *staged) {
    const struct shard_writer *writer = user;
    const struct block_walk *block = &staged->block;
    const unsigned width = block->chunk->kind.width;
    const size_t tensor = piece_region(block->grid, block->piece)->tensor;
    struct destination to = {writer, &writer->places[tensor]};
    const void *old = place_read(block, writer->model->tensors[tensor].data, writer->block);

    if (old != writer->block)
        memcpy(writer->block, old, (size_t)block->words * width);
    scan_kernels(width)->scatter(writer->block, staged->positions, staged->count, staged->values);
    return place_each_stretch(block, writer->block, put_stretch, &to);
}
