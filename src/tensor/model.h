// SPDX-License-Identifier: Apache-2.0
/* A model on disk: one safetensors file, or several with or without an index. */
#ifndef TENSOR_MODEL_H
#define TENSOR_MODEL_H

#include "tensor/safetensors.h"

struct ulp_model {
    struct shard *shards;
    size_t shard_count;
    struct ulp_tensor *tensors; /* of all shards, by name */
    size_t count;
    uint64_t bytes;
};

enum ulp_status model_open(const char *path, struct ulp_model **ret_model);

/* Also opens what stands between two states, for who is going to finish the change. */
enum ulp_status model_open_interrupted(const char *path, struct ulp_model **ret_model);
void model_free(struct ulp_model *model);

/* ULP_E_INTERRUPTED when a journal lies beside one of its files or in their directory. */
enum ulp_status model_refuse_interrupted(const char *path, const struct ulp_model *model);

/* ULP_E_EXISTS when the directory already holds files that model_open() would look at. */
enum ulp_status model_directory_is_free(const char *directory);

enum ulp_status model_save(const char *directory, const struct ulp_tensor *tensors, size_t count,
                           const struct ulp_text_pair *metadata, size_t metadata_count,
                           unsigned shards, const struct ulp_progress *progress);

/* Where the journal of a change in place is: beside a file, or in a directory. To be freed with
 * mem_free(). */
enum ulp_status model_journal_path(const char *path, char **ret_path);

#define MODEL_JOURNAL_NAME ".ulpsync-journal"
#define MODEL_FILE_NAME "model.safetensors"
#define MODEL_INDEX_NAME "model.safetensors.index.json"

/* DIRECTORY/NAME, to be freed with mem_free(). */
enum ulp_status model_path_join(const char *directory, const char *name, char **ret_path);

#endif
