// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_weights.h"

#include "base/memory.h"
#include "base/quote.h"
#include "cuda/digest_blocks.h"
#include "cuda/memory.h"
#include "gpu/device_cast.h"
#include "patch/table.h"

#include <string.h>

/* ---- sums ---- */

static enum ulp_status digest_to(const struct device_weights *weights, uint8_t *device,
                                 struct ulp_sum *ret_sums) {
    const size_t bytes = weights->plan.device.piece_count * sizeof *ret_sums;
    enum ulp_status status = cuda_clear(device, bytes, weights->stream);

    if (!status)
        status = cuda_digest_blocks(&weights->plan.device, (unsigned long long *)(void *)device,
                                    weights->stream);
    if (!status)
        status = cuda_copy_out(ret_sums, device, bytes, weights->stream);
    if (!status)
        status = cuda_wait(weights->stream);
    return device_status(status, "digesting the weights");
}

static enum ulp_status digest(struct device_weights *weights, struct ulp_sum *ret_sums) {
    struct room room = {0};
    enum ulp_status status = room_take(
        &weights->spare, weights->plan.device.piece_count * sizeof *ret_sums, false, &room);

    if (!status)
        status = digest_to(weights, room.memory, ret_sums);
    room_give(&weights->spare, &room);
    return status;
}

enum ulp_status device_weights_audit(struct device_weights *weights) {
    const struct grid *grid = &weights->weights->grid;
    const struct ulp_sum *expected = device_cast_sums(weights);
    struct ulp_sum *sums = NULL;
    enum ulp_status status = device_weights_check(weights);

    if (!status && !expected)
        return device_cast_none(weights, "an audit");
    if (!status)
        status = mem_zeroed(grid->piece_count, sizeof *sums, &sums);
    if (!status)
        status = digest(weights, sums);
    for (size_t i = 0; !status && i < grid->piece_count; i++) {
        if (memcmp(&sums[i], &expected[i], sizeof *sums) != 0)
            status = fail(ULP_E_WRONG_BASE,
                          "tensor %s is not what it was: something else wrote to it, or memory of "
                          "the device failed. Load the weights anew",
                          quote(piece_tensor(grid, i)->name).text);
    }
    mem_free(sums);
    return status;
}

/* ---- the flag ---- */

enum ulp_status device_weights_check(struct device_weights *weights) {
    uint32_t poisoned = 0;
    enum ulp_status status =
        cuda_copy_out(&poisoned, weights->poisoned, sizeof poisoned, weights->stream);

    if (!status)
        status = cuda_wait(weights->stream);
    if (!status && poisoned)
        return fail(ULP_E_POISONED,
                    "the weights on the device stand between two states: a "
                    "patch or a cast was being written when something died. Load them "
                    "anew");
    return device_status(status, "reading whether the weights are whole");
}

static enum ulp_status make_flag(struct device_weights *weights, uint32_t *poisoned) {
    enum ulp_status status = ULP_OK;

    weights->poisoned = poisoned;
    if (!poisoned) {
        status = room_take(&(struct room){0}, sizeof *poisoned, true, &weights->own_flag);
        weights->poisoned = (uint32_t *)(void *)weights->own_flag.memory;
        if (!status)
            *weights->poisoned = 0;
    }
    return status ? status : device_weights_check(weights);
}

/* ---- making ---- */

enum ulp_status device_weights_new(const struct ulp_tensor *tensors, size_t count,
                                   uint32_t *poisoned, void *stream,
                                   struct device_weights **ret_weights) {
    struct device_weights *weights = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *weights, &weights);

    if (status)
        return status;
    weights->stream = stream;
    status = weights_new_elsewhere(tensors, count, &weights->weights);
    if (!status)
        status = make_flag(weights, poisoned);
    if (!status)
        status = device_plan_make(&weights->weights->grid, weights->weights->tensors, stream,
                                  &weights->plan);
    if (!status)
        status = digest(weights, weights->weights->sums);
    if (!status)
        status =
            table_root(&weights->weights->grid, weights->weights->sums, &weights->weights->root);
    if (status) {
        device_weights_free(weights);
        return status;
    }
    *ret_weights = weights;
    return ULP_OK;
}

void device_weights_trim(struct device_weights *weights) {
    room_release(&weights->spare);
    room_release(&weights->spare_bytes);
    room_release(&weights->spare_arrays);
    device_cast_trim(weights->cast);
    cuda_encoder_free(weights->encoder);
    weights->encoder = NULL;
    workers_trim(weights->weights->workers);
}

void device_weights_forget(struct device_weights *weights) {
    device_moves_free(weights->moves);
    moves_free(weights->weights->moves);
    weights->moves = NULL;
    weights->weights->moves = NULL;
}

void device_weights_free(struct device_weights *weights) {
    if (!weights)
        return;
    device_cast_free(weights->cast);
    device_moves_free(weights->moves);
    weights_free(weights->weights);
    cuda_encoder_free(weights->encoder);
    device_plan_release(&weights->plan);
    room_release(&weights->own_flag);
    room_release(&weights->spare);
    room_release(&weights->spare_bytes);
    room_release(&weights->spare_arrays);
    mem_free(weights);
}
