// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_weights.h"

#include "base/memory.h"
#include "base/quote.h"
#include "cuda/digest_blocks.h"
#include "cuda/memory.h"
#include "gpu/device_cast.h"
#include "gpu/device_second.h"
#include "gpu/part_plan.h"
#include "patch/table.h"

#include <string.h>

/* ---- sums ---- */

static enum ulp_status digest_to(const struct device_weights *weights,
                                 const struct device_plan *plan, uint8_t *device,
                                 struct ulp_sum *ret_sums) {
    const size_t bytes = plan->device.piece_count * sizeof *ret_sums;
    enum ulp_status status = cuda_clear(device, bytes, weights->stream);

    if (!status && plan->places)
        status = cuda_digest_places(&plan->device, plan->device_places, 0,
                                    (unsigned long long *)(void *)device, weights->stream);
    else if (!status)
        status = cuda_digest_blocks(&plan->device, (unsigned long long *)(void *)device,
                                    weights->stream);
    if (!status)
        status = cuda_copy_out(ret_sums, device, bytes, weights->stream);
    if (!status)
        status = cuda_wait(weights->stream);
    return device_status(status, "digesting the weights");
}

static enum ulp_status digest(struct device_weights *weights, const struct device_plan *plan,
                              struct ulp_sum *ret_sums) {
    struct room room = {0};
    enum ulp_status status =
        room_take(&weights->spare, plan->device.piece_count * sizeof *ret_sums, false, &room);

    if (!status)
        status = digest_to(weights, plan, room.memory, ret_sums);
    room_give(&weights->spare, &room);
    return status;
}

enum ulp_status device_weights_digest(struct device_weights *weights, struct ulp_sum *ret_sums) {
    return digest(weights, &weights->plan, ret_sums);
}

/* The first piece that does not sum up to what it should; piece_count if all do. */
static enum ulp_status find_changed(struct device_weights *weights, const struct device_plan *plan,
                                    const struct ulp_sum *expected, size_t *ret_piece) {
    struct ulp_sum *sums = NULL;
    size_t piece = 0;
    enum ulp_status status = mem_zeroed(plan->device.piece_count, sizeof *sums, &sums);

    if (!status)
        status = digest(weights, plan, sums);
    while (!status && piece < plan->device.piece_count &&
           memcmp(&sums[piece], &expected[piece], sizeof *sums) == 0)
        piece++;
    mem_free(sums);
    *ret_piece = piece;
    return status;
}

/* The root of the next state would not tell: it is computed from the present one. */
static enum ulp_status audit_second(struct device_weights *weights) {
    const struct grid *grid = &weights->weights->grid;
    struct device_second *second = weights->second;
    size_t piece = 0;
    enum ulp_status status = find_changed(weights, &second->plan, second->sums, &piece);

    if (status || piece == grid->piece_count)
        return status;
    second->whole = false;
    return fail(ULP_E_WRONG_BASE,
                "tensor %s of the state that is not in use is not what it was: something else "
                "wrote to it, or memory of the device failed. The next patch copies it anew",
                quote(piece_tensor(grid, piece)->name).text);
}

enum ulp_status device_weights_audit(struct device_weights *weights) {
    const struct grid *grid = &weights->weights->grid;
    const struct ulp_sum *expected = device_cast_sums(weights);
    size_t piece = 0;
    enum ulp_status status =
        device_weights_check_here(weights, "digest them with ulp_weights_new() and compare roots");

    if (!status)
        status = device_weights_check(weights);
    if (!status && !expected)
        status = device_cast_none(weights, "an audit");
    if (!status)
        status = find_changed(weights, &weights->plan, expected, &piece);
    if (!status && piece < grid->piece_count)
        status = fail(ULP_E_WRONG_BASE,
                      "tensor %s is not what it was: something else wrote to it, or memory of "
                      "the device failed. Load the weights anew",
                      quote(piece_tensor(grid, piece)->name).text);
    return !status && weights->second ? audit_second(weights) : status;
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

static enum ulp_status plan_tile(struct device_weights *weights) {
    const struct grid *grid = &weights->weights->grid;
    const struct part_view view = {
        .grids = &grid, .count = 1, .tensors = weights->weights->tensors};
    enum ulp_status status = part_plan_make(&view, &weights->plan);

    if (!status)
        status = part_plan_upload(&weights->plan, &(struct room){0}, weights->stream);
    return status ? status
                  : device_status(cuda_wait(weights->stream), "taking the description of a tile");
}

/* All but the root. */
static enum ulp_status fill(struct device_weights *weights, uint32_t *poisoned) {
    const struct grid *grid = &weights->weights->grid;
    enum ulp_status status = make_flag(weights, poisoned);

    if (!status && grid->whole)
        status = device_plan_make(grid, weights->weights->tensors, weights->stream, &weights->plan);
    else if (!status)
        status = plan_tile(weights);
    return status ? status : digest(weights, &weights->plan, weights->weights->sums);
}

enum ulp_status device_weights_new(const struct ulp_tensor *tensors, size_t count,
                                   uint32_t *poisoned, void *stream,
                                   struct device_weights **ret_weights) {
    struct device_weights *weights = NULL;
    enum ulp_status status = mem_zeroed(1, sizeof *weights, &weights);

    if (status)
        return status;
    weights->stream = stream;
    weights->packed_most = PART_PACKED_MOST;
    status = weights_new_elsewhere(tensors, count, NULL, 0, &weights->weights);
    if (!status)
        status = fill(weights, poisoned);
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

/* Nothing is written to it: only an apply would, and those are refused. */
static struct ulp_weights *borrow(const struct ulp_weights *snapshot) {
    union {
        const struct ulp_weights *given;
        struct ulp_weights *taken;
    } same = {snapshot};

    return same.taken;
}

enum ulp_status device_weights_on_host(const struct ulp_weights *snapshot, size_t window_bytes,
                                       void *stream, struct device_weights **ret_weights) {
    struct device_weights *weights = NULL;
    enum ulp_status status = weights_check_whole(snapshot, "comparing on a GPU");

    if (!status)
        status = mem_zeroed(1, sizeof *weights, &weights);
    if (status)
        return status;
    weights->stream = stream;
    weights->weights = borrow(snapshot);
    status = device_plan_list(&snapshot->grid, snapshot->tensors, &weights->plan);
    if (!status)
        status = windows_new(snapshot, &weights->plan, false, window_bytes, &weights->windows);
    if (!status)
        status = make_flag(weights, NULL);
    if (status) {
        weights->weights = NULL;
        device_weights_free(weights);
        return status;
    }
    *ret_weights = weights;
    return ULP_OK;
}

enum ulp_status device_weights_new_tile(const struct ulp_tensor *tensors, size_t count,
                                        const struct ulp_region *regions, size_t region_count,
                                        const struct ulp_root *state, uint32_t *poisoned,
                                        void *stream, struct device_weights **ret_weights) {
    struct device_weights *weights = NULL;
    enum ulp_status status =
        region_count ? mem_zeroed(1, sizeof *weights, &weights) : weights_empty_tile();

    if (status)
        return status;
    weights->stream = stream;
    weights->packed_most = PART_PACKED_MOST;
    status = weights_new_elsewhere(tensors, count, regions, region_count, &weights->weights);
    if (!status)
        status = fill(weights, poisoned);
    if (status) {
        device_weights_free(weights);
        return status;
    }
    weights->weights->root = *state;
    *ret_weights = weights;
    return ULP_OK;
}

enum ulp_status device_weights_check_here(const struct device_weights *weights,
                                          const char *instead) {
    return weights->windows
               ? fail(ULP_E_USAGE, "these weights are in the host's memory: %s", instead)
               : ULP_OK;
}

static void release_parts(struct device_weights *weights) {
    part_encoders_release(&weights->part_encoders);
    room_release(&weights->spare_plan);
    room_release(&weights->spare_packed);
}

void device_weights_trim(struct device_weights *weights) {
    room_release(&weights->spare);
    room_release(&weights->spare_bytes);
    room_release(&weights->spare_arrays);
    device_cast_trim(weights->cast);
    cuda_encoder_free(weights->encoder);
    weights->encoder = NULL;
    if (weights->windows)
        windows_trim(weights->windows);
    if (weights->rounds)
        windows_trim(weights->rounds);
    release_parts(weights);
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
    device_second_free(weights->second);
    if (!weights->windows)
        weights_free(weights->weights);
    windows_free(weights->windows);
    windows_free(weights->rounds);
    cuda_encoder_free(weights->encoder);
    release_parts(weights);
    device_plan_release(&weights->plan);
    room_release(&weights->own_flag);
    room_release(&weights->spare);
    room_release(&weights->spare_bytes);
    room_release(&weights->spare_arrays);
    mem_free(weights);
}
