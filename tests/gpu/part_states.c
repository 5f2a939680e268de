// SPDX-License-Identifier: Apache-2.0
#include "part_states.h"

#include "base/word.h"
#include "cuda/memory.h"
#include "patch/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 24

uint64_t part_random(void) {
    static uint64_t state;
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* ---- states ---- */

/* Few exponents, as weights have. */
static void fill(struct ulp_tensor *tensor) {
    const struct code_kind kind = code_kind_of(tensor->dtype, tensor->bits);
    uint8_t *data = tensor->data;

    for (uint64_t at = 0; at < tensor->bytes; at += kind.width) {
        uint64_t random = part_random(), value = random;

        if (kind.exponent_bits) {
            const uint64_t middle = (UINT64_C(1) << (kind.exponent_bits - 1)) - 2;

            value = random & ((UINT64_C(1) << kind.exponent_shift) - 1);
            value |= (middle - (random >> 60) % (middle < 6 ? middle : 6)) << kind.exponent_shift;
            value |= (random >> 59 & 1) << (8 * kind.width - 1);
        }
        memcpy(data + at, &value, kind.width);
    }
}

static void describe(struct ulp_tensor *tensor, size_t number, const struct part_shape *shape) {
    char *name = must_alloc(NAME_BYTES);
    uint64_t *extents = must_alloc(2 * sizeof *extents);

    snprintf(name, NAME_BYTES, "t%03zu", number);
    extents[0] = shape->rows ? shape->rows : shape->columns;
    extents[1] = shape->columns;
    *tensor = (struct ulp_tensor){
        .name = name, .dtype = shape->dtype, .shape = extents, .rank = shape->rows ? 2 : 1};
    must(ulp_tensor_measure(tensor), "measuring");
    tensor->data = must_alloc(tensor->bytes);
}

struct part_state state_random(const struct part_shape *shapes, size_t count) {
    struct part_state state = {must_alloc(count * sizeof *state.tensors), count};

    for (size_t i = 0; i < count; i++) {
        describe(&state.tensors[i], i, &shapes[i]);
        fill(&state.tensors[i]);
    }
    return state;
}

struct part_state state_like(const struct part_state *from) {
    struct part_state state = {must_alloc(from->count * sizeof *state.tensors), from->count};

    for (size_t i = 0; i < from->count; i++) {
        const struct ulp_tensor *tensor = &from->tensors[i];
        const struct part_shape shape = {tensor->dtype, tensor->rank > 1 ? tensor->shape[0] : 0,
                                         tensor->shape[tensor->rank - 1]};

        describe(&state.tensors[i], i, &shape);
        memcpy(state.tensors[i].data, tensor->data, tensor->bytes);
    }
    return state;
}

void state_release(struct part_state *state) {
    for (size_t i = 0; i < state->count; i++) {
        free((void *)(uintptr_t)state->tensors[i].name);
        free((void *)(uintptr_t)state->tensors[i].shape);
        free(state->tensors[i].data);
    }
    free(state->tensors);
}

void state_move(struct part_state *state, uint32_t every) {
    for (size_t i = 0; i < state->count; i++) {
        const unsigned width = word_bytes_of(state->tensors[i].bits);
        uint8_t *data = state->tensors[i].data;

        for (uint64_t at = 0; at < state->tensors[i].bytes; at += width) {
            const uint64_t random = part_random();
            uint64_t value = 0;

            if (random % every)
                continue;
            memcpy(&value, data + at, width);
            value += every == 1 ? random >> 8 | 1 : random >> 40 & 1 ? 1 : UINT64_MAX;
            memcpy(data + at, &value, width);
        }
    }
}

static struct ulp_tensor *named(struct part_state *state, const char *name) {
    return &state->tensors[strtoul(name + 1, NULL, 10)];
}

void state_take(struct part_state *state, const struct part_state *from,
                const struct ulp_region *regions, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct ulp_region *box = &regions[i];
        struct ulp_tensor *to = named(state, box->tensor);
        const uint8_t *data = from->tensors[to - state->tensors].data;
        const unsigned width = word_bytes_of(to->bits);
        uint64_t rows, pitch;

        grid_view(to, &rows, &pitch);
        for (uint64_t row = box->row; row < box->row + box->rows; row++) {
            const uint64_t at = (row * pitch + box->column) * width;

            memcpy((uint8_t *)to->data + at, data + at, box->columns * width);
        }
    }
}

void state_spoil(struct part_state *state, const struct ulp_region *regions, size_t count) {
    struct part_state before = state_like(state);

    for (size_t i = 0; i < state->count; i++) {
        uint8_t *data = state->tensors[i].data;

        for (uint64_t at = 0; at < state->tensors[i].bytes; at++)
            data[at] = (uint8_t)part_random();
    }
    state_take(state, &before, regions, count);
    state_release(&before);
}

void must_be_on(const struct uploaded *device, const struct part_state *state, const char *name) {
    for (size_t i = 0; i < state->count; i++) {
        const size_t bytes = (size_t)state->tensors[i].bytes;
        uint8_t *copy = must_alloc(bytes);

        must(cuda_copy_out(copy, device->tensors[i].data, bytes, NULL), name);
        must(cuda_wait(NULL), name);
        must_hold(!memcmp(copy, state->tensors[i].data, bytes), "the device has other bits", name,
                  i);
        free(copy);
    }
}

/* ---- regions ---- */

static void put_box(struct part_regions *regions, const struct ulp_region *box, bool holes) {
    const size_t part = (size_t)(part_random() % (regions->parts + holes));

    if (!box->rows || !box->columns)
        return;
    if (part == regions->parts || regions->count[part] == BOXES_MAX) {
        regions->complete = false;
        return;
    }
    regions->boxes[part][regions->count[part]++] = *box;
}

/* A row, or a column, at which no word is torn; 0 if there is none. */
static uint64_t cut_rows(uint64_t rows, uint64_t pitch, uint64_t per_word) {
    for (int i = 0; rows > 1 && i < 20; i++) {
        const uint64_t cut = 1 + part_random() % (rows - 1);

        if (cut * pitch % per_word == 0)
            return cut;
    }
    return 0;
}

static uint64_t cut_columns(uint64_t rows, uint64_t pitch, uint64_t per_word) {
    if ((rows > 1 && pitch % per_word) || pitch <= per_word)
        return 0;
    return (1 + part_random() % ((pitch - 1) / per_word)) * per_word;
}

static void cut_tensor(const struct ulp_tensor *tensor, bool holes, struct part_regions *regions) {
    const uint64_t per_word = 8 / word_bytes_of(tensor->bits), style = part_random() % 4;
    uint64_t rows, pitch, row_cut = 0, column_cut = 0;

    grid_view(tensor, &rows, &pitch);
    if (style & 1)
        row_cut = cut_rows(rows, pitch, per_word);
    if (style & 2)
        column_cut = cut_columns(rows, pitch, per_word);
    for (int i = 0; i < 2; i++) { /* upper and lower, left and right of each */
        const uint64_t row = i ? row_cut : 0, end = i ? rows : row_cut;

        for (int k = 0; k < 2; k++) {
            const uint64_t column = k ? column_cut : 0, right = k ? pitch : column_cut;

            put_box(regions,
                    &(struct ulp_region){tensor->name, row, end - row, column, right - column},
                    holes);
        }
    }
}

void cut_at_random(const struct part_state *state, size_t parts, bool holes,
                   struct part_regions *ret_regions) {
    memset(ret_regions->count, 0, sizeof ret_regions->count);
    ret_regions->parts = parts;
    ret_regions->complete = true;
    for (size_t i = 0; i < state->count; i++)
        cut_tensor(&state->tensors[i], holes, ret_regions);
}

size_t count_bands(const struct part_state *state, const struct part_regions *regions) {
    size_t bands = 0;

    for (size_t i = 0; i < regions->parts; i++) {
        for (size_t k = 0; k < regions->count[i]; k++) {
            const struct ulp_region *box = &regions->boxes[i][k];
            uint64_t rows, pitch;

            grid_view(&state->tensors[strtoul(box->tensor + 1, NULL, 10)], &rows, &pitch);
            bands += box->rows > 1 && box->columns < pitch;
        }
    }
    return bands;
}

static int by_place(const void *a, const void *b) {
    const struct ulp_region *x = a, *y = b;
    const int order = strcmp(x->tensor, y->tensor);

    if (order || x->row != y->row)
        return order ? order : x->row < y->row ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

size_t merge_parts(const struct part_regions *regions, size_t a, size_t b, struct ulp_region *to) {
    const size_t count = regions->count[a] + regions->count[b];

    if (!count)
        return 0;
    memcpy(to, regions->boxes[a], regions->count[a] * sizeof *to);
    memcpy(to + regions->count[a], regions->boxes[b], regions->count[b] * sizeof *to);
    qsort(to, count, sizeof *to, by_place);
    return count;
}
