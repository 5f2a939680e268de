// SPDX-License-Identifier: Apache-2.0
#include "base/endian.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "tensor/safetensors.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

/* A shard while its header is being read. */
struct parse {
    struct shard *shard;
    struct json json;
    const uint8_t *section; /* where the tensors' bytes start */
    uint64_t section_bytes;
    size_t tensor_room, metadata_room;
    bool metadata_seen;
    struct buffer name, text; /* scratch */
};

/* The three fields of an entry, each of which must come exactly once. */
enum field { FIELD_DTYPE, FIELD_SHAPE, FIELD_OFFSETS, FIELD_COUNT };
static const char *const field_names[FIELD_COUNT] = {"dtype", "shape", "data_offsets"};

static const char *what(const struct parse *parse) {
    return parse->shard->path;
}

static enum ulp_status too_many(const struct parse *parse, size_t max, const char *of_what) {
    return fail(ULP_E_LIMIT, "%s: more than %zu %s", quote(what(parse)).text, max, of_what);
}

static enum ulp_status read_metadata(struct parse *parse) {
    struct shard *shard = parse->shard;
    enum ulp_status status;
    bool more = false;

    if (parse->metadata_seen)
        return json_fail(&parse->json, ULP_E_DUPLICATE, "'__metadata__' occurs twice");
    parse->metadata_seen = true;
    status = json_object_begin(&parse->json);
    while (!status && !(status = json_member(&parse->json, &parse->name, &more)) && more) {
        struct ulp_text_pair pair = {0};

        if (shard->metadata_count == LIMIT_METADATA_PAIRS)
            return too_many(parse, LIMIT_METADATA_PAIRS, "metadata entries");
        status = mem_grow(&shard->metadata, shard->metadata_count, sizeof *shard->metadata,
                          &parse->metadata_room);
        if (!status)
            status = json_string(&parse->json, &parse->text);
        if (!status)
            status =
                arena_text(&shard->arena, buffer_text(&parse->name), parse->name.used, &pair.key);
        if (!status)
            status =
                arena_text(&shard->arena, buffer_text(&parse->text), parse->text.used, &pair.value);
        if (!status)
            shard->metadata[shard->metadata_count++] = pair;
    }
    return status;
}

static enum ulp_status read_dtype(struct parse *parse, struct ulp_tensor *tensor) {
    struct buffer dtype = BUFFER(LIMIT_DTYPE_BYTES);
    enum ulp_status status = json_string(&parse->json, &dtype);

    if (!status)
        status = arena_text(&parse->shard->arena, buffer_text(&dtype), dtype.used, &tensor->dtype);
    buffer_release(&dtype);
    return status;
}

static enum ulp_status read_shape(struct parse *parse, struct ulp_tensor *tensor) {
    uint64_t extents[LIMIT_RANK], *shape = NULL;
    uint32_t rank = 0;
    bool more = false;
    enum ulp_status status = json_array_begin(&parse->json);

    while (!status && !(status = json_element(&parse->json, &more)) && more) {
        if (rank == LIMIT_RANK)
            return fail(ULP_E_LIMIT, "%s: tensor %s has more than %u dimensions",
                        quote(what(parse)).text, quote(tensor->name).text, LIMIT_RANK);
        status = json_u64(&parse->json, &extents[rank++]);
    }
    if (!status)
        status = arena_zeroed(&parse->shard->arena, rank, sizeof *shape, &shape);
    if (status)
        return status;
    if (rank)
        memcpy(shape, extents, rank * sizeof *shape);
    tensor->shape = shape;
    tensor->rank = rank;
    return ULP_OK;
}

static enum ulp_status read_offsets(struct parse *parse, struct ulp_tensor *tensor) {
    uint64_t ends[2] = {0, 0};
    unsigned count = 0;
    bool more = false;
    enum ulp_status status = json_array_begin(&parse->json);

    while (!status && !(status = json_element(&parse->json, &more)) && more) {
        if (count == 2)
            return json_fail(&parse->json, ULP_E_SCHEMA,
                             "'data_offsets' has more than two numbers");
        status = json_u64(&parse->json, &ends[count++]);
    }
    if (status)
        return status;
    if (count != 2)
        return json_fail(&parse->json, ULP_E_SCHEMA, "'data_offsets' needs two numbers");
    if (ends[0] > ends[1])
        return fail(ULP_E_SIZE, "%s: tensor %s ends at %llu, before it begins at %llu",
                    quote(what(parse)).text, quote(tensor->name).text, (unsigned long long)ends[1],
                    (unsigned long long)ends[0]);
    if (ends[1] > parse->section_bytes)
        return fail(ULP_E_TRUNCATED,
                    "%s: tensor %s ends at byte %llu of the data, but the file has only %llu",
                    quote(what(parse)).text, quote(tensor->name).text, (unsigned long long)ends[1],
                    (unsigned long long)parse->section_bytes);
    tensor->data = (void *)(uintptr_t)(parse->section + ends[0]);
    tensor->bytes = ends[1] - ends[0];
    return ULP_OK;
}

static enum ulp_status read_field(struct parse *parse, struct ulp_tensor *tensor, unsigned *seen) {
    static enum ulp_status (*const readers[FIELD_COUNT])(struct parse *, struct ulp_tensor *) = {
        read_dtype, read_shape, read_offsets};

    for (unsigned field = 0; field < FIELD_COUNT; field++) {
        if (strcmp(buffer_text(&parse->text), field_names[field]) != 0)
            continue;
        if (*seen & 1u << field)
            return fail(ULP_E_DUPLICATE, "%s: tensor %s has '%s' twice", quote(what(parse)).text,
                        quote(tensor->name).text, field_names[field]);
        *seen |= 1u << field;
        return readers[field](parse, tensor);
    }
    return fail(ULP_E_SCHEMA, "%s: tensor %s has an unknown field %s", quote(what(parse)).text,
                quote(tensor->name).text, quote(buffer_text(&parse->text)).text);
}

static enum ulp_status read_tensor(struct parse *parse) {
    struct shard *shard = parse->shard;
    struct ulp_tensor tensor = {0};
    unsigned seen = 0;
    bool more = false;
    enum ulp_status status = tensor_check_name(what(parse), buffer_text(&parse->name));

    if (!status && shard->count == LIMIT_TENSORS)
        status = too_many(parse, LIMIT_TENSORS, "tensors");
    if (!status)
        status =
            mem_grow(&shard->tensors, shard->count, sizeof *shard->tensors, &parse->tensor_room);
    if (!status)
        status =
            arena_text(&shard->arena, buffer_text(&parse->name), parse->name.used, &tensor.name);
    if (!status)
        status = json_object_begin(&parse->json);
    while (!status && !(status = json_member(&parse->json, &parse->text, &more)) && more)
        status = read_field(parse, &tensor, &seen);
    for (unsigned field = 0; !status && field < FIELD_COUNT; field++) {
        if (!(seen & 1u << field))
            status = fail(ULP_E_SCHEMA, "%s: tensor %s lacks '%s'", quote(what(parse)).text,
                          quote(tensor.name).text, field_names[field]);
    }
    if (!status)
        status = tensor_measure(what(parse), &tensor, tensor.bytes);
    if (!status)
        shard->tensors[shard->count++] = tensor;
    return status;
}

static enum ulp_status read_header(struct parse *parse) {
    struct json *json = &parse->json;
    bool more = false;
    enum ulp_status status = json_object_begin(json);

    while (!status && !(status = json_member(json, &parse->name, &more)) && more) {
        if (!strcmp(buffer_text(&parse->name), "__metadata__"))
            status = read_metadata(parse);
        else
            status = read_tensor(parse);
    }
    for (; !status && json->at < json->bytes; json->at++) {
        if (json->text[json->at] != ' ')
            status = json_fail(json, ULP_E_JSON, "only spaces may follow the header");
    }
    return status;
}

static int by_place(const void *a, const void *b) {
    const struct ulp_tensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;

    if (p != q)
        return p < q ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The tensors must tile the data section: no hole, no overlap, nothing behind the last. */
static enum ulp_status check_tiling(struct parse *parse) {
    struct shard *shard = parse->shard;
    uint64_t end = 0;

    qsort(shard->tensors, shard->count, sizeof *shard->tensors, by_place);
    for (size_t i = 0; i < shard->count; i++) {
        const struct ulp_tensor *tensor = &shard->tensors[i];
        uint64_t begin = (uint64_t)((const uint8_t *)tensor->data - parse->section);

        if (begin < end)
            return fail(ULP_E_OVERLAP, "%s: tensor %s begins at byte %llu, inside tensor %s",
                        quote(what(parse)).text, quote(tensor->name).text,
                        (unsigned long long)begin, quote(shard->tensors[i - 1].name).text);
        if (begin > end)
            return fail(ULP_E_HOLE, "%s: bytes %llu to %llu in front of tensor %s belong to none",
                        quote(what(parse)).text, (unsigned long long)end, (unsigned long long)begin,
                        quote(tensor->name).text);
        end = begin + tensor->bytes;
    }
    if (end != parse->section_bytes)
        return fail(ULP_E_TRAILING, "%s: %llu bytes follow the last tensor",
                    quote(what(parse)).text, (unsigned long long)(parse->section_bytes - end));
    return ULP_OK;
}

/* Names come first, so that one tensor named twice is not reported as an overlap with itself. */
static enum ulp_status check_tensors(struct parse *parse) {
    struct shard *shard = parse->shard;
    enum ulp_status status;

    if (!shard->count && parse->section_bytes)
        return fail(ULP_E_TRAILING, "%s: no tensors, but %llu bytes of data",
                    quote(what(parse)).text, (unsigned long long)parse->section_bytes);
    if (!shard->count)
        return ULP_OK;
    status = tensor_sort(what(parse), shard->tensors, shard->count);
    if (!status)
        status = check_tiling(parse);
    return status ? status : tensor_sort(what(parse), shard->tensors, shard->count);
}

/* Finds header and data section; the length field is checked before anything is done with it. */
static enum ulp_status frame(struct parse *parse) {
    const uint8_t *file = parse->shard->map.data;
    size_t bytes = parse->shard->map.bytes;
    uint64_t length;

    if (bytes < SAFETENSORS_LENGTH_BYTES)
        return fail(ULP_E_TRUNCATED, "%s has %zu bytes; a safetensors file has at least %u",
                    quote(what(parse)).text, bytes, SAFETENSORS_LENGTH_BYTES + 2);
    length = load_le64(file);
    if (length > LIMIT_HEADER_BYTES)
        return fail(ULP_E_HEADER,
                    "%s announces a header of %llu bytes (the limit is %u); is it safetensors?",
                    quote(what(parse)).text, (unsigned long long)length, LIMIT_HEADER_BYTES);
    if (length > bytes - SAFETENSORS_LENGTH_BYTES)
        return fail(ULP_E_TRUNCATED, "%s ends inside its header: %llu bytes announced, %zu there",
                    quote(what(parse)).text, (unsigned long long)length,
                    bytes - SAFETENSORS_LENGTH_BYTES);
    if (!length)
        return fail(ULP_E_HEADER, "%s announces an empty header; is it safetensors?",
                    quote(what(parse)).text);
    if (file[SAFETENSORS_LENGTH_BYTES] != '{')
        return fail(ULP_E_HEADER,
                    "%s: the header begins with byte 0x%02x, not '{'; is it safetensors?",
                    quote(what(parse)).text, file[SAFETENSORS_LENGTH_BYTES]);
    json_init(&parse->json, file + SAFETENSORS_LENGTH_BYTES, (size_t)length, what(parse));
    parse->section = file + SAFETENSORS_LENGTH_BYTES + length;
    parse->section_bytes = bytes - SAFETENSORS_LENGTH_BYTES - length;
    return ULP_OK;
}

static enum ulp_status parse_shard(struct shard *shard) {
    struct parse parse = {.shard = shard,
                          .name = BUFFER(LIMIT_NAME_BYTES),
                          .text = BUFFER(LIMIT_METADATA_VALUE_BYTES)};
    enum ulp_status status = frame(&parse);

    if (!status)
        status = read_header(&parse);
    if (!status)
        status = check_tensors(&parse);
    if (!status)
        status = metadata_sort(shard->path, shard->metadata, shard->metadata_count);
    buffer_release(&parse.name);
    buffer_release(&parse.text);
    return status;
}

enum ulp_status shard_parse(const char *what, const void *data, size_t bytes,
                            struct shard *ret_shard) {
    struct shard shard = {.path = what, .map = {.data = data, .bytes = bytes}};
    enum ulp_status status = parse_shard(&shard);

    shard.map = (struct file_map){0}; /* not ours to unmap */
    if (status)
        shard_release(&shard);
    else
        *ret_shard = shard;
    return status;
}

enum ulp_status shard_open(const char *path, struct shard *ret_shard) {
    struct shard shard = {0};
    enum ulp_status status = arena_text(&shard.arena, path, strlen(path), &shard.path);

    if (!status)
        status = file_map_open_kept(path, FILE_FOLLOW_LINKS, &shard.map);
    if (!status)
        status = parse_shard(&shard);
    if (status)
        shard_release(&shard);
    else
        *ret_shard = shard;
    return status;
}

void shard_release(struct shard *shard) {
    mem_free(shard->tensors);
    mem_free(shard->metadata);
    arena_release(&shard->arena);
    file_map_release(&shard->map);
    *shard = (struct shard){0};
}
