// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include "base/checked.h"
#include "base/limits.h"
#include "base/quote.h"
#include "base/status.h"
#include "base/utf8.h"
#include "tensor/dtype.h"

#include <stdlib.h>
#include <string.h>

enum ulp_status tensor_check_name(const char *what, const char *name) {
    size_t length = strlen(name);

    if (!length)
        return fail(ULP_E_NAME, "%s: a tensor without a name", quote(what).text);
    if (length > LIMIT_NAME_BYTES)
        return fail(ULP_E_LIMIT, "%s: the tensor name %s has %zu bytes; the limit is %u",
                    quote(what).text, quote(name).text, length, LIMIT_NAME_BYTES);
    if (!utf8_valid(name, length))
        return fail(ULP_E_UTF8, "%s: the tensor name %s is not UTF-8", quote(what).text,
                    quote(name).text);
    if (!strcmp(name, "__metadata__"))
        return fail(ULP_E_NAME, "%s: a tensor cannot be called '__metadata__'", quote(what).text);
    return ULP_OK;
}

/* The product of the extents; any zero makes it zero, however large the others are. */
static enum ulp_status count_elements(const char *what, const struct ulp_tensor *tensor,
                                      uint64_t *ret_elements) {
    uint64_t elements = 1;

    if (tensor->rank > LIMIT_RANK)
        return fail(ULP_E_LIMIT, "%s: tensor %s has %u dimensions; the limit is %u",
                    quote(what).text, quote(tensor->name).text, tensor->rank, LIMIT_RANK);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0) {
            *ret_elements = 0;
            return ULP_OK;
        }
    }
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (mul_overflows(elements, tensor->shape[i], &elements))
            return fail(ULP_E_SIZE, "%s: the shape of tensor %s multiplies to more than 2^64",
                        quote(what).text, quote(tensor->name).text);
    }
    *ret_elements = elements;
    return ULP_OK;
}

static enum ulp_status known_bytes(const char *what, const struct ulp_tensor *tensor,
                                   uint64_t elements, uint64_t *ret_bytes) {
    uint64_t bits;

    if (mul_overflows(elements, dtype_bits(tensor->dtype), &bits))
        return fail(ULP_E_SIZE, "%s: tensor %s would have more than 2^64 bits", quote(what).text,
                    quote(tensor->name).text);
    if (bits % 8)
        return fail(ULP_E_SIZE,
                    "%s: %llu elements of %s in tensor %s do not fill whole bytes; pad its shape",
                    quote(what).text, (unsigned long long)elements, tensor->dtype,
                    quote(tensor->name).text);
    *ret_bytes = bits / 8;
    return ULP_OK;
}

/* The width of a dtype that is not in the table follows from what is stored. */
static enum ulp_status derive_bits(const char *what, const struct ulp_tensor *tensor,
                                   uint64_t elements, uint64_t stored_bytes, uint32_t *ret_bits) {
    uint64_t bits;

    if (!elements && !stored_bytes) {
        *ret_bits = 0;
        return ULP_OK;
    }
    if (!elements || mul_overflows(stored_bytes, 8, &bits) || bits % elements ||
        bits / elements == 0)
        return fail(ULP_E_SIZE,
                    "%s: tensor %s of the unknown dtype %s: %llu bytes do not divide over its %llu "
                    "elements",
                    quote(what).text, quote(tensor->name).text, quote(tensor->dtype).text,
                    (unsigned long long)stored_bytes, (unsigned long long)elements);
    if (bits / elements > LIMIT_ELEMENT_BITS)
        return fail(ULP_E_LIMIT,
                    "%s: tensor %s of the unknown dtype %s would have %llu bits per element; the "
                    "limit is %u",
                    quote(what).text, quote(tensor->name).text, quote(tensor->dtype).text,
                    (unsigned long long)(bits / elements), LIMIT_ELEMENT_BITS);
    *ret_bits = (uint32_t)(bits / elements);
    return ULP_OK;
}

enum ulp_status tensor_bytes(const char *what, const struct ulp_tensor *tensor,
                             uint64_t *ret_bytes) {
    uint64_t elements = 0;
    enum ulp_status status = count_elements(what, tensor, &elements);

    if (status)
        return status;
    if (!dtype_bits(tensor->dtype))
        return fail(ULP_E_SIZE,
                    "%s: tensor %s has the unknown dtype %s, whose width only its bytes tell",
                    quote(what).text, quote(tensor->name).text, quote(tensor->dtype).text);
    return known_bytes(what, tensor, elements, ret_bytes);
}

enum ulp_status tensor_measure(const char *what, struct ulp_tensor *tensor, uint64_t stored_bytes) {
    uint64_t elements = 0, bytes = 0;
    uint32_t bits = dtype_bits(tensor->dtype);
    enum ulp_status status;

    if (!dtype_name_allowed(tensor->dtype))
        return fail(ULP_E_NAME, "%s: tensor %s has the impossible dtype %s", quote(what).text,
                    quote(tensor->name).text, quote(tensor->dtype).text);
    status = count_elements(what, tensor, &elements);
    if (status)
        return status;
    if (!bits) {
        status = derive_bits(what, tensor, elements, stored_bytes, &bits);
    } else {
        status = known_bytes(what, tensor, elements, &bytes);
        if (!status && bytes != stored_bytes)
            status =
                fail(ULP_E_SIZE,
                     "%s: tensor %s: dtype %s and its shape need %llu bytes, but %llu are there",
                     quote(what).text, quote(tensor->name).text, tensor->dtype,
                     (unsigned long long)bytes, (unsigned long long)stored_bytes);
    }
    if (status)
        return status;
    tensor->bits = bits;
    tensor->elements = elements;
    tensor->bytes = stored_bytes;
    return ULP_OK;
}

enum ulp_status tensor_check_all(const struct ulp_tensor *tensors, size_t count,
                                 enum tensor_data data) {
    for (size_t i = 0; i < count; i++) {
        struct ulp_tensor copy = tensors[i];
        enum ulp_status status;

        if (!copy.name || !copy.dtype || (copy.rank && !copy.shape) ||
            (data == TENSOR_WITH_DATA && copy.bytes && !copy.data))
            return fail(ULP_E_USAGE, "tensor %zu lacks its name, dtype, shape or data", i);
        status = tensor_check_name("tensor", copy.name);
        if (!status)
            status = tensor_measure("tensor", &copy, copy.bytes);
        if (status)
            return status;
        if (copy.bits != tensors[i].bits || copy.elements != tensors[i].elements)
            return fail(ULP_E_USAGE, "tensor %s was not measured; call ulp_tensor_measure() first",
                        quote(copy.name).text);
    }
    return ULP_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct ulp_tensor *)a)->name, ((const struct ulp_tensor *)b)->name);
}

enum ulp_status tensor_sort(const char *what, struct ulp_tensor *tensors, size_t count) {
    qsort(tensors, count, sizeof *tensors, by_name);
    for (size_t i = 1; i < count; i++) {
        if (!by_name(&tensors[i - 1], &tensors[i]))
            return fail(ULP_E_DUPLICATE, "%s: the tensor %s occurs twice", quote(what).text,
                        quote(tensors[i].name).text);
    }
    return ULP_OK;
}

const struct ulp_tensor *tensor_find(const struct ulp_tensor *tensors, size_t count,
                                     const char *name) {
    struct ulp_tensor key = {.name = name};

    return count ? bsearch(&key, tensors, count, sizeof *tensors, by_name) : NULL;
}
