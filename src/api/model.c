// SPDX-License-Identifier: Apache-2.0
/* Public entry points on models and tensors: argument checks, then one internal call. */
#include "tensor/model.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"
#include "tensor/writer.h"

#include <ulpsync/model.h>

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

uint32_t ulp_dtype_bits(const char *dtype) {
    return dtype ? dtype_bits(dtype) : 0;
}

enum ulp_status ulp_tensor_measure(struct ulp_tensor *tensor) {
    uint64_t bytes;
    enum ulp_status status;

    if (!tensor || !tensor->name || !tensor->dtype || (tensor->rank && !tensor->shape))
        return missing(__func__);
    bytes = tensor->bytes;
    status = tensor_check_name("tensor", tensor->name);
    if (!status && !bytes && dtype_bits(tensor->dtype))
        status = tensor_bytes("tensor", tensor, &bytes);
    return status ? status : tensor_measure("tensor", tensor, bytes);
}

enum ulp_status ulp_model_open(const char *path, struct ulp_model **ret_model) {
    return path && ret_model ? model_open(path, ret_model) : missing(__func__);
}

void ulp_model_free(struct ulp_model *model) {
    model_free(model);
}

size_t ulp_model_count(const struct ulp_model *model) {
    return model ? model->count : 0;
}

const struct ulp_tensor *ulp_model_tensors(const struct ulp_model *model) {
    return model ? model->tensors : NULL;
}

const struct ulp_tensor *ulp_model_find(const struct ulp_model *model, const char *name) {
    return model && name ? tensor_find(model->tensors, model->count, name) : NULL;
}

uint64_t ulp_model_bytes(const struct ulp_model *model) {
    return model ? model->bytes : 0;
}

size_t ulp_model_files(const struct ulp_model *model) {
    return model ? model->shard_count : 0;
}

size_t ulp_model_metadata(const struct ulp_model *model, const struct ulp_text_pair **ret_pairs) {
    for (size_t i = 0; model && ret_pairs && i < model->shard_count; i++) {
        const struct shard *shard = &model->shards[i];

        if (shard->metadata_count) {
            *ret_pairs = shard->metadata;
            return shard->metadata_count;
        }
    }
    return 0;
}

enum ulp_status ulp_name_is_free(const char *path) {
    return path ? file_name_is_free(path) : missing(__func__);
}

enum ulp_status ulp_directory_make(const char *path) {
    return path ? file_make_directory(path) : missing(__func__);
}

enum ulp_status ulp_writer_create(const char *path, const struct ulp_tensor *tensors, size_t count,
                                  const struct ulp_text_pair *metadata, size_t metadata_count,
                                  struct ulp_writer **ret_writer) {
    enum ulp_status status;

    if (!path || (count && !tensors) || (metadata_count && !metadata) || !ret_writer)
        return missing(__func__);
    status = tensor_check_all(tensors, count, TENSOR_WITHOUT_DATA);
    if (status)
        return status;
    return writer_create(path, tensors, count, metadata, metadata_count, ret_writer);
}

enum ulp_status ulp_writer_put(struct ulp_writer *writer, size_t index, uint64_t offset,
                               const void *data, uint64_t bytes) {
    if (!writer || (bytes && !data))
        return missing(__func__);
    return writer_put(writer, index, offset, data, bytes);
}

enum ulp_status ulp_writer_commit(struct ulp_writer *writer, enum ulp_commit commit) {
    return writer ? writer_commit(writer, commit) : missing(__func__);
}

void ulp_writer_free(struct ulp_writer *writer) {
    writer_free(writer);
}

enum ulp_status ulp_model_save(const char *directory, const struct ulp_tensor *tensors,
                               size_t count, const struct ulp_text_pair *metadata,
                               size_t metadata_count, unsigned shards,
                               const struct ulp_progress *progress) {
    enum ulp_status status;

    if (!directory || (count && !tensors) || (metadata_count && !metadata))
        return missing(__func__);
    status = tensor_check_all(tensors, count, TENSOR_WITH_DATA);
    if (status)
        return status;
    return model_save(directory, tensors, count, metadata, metadata_count, shards, progress);
}
