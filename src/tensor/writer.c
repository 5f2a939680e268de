// SPDX-License-Identifier: Apache-2.0
#include "tensor/writer.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "tensor/safetensors.h"

#include <stdbool.h>

struct extent {
    uint64_t offset, bytes; /* of a tensor in the file */
};

struct ulp_writer {
    struct file_writer file;
    struct extent *extents;
    size_t count;
    bool committed;
};

static enum ulp_status place_tensors(struct ulp_writer *writer, const struct ulp_tensor *tensors,
                                     const uint64_t *offsets, size_t count) {
    enum ulp_status status = mem_zeroed(count, sizeof *writer->extents, &writer->extents);

    if (status)
        return status;
    writer->count = count;
    for (size_t i = 0; i < count; i++)
        writer->extents[i] = (struct extent){offsets[i], tensors[i].bytes};
    return ULP_OK;
}

enum ulp_status writer_create(const char *path, const struct ulp_tensor *tensors, size_t count,
                              const struct ulp_text_pair *metadata, size_t metadata_count,
                              struct ulp_writer **ret_writer) {
    struct buffer header = BUFFER(LIMIT_HEADER_BYTES + SAFETENSORS_LENGTH_BYTES);
    struct ulp_writer *writer = NULL;
    uint64_t *offsets = NULL, file_bytes = 0;
    enum ulp_status status = mem_zeroed(1, sizeof *writer, &writer);

    if (!status)
        status = mem_zeroed(count, sizeof *offsets, &offsets);
    if (!status)
        status = safetensors_encode_header(path, tensors, count, metadata, metadata_count, &header,
                                           offsets, &file_bytes);
    if (!status)
        status = place_tensors(writer, tensors, offsets, count);
    if (!status)
        status = file_writer_open(path, file_bytes, &writer->file);
    if (!status)
        status = file_writer_put(&writer->file, 0, header.data, header.used);
    mem_free(offsets);
    buffer_release(&header);
    if (status)
        writer_free(writer);
    else
        *ret_writer = writer;
    return status;
}

enum ulp_status writer_put(struct ulp_writer *writer, size_t index, uint64_t offset,
                           const void *data, uint64_t bytes) {
    const struct extent *extent;

    if (writer->committed)
        return fail(ULP_E_USAGE, "this file is committed; nothing more can be written to it");
    if (index >= writer->count)
        return fail(ULP_E_USAGE, "tensor %zu of a file with %zu tensors", index, writer->count);
    extent = &writer->extents[index];
    if (offset > extent->bytes || bytes > extent->bytes - offset)
        return fail(ULP_E_USAGE, "%llu bytes at %llu do not fit a tensor of %llu bytes",
                    (unsigned long long)bytes, (unsigned long long)offset,
                    (unsigned long long)extent->bytes);
    return file_writer_put(&writer->file, extent->offset + offset, data, bytes);
}

enum ulp_status writer_commit(struct ulp_writer *writer, enum ulp_commit commit) {
    enum ulp_status status;

    if (writer->committed)
        return fail(ULP_E_USAGE, "this file is committed already");
    status = file_writer_commit(&writer->file, commit);
    writer->committed = !status;
    return status;
}

void writer_free(struct ulp_writer *writer) {
    if (!writer)
        return;
    file_writer_release(&writer->file);
    mem_free(writer->extents);
    mem_free(writer);
}
