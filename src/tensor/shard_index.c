// SPDX-License-Identifier: Apache-2.0
#include "tensor/shard_index.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

static enum ulp_status check_file_name(const char *what, const char *name) {
    static const char suffix[] = ".safetensors";
    size_t length = strlen(name), tail = sizeof suffix - 1;

    if (length <= tail || length > LIMIT_FILE_NAME_BYTES || name[0] == '.' || strchr(name, '/') ||
        strcmp(name + length - tail, suffix) != 0)
        return fail(ULP_E_NAME,
                    "%s: %s is not the name of a safetensors file in the same directory",
                    quote(what).text, quote(name).text);
    return ULP_OK;
}

static enum ulp_status add_entry(struct shard_index *index, size_t *room, const char *what,
                                 const struct buffer *tensor, const struct buffer *file) {
    struct index_entry entry = {0};
    enum ulp_status status = tensor_check_name(what, buffer_text(tensor));

    if (!status)
        status = check_file_name(what, buffer_text(file));
    if (!status && index->count >= LIMIT_TENSORS)
        status = fail(ULP_E_LIMIT, "%s: more than %u tensors", quote(what).text, LIMIT_TENSORS);
    if (!status)
        status = mem_grow(&index->entries, index->count, sizeof *index->entries, room);
    if (!status)
        status = arena_text(&index->arena, buffer_text(tensor), tensor->used, &entry.tensor);
    if (!status)
        status = arena_text(&index->arena, buffer_text(file), file->used, &entry.file);
    if (!status)
        index->entries[index->count++] = entry;
    return status;
}

static enum ulp_status read_weight_map(struct json *json, struct shard_index *index) {
    struct buffer tensor = BUFFER(LIMIT_NAME_BYTES), file = BUFFER(LIMIT_FILE_NAME_BYTES);
    size_t room = 0;
    bool more = false;
    enum ulp_status status = json_object_begin(json);

    while (!status && !(status = json_member(json, &tensor, &more)) && more) {
        status = json_string(json, &file);
        if (!status)
            status = add_entry(index, &room, json->what, &tensor, &file);
    }
    buffer_release(&tensor);
    buffer_release(&file);
    return status;
}

static enum ulp_status read_index(struct json *json, struct shard_index *index) {
    struct buffer key = BUFFER(LIMIT_NAME_BYTES);
    bool more = false, map_seen = false;
    enum ulp_status status = json_object_begin(json);

    while (!status && !(status = json_member(json, &key, &more)) && more) {
        if (strcmp(buffer_text(&key), "weight_map") != 0) {
            status = json_skip(json);
        } else if (map_seen) {
            status = json_fail(json, ULP_E_DUPLICATE, "'weight_map' occurs twice");
        } else {
            map_seen = true;
            status = read_weight_map(json, index);
        }
    }
    if (!status)
        status = json_end(json);
    if (!status && !map_seen)
        status = fail(ULP_E_SCHEMA, "%s lacks 'weight_map'", quote(json->what).text);
    if (!status && !index->count)
        status = fail(ULP_E_SCHEMA, "%s names no tensor", quote(json->what).text);
    buffer_release(&key);
    return status;
}

static int by_tensor(const void *a, const void *b) {
    return strcmp(((const struct index_entry *)a)->tensor, ((const struct index_entry *)b)->tensor);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum ulp_status sort_entries(const char *what, struct shard_index *index) {
    qsort(index->entries, index->count, sizeof *index->entries, by_tensor);
    for (size_t i = 1; i < index->count; i++) {
        if (!by_tensor(&index->entries[i - 1], &index->entries[i]))
            return fail(ULP_E_DUPLICATE, "%s names the tensor %s twice", quote(what).text,
                        quote(index->entries[i].tensor).text);
    }
    return ULP_OK;
}

static enum ulp_status list_files(const char *what, struct shard_index *index) {
    size_t unique = 0;
    enum ulp_status status = mem_zeroed(index->count, sizeof *index->files, &index->files);

    if (status)
        return status;
    for (size_t i = 0; i < index->count; i++)
        index->files[i] = index->entries[i].file;
    qsort(index->files, index->count, sizeof *index->files, by_text);
    for (size_t i = 0; i < index->count; i++) {
        if (!unique || strcmp(index->files[unique - 1], index->files[i]) != 0)
            index->files[unique++] = index->files[i];
    }
    index->file_count = unique;
    if (unique > LIMIT_SHARDS)
        return fail(ULP_E_LIMIT, "%s names %zu files; the limit is %u", quote(what).text, unique,
                    LIMIT_SHARDS);
    return ULP_OK;
}

enum ulp_status shard_index_parse(const char *what, const void *text, size_t bytes,
                                  struct shard_index *ret_index) {
    struct shard_index index = {0};
    struct json json;
    enum ulp_status status;

    json_init(&json, text, bytes, what);
    status = read_index(&json, &index);
    if (!status)
        status = sort_entries(what, &index);
    if (!status)
        status = list_files(what, &index);
    if (status)
        shard_index_release(&index);
    else
        *ret_index = index;
    return status;
}

void shard_index_release(struct shard_index *index) {
    mem_free(index->entries);
    mem_free(index->files);
    arena_release(&index->arena);
    *index = (struct shard_index){0};
}

enum ulp_status shard_index_encode(const struct index_entry *entries, size_t count,
                                   uint64_t total_bytes, struct buffer *out) {
    enum ulp_status status =
        buffer_append_format(out, "{\"metadata\":{\"total_size\":%llu},\"weight_map\":{",
                             (unsigned long long)total_bytes);

    for (size_t i = 0; !status && i < count; i++) {
        if (i)
            status = buffer_append_text(out, ",");
        if (!status)
            status = json_append_string(out, entries[i].tensor);
        if (!status)
            status = buffer_append_text(out, ":");
        if (!status)
            status = json_append_string(out, entries[i].file);
    }
    return status ? status : buffer_append_text(out, "}}\n");
}
