// SPDX-License-Identifier: Apache-2.0
#include "synth/architecture.h"

#include <stdio.h>
#include <stdlib.h>

/* Hidden size over layers, typical of models between 0.5 and 70 billion parameters. */
#define HIDDEN_PER_LAYER 64u

/* The layers get this share of the parameters, the embedding the rest. */
#define LAYER_SHARE_PERCENT 90u

#define TENSORS_PER_LAYER 9u
#define TENSORS_OUTSIDE 2u

/* One tensor of a layer: rows and columns in quarters of the hidden size; no columns, a vector. */
static const struct {
    const char *name;
    unsigned rows, columns;
} layer_tensors[TENSORS_PER_LAYER] = {
    {"input_layernorm", 4, 0},  {"mlp.down_proj", 4, 12},           {"mlp.gate_proj", 12, 4},
    {"mlp.up_proj", 12, 4},     {"post_attention_layernorm", 4, 0}, {"self_attn.k_proj", 1, 4},
    {"self_attn.o_proj", 4, 4}, {"self_attn.q_proj", 4, 4},         {"self_attn.v_proj", 1, 4},
};

static uint64_t layer_params(uint64_t hidden) {
    uint64_t quarter = hidden / 4, total = 0;

    for (size_t i = 0; i < TENSORS_PER_LAYER; i++) {
        uint64_t columns = layer_tensors[i].columns ? layer_tensors[i].columns * quarter : 1;

        total += layer_tensors[i].rows * quarter * columns;
    }
    return total;
}

/* The largest number of layers whose natural hidden size still fits. */
static uint64_t choose_layers(uint64_t params) {
    uint64_t layers = 1;

    while (layers < SYNTH_LAYERS_MAX &&
           (layers + 1) * layer_params((layers + 1) * HIDDEN_PER_LAYER) <=
               params / 100 * LAYER_SHARE_PERCENT)
        layers++;
    return layers;
}

/* The largest hidden size, in steps of 8 below 512 and of 64 above, that leaves the embedding its
 * share. */
static uint64_t choose_hidden(uint64_t params, uint64_t layers) {
    uint64_t hidden = 0;

    for (;;) {
        uint64_t wider = hidden + (hidden < 512 ? 8 : 64);

        if (layers * layer_params(wider) > params / 100 * LAYER_SHARE_PERCENT)
            return hidden;
        hidden = wider;
    }
}

static void add_tensor(struct synth_plan *plan, uint64_t rows, uint64_t columns, const char *prefix,
                       const char *name) {
    struct synth_tensor *tensor = &plan->tensors[plan->count++];

    snprintf(tensor->name, sizeof tensor->name, "model.%s%s.weight", prefix, name);
    tensor->shape[0] = rows;
    tensor->shape[1] = columns;
    tensor->rank = columns ? 2 : 1;
    tensor->elements = rows * (columns ? columns : 1);
    tensor->kind = columns ? SYNTH_KIND_MATRIX : SYNTH_KIND_NORM;
}

int synth_plan_make(struct synth_plan *plan, uint64_t params, uint64_t layers) {
    struct synth_plan made = {0};
    uint64_t outside;

    made.layers = layers ? layers : choose_layers(params);
    made.hidden = choose_hidden(params, made.layers);
    if (!made.hidden)
        return -1;
    outside =
        params - made.layers * layer_params(made.hidden) - made.hidden; /* less the last norm */
    made.vocabulary = outside / made.hidden;
    made.params = params - outside % made.hidden;
    made.tensors = calloc(made.layers * TENSORS_PER_LAYER + TENSORS_OUTSIDE, sizeof *made.tensors);
    if (!made.tensors || !made.vocabulary) {
        free(made.tensors);
        return -1;
    }
    add_tensor(&made, made.vocabulary, made.hidden, "", "embed_tokens");
    for (uint64_t layer = 0; layer < made.layers; layer++) {
        char prefix[32];

        snprintf(prefix, sizeof prefix, "layers.%llu.", (unsigned long long)layer);
        for (size_t i = 0; i < TENSORS_PER_LAYER; i++)
            add_tensor(&made, layer_tensors[i].rows * made.hidden / 4,
                       layer_tensors[i].columns * made.hidden / 4, prefix, layer_tensors[i].name);
    }
    add_tensor(&made, made.hidden, 0, "", "norm");
    *plan = made;
    return 0;
}

void synth_plan_release(struct synth_plan *plan) {
    free(plan->tensors);
    *plan = (struct synth_plan){0};
}
