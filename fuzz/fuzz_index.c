// SPDX-License-Identifier: Apache-2.0
/*
 * The index reader on any bytes. What it accepts is sorted, names plain files only, and is the same
 * after being written and read again.
 */
#include "base/limits.h"
#include "fuzz/target.h"
#include "tensor/shard_index.h"

#include <string.h>

static void check_file_name(const char *name) {
    size_t length = strlen(name);

    MUST(length > strlen(".safetensors") && length <= LIMIT_FILE_NAME_BYTES);
    MUST(name[0] != '.' && !strchr(name, '/'));
    MUST(!strcmp(name + length - strlen(".safetensors"), ".safetensors"));
}

static int is_listed(const struct shard_index *index, const char *name) {
    for (size_t i = 0; i < index->file_count; i++) {
        if (!strcmp(index->files[i], name))
            return 1;
    }
    return 0;
}

static void check_invariants(const struct shard_index *index) {
    MUST(index->count >= 1 && index->count <= LIMIT_TENSORS);
    MUST(index->file_count >= 1 && index->file_count <= index->count);
    for (size_t i = 0; i < index->count; i++) {
        MUST(index->entries[i].tensor[0]);
        MUST(!i || strcmp(index->entries[i - 1].tensor, index->entries[i].tensor) < 0);
        MUST(is_listed(index, index->entries[i].file));
    }
    for (size_t i = 0; i < index->file_count; i++) {
        check_file_name(index->files[i]);
        MUST(!i || strcmp(index->files[i - 1], index->files[i]) < 0);
    }
}

static void check_same(const struct shard_index *a, const struct shard_index *b) {
    MUST(a->count == b->count && a->file_count == b->file_count);
    for (size_t i = 0; i < a->count; i++) {
        MUST(!strcmp(a->entries[i].tensor, b->entries[i].tensor));
        MUST(!strcmp(a->entries[i].file, b->entries[i].file));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buffer text = BUFFER(LIMIT_INDEX_BYTES);
    struct shard_index index = {0}, again = {0};

    if (shard_index_parse("fuzz", data, size, &index))
        return 0;
    check_invariants(&index);
    MUST(!shard_index_encode(index.entries, index.count, size, &text));
    MUST(!shard_index_parse("fuzz again", text.data, text.used, &again));
    check_same(&index, &again);
    shard_index_release(&index);
    shard_index_release(&again);
    buffer_release(&text);
    return 0;
}
