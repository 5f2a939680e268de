// SPDX-License-Identifier: Apache-2.0
/*
 * The safetensors reader on any bytes. What it accepts tiles the data section exactly and agrees
 * with its dtypes and shapes; written canonically and read again it is the same, and written once
 * more it is the same file to the byte.
 */
#include "base/endian.h"
#include "base/limits.h"
#include "base/word.h"
#include "fuzz/target.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

#include <string.h>

static uint64_t product(const struct ulp_tensor *tensor) {
    uint64_t elements = 1;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!tensor->shape[i])
            return 0;
    }
    for (uint32_t i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    return elements;
}

static void check_tensor(const struct ulp_tensor *tensor, const uint8_t *section,
                         uint64_t section_bytes) {
    uint64_t begin = (uint64_t)((const uint8_t *)tensor->data - section);
    uint32_t known = dtype_bits(tensor->dtype);

    MUST(tensor->name[0] && strlen(tensor->name) <= LIMIT_NAME_BYTES);
    MUST(dtype_name_allowed(tensor->dtype) && tensor->rank <= LIMIT_RANK);
    MUST(begin <= section_bytes && tensor->bytes <= section_bytes - begin);
    MUST(tensor->elements == product(tensor));
    MUST(!known || tensor->bits == known);
    MUST(tensor->bits <= LIMIT_ELEMENT_BITS && (tensor->bits || !tensor->elements));
    MUST(tensor->elements * tensor->bits == tensor->bytes * 8);
}

/* All bytes are covered, and no tensor begins inside another: together that is a tiling. */
static void check_shard(const struct shard *shard, const uint8_t *data, size_t size) {
    uint64_t header = load_le64(data), sum = 0;
    const uint8_t *section = data + SAFETENSORS_LENGTH_BYTES + header;
    uint64_t section_bytes = size - SAFETENSORS_LENGTH_BYTES - header;

    for (size_t i = 0; i < shard->count; i++) {
        check_tensor(&shard->tensors[i], section, section_bytes);
        MUST(!i || strcmp(shard->tensors[i - 1].name, shard->tensors[i].name) < 0);
        sum += shard->tensors[i].bytes;
        for (size_t k = 0; k < i && i < 64; k++) {
            const uint8_t *a = shard->tensors[i].data, *b = shard->tensors[k].data;

            MUST(a >= b + shard->tensors[k].bytes || b >= a + shard->tensors[i].bytes);
        }
    }
    MUST(sum == section_bytes);
    for (size_t i = 1; i < shard->metadata_count; i++)
        MUST(strcmp(shard->metadata[i - 1].key, shard->metadata[i].key) < 0);
}

/* The canonical file of a shard; `ret_bytes` long, to be freed with free(). */
static uint8_t *write_file(const struct shard *shard, uint64_t *ret_bytes) {
    struct buffer header = BUFFER(LIMIT_HEADER_BYTES + SAFETENSORS_LENGTH_BYTES);
    uint64_t *offsets = calloc(shard->count + 1, sizeof *offsets);
    uint8_t *file;

    MUST(offsets);
    MUST(!safetensors_encode_header("fuzz", shard->tensors, shard->count, shard->metadata,
                                    shard->metadata_count, &header, offsets, ret_bytes));
    MUST(header.used % 8 == 0 && *ret_bytes >= header.used);
    file = malloc(*ret_bytes);
    MUST(file);
    memset(file, 0xa5, *ret_bytes);
    memcpy(file, header.data, header.used);
    for (size_t i = 0; i < shard->count; i++) {
        MUST(offsets[i] % word_bytes_of(shard->tensors[i].bits) == 0);
        MUST(offsets[i] + shard->tensors[i].bytes <= *ret_bytes);
        memcpy(file + offsets[i], shard->tensors[i].data, shard->tensors[i].bytes);
    }
    buffer_release(&header);
    free(offsets);
    return file;
}

static void check_same(const struct shard *a, const struct shard *b) {
    MUST(a->count == b->count && a->metadata_count == b->metadata_count);
    for (size_t i = 0; i < a->count; i++) {
        const struct ulp_tensor *x = &a->tensors[i], *y = &b->tensors[i];

        MUST(!strcmp(x->name, y->name) && !strcmp(x->dtype, y->dtype));
        MUST(x->rank == y->rank && x->bits == y->bits && x->bytes == y->bytes);
        MUST(!x->rank || !memcmp(x->shape, y->shape, x->rank * sizeof *x->shape));
        MUST(!memcmp(x->data, y->data, x->bytes));
    }
    for (size_t i = 0; i < a->metadata_count; i++) {
        MUST(!strcmp(a->metadata[i].key, b->metadata[i].key));
        MUST(!strcmp(a->metadata[i].value, b->metadata[i].value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct shard shard = {0}, again = {0};
    uint64_t first_bytes = 0, second_bytes = 0;
    uint8_t *first, *second;

    if (shard_parse("fuzz", data, size, &shard))
        return 0;
    check_shard(&shard, data, size);
    first = write_file(&shard, &first_bytes);
    MUST(!shard_parse("fuzz again", first, first_bytes, &again));
    check_shard(&again, first, first_bytes);
    check_same(&shard, &again);
    second = write_file(&again, &second_bytes);
    MUST(first_bytes == second_bytes && !memcmp(first, second, first_bytes));
    free(second);
    shard_release(&again);
    free(first);
    shard_release(&shard);
    return 0;
}
