// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_copy.h"

#include "base/memory.h"
#include "base/quote.h"
#include "cuda/memory.h"

#include <string.h>

/* Of what is read, two pieces are on their way. */
#define READ_BYTES ((size_t)8 << 20)

enum ulp_status device_memory_take(size_t bytes, void **ret_memory) {
    return device_status(cuda_memory_new(bytes, ret_memory), "a state");
}

void device_memory_give(void *memory) {
    cuda_memory_free(memory);
}

enum ulp_status device_copy_bytes(void *to, const void *from, size_t bytes, void *stream) {
    return device_status(cuda_copy_in(to, from, bytes, stream), "copying weights");
}

enum ulp_status device_copy_wait(void *stream) {
    return device_status(cuda_wait(stream), "copying weights");
}

/* ---- to the host ---- */

static size_t piece_at(size_t bytes, size_t at) {
    return bytes - at < READ_BYTES ? bytes - at : READ_BYTES;
}

enum ulp_status device_copy_out(const void *from, size_t bytes, struct room *room, void *stream,
                                const struct ulp_sink *sink) {
    const uint8_t *data = from;
    enum ulp_status status =
        room->memory ? ULP_OK : room_take(&(struct room){0}, 2 * READ_BYTES, true, room);
    uint8_t *now = room->memory, *next = room->memory + READ_BYTES;

    if (!status && bytes)
        status = device_copy_bytes(now, data, piece_at(bytes, 0), stream);
    for (size_t at = 0; !status && at < bytes; at += READ_BYTES) {
        uint8_t *const filled = now;

        status = device_copy_wait(stream);
        if (!status && at + READ_BYTES < bytes)
            status = device_copy_bytes(next, data + at + READ_BYTES,
                                       piece_at(bytes, at + READ_BYTES), stream);
        if (!status)
            status = sink->write(sink->user, filled, piece_at(bytes, at));
        now = next;
        next = filled;
    }
    if (status && room->memory)
        (void)cuda_wait(stream); /* the room is used again */
    return status;
}

/* ---- over what is there ---- */

static enum ulp_status mark(struct device_weights *weights, uint32_t poisoned) {
    enum ulp_status status =
        cuda_copy_in(weights->poisoned, &poisoned, sizeof poisoned, weights->stream);

    if (!status)
        status = cuda_wait(weights->stream);
    return device_status(status, "marking the weights");
}

static enum ulp_status copy_all(struct device_weights *weights, const struct ulp_tensor *tensors) {
    const struct ulp_weights *to = weights->weights;
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < to->count; i++) {
        if (to->tensors[i].bytes)
            status = device_copy_bytes(to->tensors[i].data, tensors[i].data,
                                       (size_t)to->tensors[i].bytes, weights->stream);
    }
    return status ? status : device_copy_wait(weights->stream);
}

static enum ulp_status check_all(struct device_weights *weights, const struct ulp_sum *sums,
                                 struct ulp_sum *written) {
    const struct grid *grid = &weights->weights->grid;
    enum ulp_status status = device_weights_digest(weights, written);

    for (size_t i = 0; !status && i < grid->piece_count; i++) {
        if (memcmp(&written[i], &sums[i], sizeof *sums) != 0)
            status = fail(ULP_E_WRONG_RESULT,
                          "tensor %s was not written as it should be: the weights on the device "
                          "are neither old nor new now, and are marked so",
                          quote(piece_tensor(grid, i)->name).text);
    }
    return status;
}

enum ulp_status device_weights_write(struct device_weights *weights,
                                     const struct ulp_tensor *tensors, const struct ulp_sum *sums) {
    struct ulp_sum *written = NULL; /* taken first: nothing but the device may fail between */
    enum ulp_status status = device_weights_check(weights);

    if (!status)
        status = mem_zeroed(weights->weights->grid.piece_count, sizeof *written, &written);
    if (!status)
        status = mark(weights, 1);
    if (!status) {
        device_weights_forget(weights);
        status = copy_all(weights, tensors);
        if (!status)
            status = check_all(weights, sums, written);
        if (!status)
            status = mark(weights, 0);
    }
    mem_free(written);
    return status;
}
