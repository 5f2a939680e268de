// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <stdlib.h>
#include <string.h>

struct shape shape_make(struct chance *chance) {
    static const char *const names[TENSORS_MAX] = {"embed", "layer.0.up", "layer.0.down", "norm"};
    struct shape shape = {.count = (size_t)chance_between(chance, 2, TENSORS_MAX)};

    for (size_t i = 0; i < shape.count; i++) {
        const bool wide = chance_percent(chance, 40);

        shape.extents[i] = chance_between(chance, 1, 120);
        shape.tensors[i] = (struct ulp_tensor){
            .name = names[i], .dtype = wide ? "F32" : "BF16", .rank = 1, .bits = wide ? 32 : 16};
        shape.tensors[i].elements = shape.extents[i];
        shape.tensors[i].bytes = shape.extents[i] * (wide ? 4 : 2);
        shape.bytes += (size_t)shape.tensors[i].bytes;
    }
    return shape;
}

struct state state_make(const struct shape *shape) {
    struct state state = {.bits = calloc(1, shape->bytes)};
    uint8_t *at = state.bits;

    if (!at)
        abort();
    memcpy(state.tensors, shape->tensors, sizeof state.tensors);
    for (size_t i = 0; i < shape->count; i++) {
        state.tensors[i].shape = &shape->extents[i];
        state.tensors[i].data = at;
        at += shape->tensors[i].bytes;
    }
    return state;
}

void state_free(struct state *state) {
    free(state->bits);
    *state = (struct state){0};
}

void state_move(const struct shape *shape, struct state *state, struct chance *chance) {
    const bool all = chance_percent(chance, 5);
    const size_t count = all ? shape->bytes : (size_t)chance_between(chance, 0, shape->bytes / 8);

    for (size_t i = 0; i < count; i++) {
        size_t at = all ? i : (size_t)chance_below(chance, shape->bytes);

        state->bits[at] ^= (uint8_t)chance_below(chance, 256);
    }
}
