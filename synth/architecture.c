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

/* Hidden size and vocabulary that use up the parameters. */
static enum ulp_status choose_sizes(uint64_t params, uint64_t layers, struct synth_plan *plan) {
    uint64_t outside;

    plan->layers = layers ? layers : choose_layers(params);
    plan->hidden = choose_hidden(params, plan->layers);
    if (!plan->hidden)
        return ulp_fail(ULP_E_USAGE,
                        "%llu parameters do not go into %llu layers; ask for more parameters or "
                        "fewer layers",
                        (unsigned long long)params, (unsigned long long)plan->layers);
    outside = params - plan->layers * layer_params(plan->hidden) - plan->hidden; /* the last norm */
    plan->vocabulary = outside / plan->hidden; /* at least a tenth of the parameters are left */
    plan->params = params - outside % plan->hidden;
    return ULP_OK;
}

enum ulp_status synth_plan_make(uint64_t params, uint64_t layers, struct synth_plan *ret_plan) {
    struct synth_plan plan = {0};
    enum ulp_status status = choose_sizes(params, layers, &plan);

    if (status)
        return status;
    plan.tensors = calloc(plan.layers * TENSORS_PER_LAYER + TENSORS_OUTSIDE, sizeof *plan.tensors);
    if (!plan.tensors)
        return ulp_fail(ULP_E_NOMEM, "out of memory for %llu layers",
                        (unsigned long long)plan.layers);
    add_tensor(&plan, plan.vocabulary, plan.hidden, "", "embed_tokens");
    for (uint64_t layer = 0; layer < plan.layers; layer++) {
        char prefix[32];

        snprintf(prefix, sizeof prefix, "layers.%llu.", (unsigned long long)layer);
        for (size_t i = 0; i < TENSORS_PER_LAYER; i++)
            add_tensor(&plan, layer_tensors[i].rows * plan.hidden / 4,
                       layer_tensors[i].columns * plan.hidden / 4, prefix, layer_tensors[i].name);
    }
    add_tensor(&plan, plan.hidden, 0, "", "norm");
    *ret_plan = plan;
    return ULP_OK;
}

void synth_plan_release(struct synth_plan *plan) {
    free(plan->tensors);
    *plan = (struct synth_plan){0};
}
