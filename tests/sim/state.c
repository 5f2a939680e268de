// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <stdlib.h>
#include <string.h>

struct shape shape_make(struct chance *chance) {
    static const char *const names[TENSORS_MAX] = {"embed", "layer.0.up", "layer.0.down", "norm"};
    struct shape shape = {.count = (size_t)chance_between(chance, 2, TENSORS_MAX)};

    for (size_t i = 0; i < shape.count; i++) {
        const bool wide = chance_percent(chance, 40);

        shape.extents[i] = chance_between(chance, 1, 200);
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

/* As in training: the same elements move again, most of them further in the same direction. This
 * is what history is for. */
static void drift(const struct shape *shape, struct state *state, struct chance *chance) {
    for (size_t t = 0; t < shape->count; t++) {
        const size_t size = shape->tensors[t].bits / 8;
        uint8_t *at = state->tensors[t].data;

        for (size_t i = 0; i < shape->tensors[t].elements; i++, at += size) {
            if (i % 3 == 0 && chance_percent(chance, 85))
                at[0] = (uint8_t)(i % 2 ? at[0] + 1 : at[0] - 1);
        }
    }
}

static void scatter(const struct shape *shape, struct state *state, struct chance *chance,
                    size_t count) {
    for (size_t i = 0; i < count; i++)
        state->bits[chance_below(chance, shape->bytes)] ^= (uint8_t)chance_below(chance, 256);
}

void state_move(const struct shape *shape, struct state *state, struct chance *chance) {
    const uint64_t kind = chance_below(chance, 100);

    if (kind < 60)
        drift(shape, state, chance);
    else if (kind < 95)
        scatter(shape, state, chance, (size_t)chance_below(chance, shape->bytes / 8 + 1));
    else
        scatter(shape, state, chance, shape->bytes * 2);
}
