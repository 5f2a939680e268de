// SPDX-License-Identifier: Apache-2.0
#include "pass.h"

#include "memory.h"
#include "ops.h"

#include <string.h>
#include <tgmath.h>

/* Below this a probability counts as this; its logarithm stays finite. */
#define CHANCE_FLOOR ((real)1e-30)

/* Measures with `next` NULL, then hands out. */
struct room {
    real *next;
    size_t count;
};

static real *take(struct room *room, size_t count) {
    real *taken = room->next;

    room->count += count;
    if (taken)
        room->next += count;
    return taken;
}

static void furnish_block(struct room *room, const struct attention *a, size_t hidden,
                          struct block_kept *kept) {
    const size_t rows = a->batch * a->time, wide = rows * a->width;
    real **wides[] = {&kept->x, &kept->n1,    &kept->q,      &kept->k,
                      &kept->v, &kept->mixed, &kept->middle, &kept->n2};

    for (size_t i = 0; i < sizeof wides / sizeof *wides; i++)
        *wides[i] = take(room, wide);
    kept->inverse1 = take(room, rows);
    kept->inverse2 = take(room, rows);
    kept->mix = take(room, a->batch * a->heads * a->time * a->time);
    kept->gate = take(room, rows * hidden);
    kept->up = take(room, rows * hidden);
    kept->active = take(room, rows * hidden);
}

static void furnish(struct pass *pass, struct room *room) {
    const struct dims *d = &pass->layout->dims;
    const size_t rows = pass->batch_max * pass->time, wide = rows * d->width;
    const struct attention a = {pass->batch_max, pass->time, d->heads, d->width};
    real **wides[] = {&pass->x,      &pass->n,      &pass->dx,     &pass->dn,
                      &pass->work.a, &pass->work.b, &pass->work.c, &pass->work.d};

    for (size_t i = 0; i < d->layers; i++)
        furnish_block(room, &a, d->hidden, &pass->kept[i]);
    for (size_t i = 0; i < sizeof wides / sizeof *wides; i++)
        *wides[i] = take(room, wide);
    pass->work.gate = take(room, rows * d->hidden);
    pass->work.up = take(room, rows * d->hidden);
    pass->work.act = take(room, rows * d->hidden);
    pass->work.square = take(room, pass->time * pass->time);
    pass->inverse = take(room, rows);
    pass->chance = take(room, rows * VOCABULARY);
    pass->log_chance = take(room, rows);
    pass->pull = take(room, rows);
}

void pass_init(struct pass *pass, const struct layout *layout, size_t batch_max, size_t time_max) {
    struct room room = {0};

    memset(pass, 0, sizeof *pass);
    pass->layout = layout;
    pass->batch = pass->batch_max = batch_max;
    pass->time = pass->time_max = time_max;
    furnish(pass, &room);
    pass->memory = zeroed(room.count, sizeof *pass->memory);
    room.next = pass->memory;
    furnish(pass, &room);
    pass->input = zeroed(batch_max * time_max, 2);
    pass->target = pass->input + batch_max * time_max;
}

void pass_release(struct pass *pass) {
    free(pass->memory);
    free(pass->input);
    memset(pass, 0, sizeof *pass);
}

static struct block_size size_of(const struct pass *pass) {
    const struct dims *d = &pass->layout->dims;

    return (struct block_size){{pass->batch, pass->time, d->heads, d->width}, d->hidden};
}

static void embed(struct pass *pass, const struct model *model, real *x) {
    const size_t width = pass->layout->dims.width;

    for (size_t row = 0; row < pass->batch * pass->time; row++, x += width) {
        memcpy(x, model->tokens + pass->input[row] * width, width * sizeof *x);
        add_to(x, model->positions + row % pass->time * width, width);
    }
}

static void embed_backward(struct pass *pass, const struct model *gradient) {
    const size_t width = pass->layout->dims.width;

    for (size_t row = 0; row < pass->batch * pass->time; row++) {
        add_to(gradient->tokens + pass->input[row] * width, pass->dx + row * width, width);
        add_to(gradient->positions + row % pass->time * width, pass->dx + row * width, width);
    }
}

void pass_forward(struct pass *pass, const struct model *model) {
    const struct dims *d = &pass->layout->dims;
    const struct block_size size = size_of(pass);
    const size_t rows = pass->batch * pass->time;

    embed(pass, model, pass->kept[0].x);
    for (size_t i = 0; i < d->layers; i++)
        block_forward(&size, &model->blocks[i], &pass->kept[i],
                      i + 1 < d->layers ? pass->kept[i + 1].x : pass->x);
    rmsnorm_forward(pass->n, pass->inverse, pass->x, model->norm, rows, d->width);
    linear_forward(pass->chance, pass->n, model->head, rows, d->width, VOCABULARY, 0);
    for (size_t row = 0; row < rows; row++) {
        real *chance = pass->chance + row * VOCABULARY, hit;

        softmax(chance, VOCABULARY);
        hit = chance[pass->target[row]];
        pass->log_chance[row] = log(hit > CHANCE_FLOOR ? hit : CHANCE_FLOOR);
    }
}

void pass_backward(struct pass *pass, const struct model *model, const struct model *gradient) {
    const struct dims *d = &pass->layout->dims;
    const struct block_size size = size_of(pass);
    const size_t rows = pass->batch * pass->time;

    for (size_t row = 0; row < rows; row++) {
        real *chance = pass->chance + row * VOCABULARY;

        chance[pass->target[row]] -= 1;
        for (size_t i = 0; i < VOCABULARY; i++)
            chance[i] *= pass->pull[row];
    }
    memset(pass->dn, 0, rows * d->width * sizeof *pass->dn);
    memset(pass->dx, 0, rows * d->width * sizeof *pass->dx);
    linear_backward(pass->dn, gradient->head, pass->chance, pass->n, model->head, rows, d->width,
                    VOCABULARY);
    rmsnorm_backward(pass->dx, gradient->norm, pass->dn, pass->x, model->norm, pass->inverse, rows,
                     d->width);
    for (size_t i = d->layers; i-- > 0;)
        block_backward(&size, &model->blocks[i], &pass->kept[i], &pass->work, &gradient->blocks[i],
                       pass->dx);
    embed_backward(pass, gradient);
}
