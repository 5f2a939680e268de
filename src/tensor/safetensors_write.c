// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "base/endian.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "base/word.h"
#include "tensor/safetensors.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

/* Where tensor `index` of the caller's array goes. */
struct slot {
    const struct ulp_tensor *tensor;
    size_t index;
    unsigned word_bytes;
};

/* Widest elements first, so that every tensor starts at a multiple of its element; then by name. */
static int by_layout(const void *a, const void *b) {
    const struct slot *x = a, *y = b;

    if (x->word_bytes != y->word_bytes)
        return x->word_bytes > y->word_bytes ? -1 : 1;
    return strcmp(x->tensor->name, y->tensor->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct slot *)a)->tensor->name, ((const struct slot *)b)->tensor->name);
}

static enum ulp_status lay_out(const char *what, const struct ulp_tensor *tensors, size_t count,
                               struct slot *slots) {
    for (size_t i = 0; i < count; i++) {
        struct ulp_tensor copy = tensors[i];
        enum ulp_status status = tensor_check_name(what, copy.name);

        if (!status)
            status = tensor_measure(what, &copy, copy.bytes);
        if (status)
            return status;
        slots[i] = (struct slot){&tensors[i], i, word_bytes_of(copy.bits)};
    }
    qsort(slots, count, sizeof *slots, by_name);
    for (size_t i = 1; i < count; i++) {
        if (!by_name(&slots[i - 1], &slots[i]))
            return fail(ULP_E_DUPLICATE, "%s: the tensor %s occurs twice", quote(what).text,
                        quote(slots[i].tensor->name).text);
    }
    qsort(slots, count, sizeof *slots, by_layout);
    return ULP_OK;
}

static bool is_text(const char *text) {
    return utf8_valid(text, strlen(text));
}

/* What the reader would refuse is not written. */
static enum ulp_status check_limits(const char *what, size_t count,
                                    const struct ulp_text_pair *pairs, size_t pair_count) {
    if (count > LIMIT_TENSORS)
        return fail(ULP_E_LIMIT, "%s: %zu tensors; the limit is %u", quote(what).text, count,
                    LIMIT_TENSORS);
    if (pair_count > LIMIT_METADATA_PAIRS)
        return fail(ULP_E_LIMIT, "%s: %zu metadata entries; the limit is %u", quote(what).text,
                    pair_count, LIMIT_METADATA_PAIRS);
    for (size_t i = 0; i < pair_count; i++) {
        if (strlen(pairs[i].key) > LIMIT_NAME_BYTES ||
            strlen(pairs[i].value) > LIMIT_METADATA_VALUE_BYTES)
            return fail(ULP_E_LIMIT,
                        "%s: the metadata entry %s is too long; the limit is %u bytes for the key "
                        "and %u for the value",
                        quote(what).text, quote(pairs[i].key).text, LIMIT_NAME_BYTES,
                        LIMIT_METADATA_VALUE_BYTES);
    }
    return ULP_OK;
}

static enum ulp_status append_pairs(const char *what, const struct ulp_text_pair *pairs,
                                    size_t count, struct buffer *out) {
    struct ulp_text_pair *sorted = NULL;
    enum ulp_status status = mem_zeroed(count, sizeof *sorted, &sorted);

    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        sorted[i] = pairs[i];
    status = metadata_sort(what, sorted, count);
    if (!status)
        status = buffer_append_text(out, "\"__metadata__\":");
    for (size_t i = 0; !status && i < count; i++) {
        if (!is_text(sorted[i].key) || !is_text(sorted[i].value))
            status = fail(ULP_E_UTF8, "%s: the metadata entry %s is not UTF-8", quote(what).text,
                          quote(sorted[i].key).text);
        if (!status)
            status = buffer_append_text(out, i ? "," : "{");
        if (!status)
            status = json_append_string(out, sorted[i].key);
        if (!status)
            status = buffer_append_text(out, ":");
        if (!status)
            status = json_append_string(out, sorted[i].value);
    }
    mem_free(sorted);
    return status ? status : buffer_append_text(out, "}");
}

static enum ulp_status append_tensor(const struct ulp_tensor *tensor, uint64_t begin,
                                     struct buffer *out) {
    enum ulp_status status = json_append_string(out, tensor->name);

    if (!status)
        status = buffer_append_format(out, ":{\"dtype\":\"%s\",\"shape\":[", tensor->dtype);
    for (uint32_t i = 0; !status && i < tensor->rank; i++)
        status =
            buffer_append_format(out, "%s%llu", i ? "," : "", (unsigned long long)tensor->shape[i]);
    if (status)
        return status;
    return buffer_append_format(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                                (unsigned long long)(begin + tensor->bytes));
}

/* The JSON text, padded with spaces so that the data section is 8-byte aligned. */
static enum ulp_status append_header(const char *what, const struct slot *slots, size_t count,
                                     const struct ulp_text_pair *metadata, size_t metadata_count,
                                     struct buffer *out, uint64_t *offsets, uint64_t *ret_end) {
    uint64_t at = 0;
    enum ulp_status status = buffer_append_text(out, "{");

    if (!status && metadata_count)
        status = append_pairs(what, metadata, metadata_count, out);
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t begin = at;

        if (add_overflows(at, slots[i].tensor->bytes, &at))
            return fail(ULP_E_SIZE, "%s: the tensors add up to more than 2^64 bytes",
                        quote(what).text);
        offsets[slots[i].index] = begin;
        if (i || metadata_count)
            status = buffer_append_text(out, ",");
        if (!status)
            status = append_tensor(slots[i].tensor, begin, out);
    }
    if (!status)
        status = buffer_append_text(out, "}");
    if (!status)
        status = buffer_append_fill(out, ' ', (8 - out->used % 8) % 8);
    if (status == ULP_E_LIMIT)
        return fail(ULP_E_LIMIT, "%s: the header would exceed %u bytes; use more files",
                    quote(what).text, LIMIT_HEADER_BYTES);
    if (!status)
        *ret_end = at;
    return status;
}

enum ulp_status safetensors_encode_header(const char *what, const struct ulp_tensor *tensors,
                                          size_t count, const struct ulp_text_pair *metadata,
                                          size_t metadata_count, struct buffer *header,
                                          uint64_t *ret_offsets, uint64_t *ret_file_bytes) {
    static const uint8_t length_later[SAFETENSORS_LENGTH_BYTES];
    struct slot *slots = NULL;
    uint64_t end = 0, file_bytes;
    enum ulp_status status = check_limits(what, count, metadata, metadata_count);

    if (!status)
        status = mem_zeroed(count, sizeof *slots, &slots);
    if (!status)
        status = lay_out(what, tensors, count, slots);
    if (!status)
        status = buffer_append(header, length_later, sizeof length_later);
    if (!status)
        status =
            append_header(what, slots, count, metadata, metadata_count, header, ret_offsets, &end);
    mem_free(slots);
    if (status)
        return status;
    if (add_overflows(end, header->used, &file_bytes))
        return fail(ULP_E_SIZE, "%s: the file would exceed 2^64 bytes", quote(what).text);
    store_le64(header->data, header->used - SAFETENSORS_LENGTH_BYTES);
    for (size_t i = 0; i < count; i++)
        ret_offsets[i] += header->used;
    *ret_file_bytes = file_bytes;
    return ULP_OK;
}
