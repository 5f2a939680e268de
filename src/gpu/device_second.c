// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_second.h"

#include "base/memory.h"
#include "base/quote.h"
#include "cuda/decode_second.h"
#include "cuda/memory.h"
#include "gpu/device_cast.h"
#include "patch/fit.h"

#include <stdlib.h>
#include <string.h>

/* ---- attaching ---- */

struct stretch {
    uintptr_t begin, end;
    const char *name;
};

static int by_address(const void *a, const void *b) {
    const uintptr_t x = ((const struct stretch *)a)->begin, y = ((const struct stretch *)b)->begin;

    return x < y ? -1 : x > y;
}

/* What is written must be nobody else's. */
static enum ulp_status refuse_shared_memory(const struct ulp_tensor *front,
                                            const struct ulp_tensor *back, size_t count) {
    struct stretch *sorted = NULL, last = {0};
    size_t used = 0;
    enum ulp_status status = mem_zeroed(2 * count, sizeof *sorted, &sorted);

    for (size_t i = 0; !status && i < 2 * count; i++) {
        const struct ulp_tensor *tensor = i < count ? &front[i] : &back[i - count];
        const uintptr_t begin = (uintptr_t)tensor->data;

        if (tensor->bytes)
            sorted[used++] =
                (struct stretch){begin, begin + (uintptr_t)tensor->bytes, tensor->name};
    }
    if (used)
        qsort(sorted, used, sizeof *sorted, by_address);
    for (size_t i = 0; !status && i < used; i++) {
        if (last.end > sorted[i].begin)
            status = fail(ULP_E_OVERLAP,
                          "tensors %s and %s share memory: a second state has memory of its own",
                          quote(last.name).text, quote(sorted[i].name).text);
        last = sorted[i];
    }
    mem_free(sorted);
    return status;
}

static enum ulp_status copy_everything(const struct device_weights *weights,
                                       const struct device_second *second) {
    const struct ulp_tensor *from = weights->weights->tensors;
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < weights->weights->count; i++) {
        if (from[i].bytes)
            status = cuda_copy_in(second->tensors[i].data, from[i].data, (size_t)from[i].bytes,
                                  weights->stream);
    }
    return status;
}

static enum ulp_status read_number(struct device_second *second, uint32_t *front, void *stream) {
    enum ulp_status status = ULP_OK;

    second->shown = front;
    if (!front)
        return ULP_OK;
    status = cuda_copy_out(&second->front, front, sizeof *front, stream);
    if (!status)
        status = cuda_wait(stream);
    if (!status && second->front > 1)
        return fail(ULP_E_USAGE,
                    "the number of the state in use is %u; it is 0 or 1 before a second one comes",
                    second->front);
    return device_status(status, "reading which state is in use");
}

static enum ulp_status describe(struct device_weights *weights, const struct ulp_tensor *tensors,
                                size_t count, struct device_second *second) {
    const struct ulp_weights *of = weights->weights;
    enum ulp_status status = weights_match(of, tensors, count, &second->arena, &second->tensors);

    if (!status)
        status = refuse_shared_memory(of->tensors, second->tensors, count);
    if (!status)
        status = device_plan_make(&of->grid, second->tensors, weights->stream, &second->plan);
    if (!status)
        status = mem_zeroed(of->grid.piece_count, sizeof *second->sums, &second->sums);
    if (!status && of->grid.piece_count)
        memcpy(second->sums, of->sums, of->grid.piece_count * sizeof *second->sums);
    second->root = of->root;
    return status;
}

enum ulp_status device_second_attach(struct device_weights *weights,
                                     const struct ulp_tensor *tensors, size_t count,
                                     uint32_t *front) {
    struct device_second *second = NULL;
    enum ulp_status status;

    if (weights->second)
        return fail(ULP_E_USAGE, "the weights have a second state already");
    status = device_weights_check_here(weights, "only weights on the device have a second state");
    if (!status)
        status = weights_check_whole(weights->weights, "a second state");
    if (!status)
        status = device_cast_none(weights, "a second state");
    if (!status)
        status = device_weights_check(weights);
    if (!status)
        status = mem_zeroed(1, sizeof *second, &second);
    if (status)
        return status;
    status = describe(weights, tensors, count, second);
    if (!status)
        status = read_number(second, front, weights->stream);
    if (!status) {
        status = copy_everything(weights, second);
        if (!status)
            status = cuda_wait(weights->stream);
        status = device_status(status, "copying the weights");
    }
    if (status) {
        device_second_free(second);
        return status;
    }
    second->whole = true;
    weights->second = second;
    return ULP_OK;
}

void device_second_free(struct device_second *second) {
    if (!second)
        return;
    device_plan_release(&second->plan);
    room_release(&second->room);
    room_release(&second->next);
    mem_free(second->sums);
    arena_release(&second->arena);
    mem_free(second);
}

/* ---- the list ---- */

/* Where its parts are, laid out. */
struct list_layout {
    size_t positions, position_bytes, blocks, block_bytes;
    size_t bytes; /* of all */
};

static struct list_layout lay_out(const struct cuda_decode *decode, uint64_t changes) {
    struct list_layout layout = {.position_bytes = (size_t)changes * sizeof(uint32_t)};
    uint32_t blocks = 0;

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        blocks += decode->ranges[w].all;
    layout.block_bytes = blocks * sizeof(struct decode_block);
    layout.positions = room_place(&layout.bytes, 1, layout.position_bytes);
    layout.blocks = room_place(&layout.bytes, 1, layout.block_bytes);
    return layout;
}

/* An eighth more than it takes: patches differ a little, and taking memory stops the device. */
enum ulp_status device_second_reserve(struct device_weights *weights,
                                      const struct cuda_decode *decode, uint64_t changes) {
    struct device_second *second = weights->second;
    const size_t bytes = lay_out(decode, changes).bytes;

    if (second->room.bytes >= bytes || second->next.bytes >= bytes)
        return ULP_OK;
    room_release(&second->next);
    return room_take(&(struct room){0}, bytes + bytes / 8, false, &second->next);
}

/* Enqueued behind what reads the list before, whose memory it may take. */
static enum ulp_status copy_list(const struct cuda_decode *decode, const struct list_layout *layout,
                                 uint8_t *room, void *stream) {
    enum ulp_status status = ULP_OK;

    if (layout->position_bytes)
        status = cuda_copy_in(room + layout->positions, decode->positions, layout->position_bytes,
                              stream);
    if (!status && layout->block_bytes)
        status = cuda_copy_in(room + layout->blocks, decode->blocks, layout->block_bytes, stream);
    return status;
}

static void take_list(struct device_second *second, const struct cuda_decode *decode,
                      const struct list_layout *layout) {
    if (second->room.bytes < layout->bytes) {
        room_release(&second->room);
        second->room = second->next;
        second->next = (struct room){0};
    }
    second->list = (struct cuda_decode){
        .blocks = (const struct decode_block *)(void *)(second->room.memory + layout->blocks),
        .positions = (uint32_t *)(void *)(second->room.memory + layout->positions)};
    memcpy(second->list.ranges, decode->ranges, sizeof decode->ranges);
}

/* ---- writing ---- */

/* Before root and sums of the weights change. */
static void change_roles(struct device_weights *weights) {
    struct device_second *second = weights->second;
    struct ulp_weights *of = weights->weights;
    const struct device_plan plan = weights->plan;

    weights->plan = second->plan;
    second->plan = plan;
    for (size_t i = 0; i < of->count; i++) {
        void *data = of->tensors[i].data;

        of->tensors[i].data = second->tensors[i].data;
        second->tensors[i].data = data;
    }
    if (of->grid.piece_count)
        memcpy(second->sums, of->sums, of->grid.piece_count * sizeof *second->sums);
    second->root = of->root;
    second->front = 1 - second->front;
}

static enum ulp_status show_and_wait(const struct device_weights *weights) {
    const struct device_second *second = weights->second;
    enum ulp_status status = ULP_OK;

    if (second->shown)
        status = cuda_set_word(second->shown, 1 - second->front, weights->stream);
    return status ? status : cuda_wait(weights->stream);
}

/* Until it is done the back is nothing. */
static enum ulp_status write_back(struct device_weights *weights, const struct cuda_decode *decode,
                                  const struct list_layout *layout) {
    struct device_second *second = weights->second;
    const struct cuda_block *from = weights->plan.device.blocks, *to = second->plan.device.blocks;
    const bool was_whole = second->whole;
    uint8_t *room = second->room.bytes < layout->bytes ? second->next.memory : second->room.memory;
    enum ulp_status status;

    second->whole = false;
    if (was_whole)
        status = cuda_second_catch_up(&second->list, from, to, weights->stream);
    else
        status = copy_everything(weights, second);
    if (!status)
        status = cuda_second_write(decode, from, to, weights->stream);
    if (!status)
        status = copy_list(decode, layout, room, weights->stream);
    return status ? status : show_and_wait(weights);
}

enum ulp_status device_second_write(struct device_weights *weights,
                                    const struct cuda_decode *decode, uint64_t changes,
                                    const struct ulp_root *to) {
    struct device_second *second = weights->second;
    const struct list_layout layout = lay_out(decode, changes);
    const bool there = second->whole && same_root(&second->root, to);
    enum ulp_status status;

    if (there) {
        status = cuda_second_write(decode, weights->plan.device.blocks, NULL, weights->stream);
        if (!status)
            status = show_and_wait(weights);
    } else {
        status = write_back(weights, decode, &layout);
    }
    if (status)
        return device_status(status, "writing the state beside the weights, which are what they "
                                     "were");
    if (!there)
        take_list(second, decode, &layout);
    second->whole = true;
    change_roles(weights);
    return ULP_OK;
}
