// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include "random.h"
#include "sequence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct dims dims_default = {
    .context = TOKENS_MAX, .width = 192, .heads = 6, .hidden = 512, .layers = 2};

__attribute__((format(printf, 5, 6))) static void add(struct layout *layout, uint64_t rows,
                                                      uint64_t columns, double spread,
                                                      const char *format, ...) {
    struct parameter *p = &layout->parameters[layout->count++];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(p->name, sizeof p->name, format, arguments);
    va_end(arguments);
    p->rank = rows ? 2 : 1;
    p->shape[0] = rows ? rows : columns;
    p->shape[1] = columns;
    p->count = (size_t)((rows ? rows : 1) * columns);
    p->spread = spread;
    p->offset = layout->total;
    layout->total += p->count;
}

static void add_block(struct layout *layout, unsigned number) {
    const struct dims *d = &layout->dims;
    const double into = 1 / sqrt((double)d->width);
    /* Each block adds twice to the stream; together they should not drown it. */
    const double back = 1 / sqrt(2 * (double)d->layers);

    add(layout, 0, d->width, 0, "model.layers.%u.input_layernorm.weight", number);
    for (unsigned i = 0; i < 3; i++)
        add(layout, d->width, d->width, into, "model.layers.%u.self_attn.%c_proj.weight", number,
            "qkv"[i]);
    add(layout, d->width, d->width, into * back, "model.layers.%u.self_attn.o_proj.weight", number);
    add(layout, 0, d->width, 0, "model.layers.%u.post_attention_layernorm.weight", number);
    add(layout, d->hidden, d->width, into, "model.layers.%u.mlp.gate_proj.weight", number);
    add(layout, d->hidden, d->width, into, "model.layers.%u.mlp.up_proj.weight", number);
    add(layout, d->width, d->hidden, back / sqrt((double)d->hidden),
        "model.layers.%u.mlp.down_proj.weight", number);
}

void layout_make(const struct dims *dims, struct layout *ret_layout) {
    memset(ret_layout, 0, sizeof *ret_layout);
    ret_layout->dims = *dims;
    add(ret_layout, VOCABULARY, dims->width, 0.5, "model.embed_tokens.weight");
    add(ret_layout, dims->context, dims->width, 0.5, "model.embed_positions.weight");
    for (unsigned i = 0; i < dims->layers; i++)
        add_block(ret_layout, i);
    add(ret_layout, 0, dims->width, 0, "model.norm.weight");
    add(ret_layout, VOCABULARY, dims->width, 1 / sqrt((double)dims->width), "lm_head.weight");
}

void model_start(const struct layout *layout, uint64_t seed, real *parameters) {
    for (size_t i = 0; i < layout->count; i++) {
        const struct parameter *p = &layout->parameters[i];
        struct random random = random_stream(seed, 'w', i);

        for (size_t j = 0; j < p->count; j++)
            parameters[p->offset + j] =
                (real)(p->spread > 0 ? p->spread * random_normal(&random) : 1);
    }
}

/* In the order of layout_make(). */
void model_view(const struct layout *layout, real *parameters, struct model *ret_model) {
    const struct parameter *p = layout->parameters;

    ret_model->tokens = parameters + (p++)->offset;
    ret_model->positions = parameters + (p++)->offset;
    for (size_t i = 0; i < layout->dims.layers; i++, p += 9)
        ret_model->blocks[i] = (struct block){
            .norm1 = parameters + p[0].offset,
            .q = parameters + p[1].offset,
            .k = parameters + p[2].offset,
            .v = parameters + p[3].offset,
            .o = parameters + p[4].offset,
            .norm2 = parameters + p[5].offset,
            .gate = parameters + p[6].offset,
            .up = parameters + p[7].offset,
            .down = parameters + p[8].offset,
        };
    ret_model->norm = parameters + (p++)->offset;
    ret_model->head = parameters + p->offset;
}
