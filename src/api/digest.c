// SPDX-License-Identifier: Apache-2.0
/* Public entry points on digests. */
#include "base/memory.h"
#include "base/quote.h"
#include "base/status.h"
#include "base/word.h"
#include "digest/root.h"
#include "scan/digest_sum.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <ulpsync/ulpsync.h>

static enum ulp_status missing(const char *function) {
    return fail(ULP_E_USAGE, "%s: a required argument is NULL", function);
}

enum ulp_status ulp_state_digest(const struct ulp_tensor *tensors, size_t count,
                                 struct ulp_pool *pool, const struct ulp_progress *progress,
                                 struct ulp_sum *ret_sums, struct ulp_root *ret_root) {
    enum ulp_status status;

    if ((count && !tensors) || !ret_root)
        return missing(__func__);
    status = tensor_check_all(tensors, count, TENSOR_WITH_DATA);
    return status ? status : state_digest(tensors, count, pool, progress, ret_sums, ret_root);
}

enum ulp_status ulp_state_root(const struct ulp_tensor *tensors, size_t count,
                               const struct ulp_sum *sums, struct ulp_root *ret_root) {
    size_t *order = NULL;
    enum ulp_status status;

    if ((count && (!tensors || !sums)) || !ret_root)
        return missing(__func__);
    status = tensor_check_all(tensors, count, TENSOR_WITHOUT_DATA);
    if (!status)
        status = mem_zeroed(count, sizeof *order, &order);
    if (!status)
        status = root_order(tensors, count, order);
    if (!status)
        status = root_of_sums(tensors, order, count, sums, ret_root);
    mem_free(order);
    return status;
}

/* Positions are strictly ascending and inside the tensor. */
static enum ulp_status check_positions(const struct ulp_tensor *tensor, uint64_t units,
                                       uint64_t first, const uint32_t *positions, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (first > units || positions[i] >= units - first)
            return fail(ULP_E_USAGE, "position %llu + %u is outside of tensor %s",
                        (unsigned long long)first, positions[i], quote(tensor->name).text);
        if (i && positions[i] <= positions[i - 1])
            return fail(ULP_E_USAGE, "positions must ascend; %u follows %u", positions[i],
                        positions[i - 1]);
    }
    return ULP_OK;
}

enum ulp_status ulp_sum_replace(const struct ulp_tensor *tensor, uint64_t first_element,
                                const uint32_t *positions, const void *values, size_t count,
                                struct ulp_sum *sum) {
    unsigned width;
    uint64_t at;
    enum ulp_status status;

    if (!tensor || !sum || (count && (!positions || !values)))
        return missing(__func__);
    status = tensor_check_all(tensor, 1, TENSOR_WITH_DATA);
    if (status)
        return status;
    width = word_bytes_of(tensor->bits);
    if (first_element % 8)
        return fail(ULP_E_USAGE, "the first element, %llu, is not a multiple of 8",
                    (unsigned long long)first_element);
    status = check_positions(tensor, tensor->bytes / width, first_element, positions, count);
    if (status || !count)
        return status;
    at = first_element * width;
    digest_replace((const uint8_t *)tensor->data + at, (size_t)(tensor->bytes - at),
                   at / DIGEST_WORD_BYTES, width, positions, count, values, sum);
    return ULP_OK;
}

void ulp_root_hex(const struct ulp_root *root, char ret_hex[ULP_ROOT_HEX_BYTES]) {
    for (size_t i = 0; i < ULP_ROOT_BYTES; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", root->bytes[i]);
}
