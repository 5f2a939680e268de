// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/emulated/device.h"

#include "base/word.h"

struct on_device device_copy(const struct state *state, size_t skew) {
    struct on_device device = {.count = state->count};

    device.tensors = calloc(state->count ? state->count : 1, sizeof *device.tensors);
    device.memory = calloc(state->count ? state->count : 1, sizeof *device.memory);
    assert_true(device.tensors && device.memory);
    for (size_t i = 0; i < state->count; i++) {
        const struct ulp_tensor *from = &state->tensors[i];
        const size_t in_front = skew * word_bytes_of(from->bits);
        uint8_t *memory = malloc(in_front + (size_t)from->bytes + !from->bytes);

        assert_non_null(memory);
        if (from->bytes)
            memcpy(memory + in_front, from->data, (size_t)from->bytes);
        device.memory[i] = memory;
        device.tensors[i] = *from;
        device.tensors[i].data = memory + in_front;
    }
    return device;
}

void device_release(struct on_device *device) {
    for (size_t i = 0; i < device->count; i++)
        free(device->memory[i]);
    free(device->memory);
    free(device->tensors);
    *device = (struct on_device){0};
}

void assert_on_device(const struct on_device *device, const struct state *state) {
    for (size_t i = 0; i < state->count; i++) {
        if (state->tensors[i].bytes && memcmp(device->tensors[i].data, state->tensors[i].data,
                                              (size_t)state->tensors[i].bytes) != 0)
            fail_msg("tensor %s differs", state->tensors[i].name);
    }
}

struct device_weights *device_weights_of(const struct on_device *device) {
    struct device_weights *weights = NULL;

    assert_ok(device_weights_new(device->tensors, device->count, NULL, NULL, &weights));
    return weights;
}

static void assert_same_moves(const struct device_weights *device, const struct ulp_weights *host) {
    const decode_move *moves = (const decode_move *)(const void *)device->moves->room.memory;

    for (size_t c = 0; c < host->grid.chunk_count; c++) {
        const struct cuda_segment *segment = &device->plan.segments[c];

        for (uint32_t b = 0; b < segment->blocks; b++) {
            const uint32_t block = segment->first_block + b;
            struct code_block expected = {0};

            chunk_moves_of(&host->moves->chunks[c], b, &expected);
            assert_int_equal(device->moves->count[block], expected.move_count);
            for (uint32_t i = 0; i < expected.move_count; i++) {
                const decode_move move = moves[device->moves->first[block] + i];

                if (move >> 8 != expected.moves[i].position ||
                    (int8_t)(move & 255) != expected.moves[i].move)
                    fail_msg("chunk %zu, block %u: move %u differs", c, b, i);
            }
        }
    }
}

void assert_same_weights(const struct device_weights *device, const struct ulp_weights *host) {
    const struct ulp_weights *described = device->weights;

    assert_int_equal(described->grid.piece_count, host->grid.piece_count);
    for (size_t i = 0; i < host->grid.piece_count; i++)
        assert_memory_equal(&described->sums[i], &host->sums[i], sizeof *host->sums);
    assert_same_root(&described->root, &host->root);
    assert_int_equal(!device->moves, !host->moves);
    assert_int_equal(!described->moves, !host->moves);
    if (host->moves) {
        assert_same_root(&described->moves->before, &host->moves->before);
        assert_same_moves(device, host);
    }
}
