// SPDX-License-Identifier: Apache-2.0
/* One safetensors file under construction; see ulp_writer in <ulpsync/model.h>. */
#ifndef TENSOR_WRITER_H
#define TENSOR_WRITER_H

#include <ulpsync/model.h>

enum ulp_status writer_create(const char *path, const struct ulp_tensor *tensors, size_t count,
                              const struct ulp_text_pair *metadata, size_t metadata_count,
                              struct ulp_writer **ret_writer);
enum ulp_status writer_put(struct ulp_writer *writer, size_t index, uint64_t offset,
                           const void *data, uint64_t bytes);
enum ulp_status writer_commit(struct ulp_writer *writer, enum ulp_commit commit);
void writer_free(struct ulp_writer *writer);

#endif
