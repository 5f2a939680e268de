// SPDX-License-Identifier: Apache-2.0
#include "patch/masters.h"

#include "base/quote.h"
#include "patch/layout.h"
#include "tensor/tensor.h"

#include <stdbool.h>
#include <string.h>

static bool can_be_cast_to(const char *dtype) {
    return strcmp(dtype, "BF16") == 0 || strcmp(dtype, "F16") == 0 || strcmp(dtype, "F32") == 0;
}

static bool same_shape(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    return a->rank == b->rank &&
           (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

static enum ulp_status check(const struct ulp_tensor *master, const struct ulp_tensor *tensor) {
    const struct quoted name = quote(master->name);

    if (!tensor)
        return fail(ULP_E_LAYOUT, "there is a master for %s, which the weights have not",
                    name.text);
    if (strcmp(master->dtype, "F32") != 0)
        return fail(ULP_E_LAYOUT, "the master of %s is %s; masters are F32", name.text,
                    quote(master->dtype).text);
    if (!can_be_cast_to(tensor->dtype))
        return fail(ULP_E_LAYOUT, "%s is %s; masters are cast to BF16, F16 and F32", name.text,
                    quote(tensor->dtype).text);
    if (!same_shape(master, tensor))
        return fail(ULP_E_LAYOUT, "%s and its master have different shapes", name.text);
    if ((uintptr_t)master->data % sizeof(float))
        return fail(ULP_E_USAGE, "the master of %s is not aligned to its elements", name.text);
    return ULP_OK;
}

enum ulp_status masters_match(const struct ulp_weights *weights, const struct ulp_tensor *masters,
                              size_t count, struct arena *arena, const void ***ret_data) {
    const void **data = NULL;
    struct ulp_tensor *sorted = NULL;
    enum ulp_status status = tensor_check_all(masters, count, TENSOR_WITH_DATA);

    if (!status)
        status = layout_copy(masters, count, arena, &sorted);
    if (!status)
        status = arena_zeroed(arena, weights->count, sizeof *data, &data);
    for (size_t i = 0; !status && i < count; i++) {
        const struct ulp_tensor *tensor =
            tensor_find(weights->tensors, weights->count, sorted[i].name);

        status = check(&sorted[i], tensor);
        if (!status)
            data[tensor - weights->tensors] = sorted[i].data;
    }
    if (!status)
        *ret_data = data;
    return status;
}
