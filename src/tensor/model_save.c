// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "tensor/model.h"
#include "tensor/shard_index.h"
#include "tensor/tensor.h"
#include "tensor/writer.h"

#include <stdio.h>
#include <string.h>

#define COPY_PIECE_BYTES (64u << 20)

/* Everything about one save; files hold runs of the tensors in name order. */
struct save {
    const char *directory;
    const struct ulp_text_pair *metadata;
    size_t metadata_count;
    const struct ulp_progress *progress;
    struct ulp_tensor *tensors; /* by name */
    size_t count;
    uint64_t total, done; /* bytes */
};

struct shard_name {
    char text[64];
};

static struct shard_name name_shard(unsigned shard, unsigned shards) {
    struct shard_name name = {MODEL_FILE_NAME};

    if (shards > 1)
        snprintf(name.text, sizeof name.text, "model-%05u-of-%05u.safetensors", shard + 1, shards);
    return name;
}

static enum ulp_status copy_tensor(struct save *save, struct ulp_writer *writer, size_t index,
                                   const struct ulp_tensor *tensor) {
    for (uint64_t at = 0; at < tensor->bytes;) {
        uint64_t left = tensor->bytes - at;
        uint64_t piece = left < COPY_PIECE_BYTES ? left : COPY_PIECE_BYTES;
        const struct ulp_progress *progress = save->progress;
        enum ulp_status status =
            writer_put(writer, index, at, (const uint8_t *)tensor->data + at, piece);

        if (status)
            return status;
        at += piece;
        save->done += piece;
        if (progress && progress->report(progress->user, save->done, save->total))
            return fail(ULP_E_CANCELLED, "stopped by the caller");
    }
    return ULP_OK;
}

static enum ulp_status write_shard(struct save *save, const char *name, size_t first, size_t end) {
    struct ulp_writer *writer = NULL;
    char *path = NULL;
    enum ulp_status status = model_path_join(save->directory, name, &path);

    if (!status)
        status = writer_create(path, save->tensors + first, end - first, save->metadata,
                               save->metadata_count, &writer);
    for (size_t i = first; !status && i < end; i++)
        status = copy_tensor(save, writer, i - first, &save->tensors[i]);
    if (!status)
        status = writer_commit(writer, ULP_COMMIT_NEW);
    writer_free(writer);
    mem_free(path);
    return status;
}

/* The end of shard `shard`: as many tensors as bring it to its share of the bytes, at least one,
 * and leaving one for each shard that follows. */
static size_t shard_end(const struct save *save, size_t first, unsigned shard, unsigned shards,
                        uint64_t *bytes_so_far) {
    uint64_t share = save->total / shards * (shard + 1);
    size_t most = save->count - (shards - 1 - shard), end = first;

    if (shard + 1 == shards)
        return save->count;
    do
        *bytes_so_far += save->tensors[end++].bytes;
    while (end < most && *bytes_so_far + save->tensors[end].bytes / 2 < share);
    return end;
}

static enum ulp_status write_index(const struct save *save, const struct index_entry *entries) {
    struct buffer text = BUFFER(LIMIT_INDEX_BYTES);
    char *path = NULL;
    enum ulp_status status = shard_index_encode(entries, save->count, save->total, &text);

    if (!status)
        status = model_path_join(save->directory, MODEL_INDEX_NAME, &path);
    if (!status)
        status = file_write(path, text.data, text.used, ULP_COMMIT_NEW);
    mem_free(path);
    buffer_release(&text);
    return status;
}

/* A save that fails takes back what it committed, and nothing else. The index comes last, so it is
 * never among that. */
static void remove_files(const struct save *save, const struct shard_name *names, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        file_remove_in(save->directory, names[i].text);
}

/* Data first, the index that points to it last. */
static enum ulp_status write_files(struct save *save, unsigned shards) {
    struct index_entry *entries = NULL;
    struct shard_name *names = NULL;
    uint64_t bytes_so_far = 0;
    size_t first = 0;
    unsigned committed = 0;
    enum ulp_status status = mem_zeroed(save->count, sizeof *entries, &entries);

    if (!status)
        status = mem_zeroed(shards, sizeof *names, &names);
    for (unsigned shard = 0; !status && shard < shards; shard++) {
        size_t end = shard_end(save, first, shard, shards, &bytes_so_far);

        names[shard] = name_shard(shard, shards);
        for (size_t i = first; i < end; i++)
            entries[i] = (struct index_entry){save->tensors[i].name, names[shard].text};
        status = write_shard(save, names[shard].text, first, end);
        committed += !status;
        first = end;
    }
    if (!status && shards > 1)
        status = write_index(save, entries);
    if (status)
        remove_files(save, names, committed);
    mem_free(names);
    mem_free(entries);
    return status;
}

enum ulp_status model_save(const char *directory, const struct ulp_tensor *tensors, size_t count,
                           const struct ulp_text_pair *metadata, size_t metadata_count,
                           unsigned shards, const struct ulp_progress *progress) {
    struct save save = {directory, metadata, metadata_count, progress, NULL, count, 0, 0};
    enum ulp_status status;

    if (!shards || shards > LIMIT_SHARDS || (shards > 1 && shards > count))
        return fail(ULP_E_USAGE, "%zu tensors cannot go into %u files; 1 to %u files are possible",
                    count, shards, LIMIT_SHARDS);
    if (count > LIMIT_TENSORS)
        return fail(ULP_E_LIMIT, "%s: %zu tensors; the limit is %u", quote(directory).text, count,
                    LIMIT_TENSORS);
    status = file_make_directory(directory);
    if (!status)
        status = model_directory_is_free(directory);
    if (!status)
        status = mem_zeroed(count, sizeof *save.tensors, &save.tensors);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        save.tensors[i] = tensors[i];
        save.total += tensors[i].bytes;
    }
    status = tensor_sort(directory, save.tensors, count);
    if (!status)
        status = write_files(&save, shards);
    mem_free(save.tensors);
    return status;
}
