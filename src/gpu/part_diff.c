// SPDX-License-Identifier: Apache-2.0
#include "gpu/part_diff.h"

#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/part_plan.h"

/* From scratch: the sums of regions are not among those of a whole state. */
static enum ulp_status digest_new(struct device_weights *weights, const struct device_plan *plan,
                                  struct ulp_sum *ret_sums) {
    const size_t bytes = plan->device.piece_count * sizeof *ret_sums;
    struct room room = {0};
    enum ulp_status status = room_take(&weights->spare, bytes, false, &room);

    if (!status) {
        status = cuda_clear(room.memory, bytes, weights->stream);
        if (!status)
            status = cuda_digest_places(&plan->device, plan->device_places, 1,
                                        (unsigned long long *)(void *)room.memory, weights->stream);
        if (!status)
            status = cuda_copy_out(ret_sums, room.memory, bytes, weights->stream);
        if (!status)
            status = cuda_wait(weights->stream);
        status = device_status(status, "digesting regions");
    }
    room_give(&weights->spare, &room);
    return status;
}

/* How many chunks from `first` on are made at once. */
static size_t chunks_of_round(const struct device_plan *all, size_t first, size_t most) {
    uint32_t end = 0;
    size_t last = first + 1;

    part_plan_round(all, all->segments[first].first_block, most, &end);
    while (last < all->device.segment_count &&
           all->segments[last].first_block + all->segments[last].blocks <= end)
        last++;
    return last - first;
}

/* Copies of old and new columns, one behind the other. */
static enum ulp_status pack(struct device_weights *weights, struct device_plan *plan,
                            struct room *packed) {
    const uint32_t blocks = plan->device.block_count;
    uint32_t end = 0;
    const size_t bytes = part_plan_round(plan, 0, SIZE_MAX, &end);
    enum ulp_status status = ULP_OK;

    if (bytes) {
        status = room_take(&weights->spare_packed, 2 * bytes, false, packed);
        if (!status)
            part_plan_point(plan, 0, blocks, packed->memory, packed->memory + bytes);
    }
    if (!status)
        status = part_plan_upload(plan, &weights->spare_plan, weights->stream);
    for (int next = 0; !status && bytes && next < 2; next++)
        status = part_plan_pack(plan, 0, blocks, next, weights->stream);
    return status;
}

static enum ulp_status make_round(struct device_weights *weights, const struct part_view *view,
                                  const struct ulp_tensor *new, part_round_fn round, void *user) {
    struct device_plan plan = {0};
    struct cuda_encoder *encoder = NULL;
    struct room packed = {0};
    enum ulp_status status = part_plan_make(view, &plan);

    if (!status)
        status = part_plan_set_new(&plan, view, new);
    if (!status)
        status = pack(weights, &plan, &packed);
    if (!status)
        status = part_encoder_for(&weights->part_encoders, &plan, &encoder);
    if (!status)
        status = round(user, &plan, encoder, view->first_chunk);
    if (status)
        (void)cuda_wait(weights->stream); /* nothing may be read from memory that goes */
    room_give(&weights->spare_packed, &packed);
    room_give(&weights->spare_plan, &plan.room);
    device_plan_release(&plan);
    return status;
}

/* Of a tile only regions that it holds are known. */
static enum ulp_status check_held(const struct ulp_weights *weights, const struct grid *grid) {
    size_t *first = NULL;
    enum ulp_status status =
        weights->grid.whole ? ULP_OK : grid_find_regions(&weights->grid, grid, &first);

    mem_free(first);
    return status;
}

enum ulp_status part_diff(struct device_weights *weights, const struct grid *grid,
                          const struct ulp_tensor *new, struct ulp_sum *ret_sums,
                          part_round_fn round, void *user) {
    struct part_view view = {.grids = &grid, .count = 1, .tensors = weights->weights->tensors};
    struct device_plan all = {0};
    enum ulp_status status = check_held(weights->weights, grid);

    if (!status)
        status = part_plan_make(&view, &all);
    if (!status)
        status = part_plan_set_new(&all, &view, new);
    if (!status)
        status = part_plan_upload(&all, &weights->spare_plan, weights->stream);
    if (!status)
        status = digest_new(weights, &all, ret_sums);
    room_give(&weights->spare_plan, &all.room);
    for (; !status && view.first_chunk < grid->chunk_count; view.first_chunk += view.chunks) {
        view.chunks = chunks_of_round(&all, view.first_chunk, weights->packed_most);
        status = make_round(weights, &view, new, round, user);
    }
    part_encoders_next(&weights->part_encoders);
    device_plan_release(&all);
    return status;
}
