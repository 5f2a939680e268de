// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include "memory.h"
#include "ops.h"

#include <math.h>
#include <string.h>

void decoder_init(struct decoder *decoder, const struct layout *layout, size_t rows) {
    const struct dims *d = &layout->dims;
    float **wides[] = {&decoder->x, &decoder->n, &decoder->q, &decoder->mixed};
    float **hiddens[] = {&decoder->gate, &decoder->up, &decoder->active};

    memset(decoder, 0, sizeof *decoder);
    decoder->layout = layout;
    decoder->rows = rows;
    for (size_t i = 0; i < d->layers; i++) {
        decoder->keys[i] = zeroed(rows * d->context * d->width, sizeof(float));
        decoder->values[i] = zeroed(rows * d->context * d->width, sizeof(float));
    }
    for (size_t i = 0; i < sizeof wides / sizeof *wides; i++)
        *wides[i] = zeroed(rows * d->width, sizeof(float));
    for (size_t i = 0; i < sizeof hiddens / sizeof *hiddens; i++)
        *hiddens[i] = zeroed(rows * d->hidden, sizeof(float));
    decoder->chance = zeroed(rows * VOCABULARY, sizeof(float));
    decoder->inverse = zeroed(rows, sizeof(float));
}

void decoder_release(struct decoder *decoder) {
    float *all[] = {decoder->x,  decoder->n,      decoder->q,      decoder->mixed,  decoder->gate,
                    decoder->up, decoder->active, decoder->chance, decoder->inverse};

    for (size_t i = 0; i < LAYERS_MAX; i++) {
        free(decoder->keys[i]);
        free(decoder->values[i]);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    memset(decoder, 0, sizeof *decoder);
}

/* One head of one row looks at what it has: keys and values lie `width` apart. */
static void look_back(float *y, const float *q, const float *keys, const float *values, size_t time,
                      size_t head, size_t width) {
    float mix[TOKENS_MAX];
    const float scale = 1 / sqrtf((float)head);

    for (size_t t = 0; t < time; t++) {
        mix[t] = 0;
        for (size_t i = 0; i < head; i++)
            mix[t] += q[i] * keys[t * width + i];
        mix[t] *= scale;
    }
    softmax(mix, time);
    memset(y, 0, head * sizeof *y);
    for (size_t t = 0; t < time; t++)
        for (size_t i = 0; i < head; i++)
            y[i] += mix[t] * values[t * width + i];
}

static void attend(struct decoder *decoder, size_t layer, size_t rows, size_t time) {
    const struct dims *d = &decoder->layout->dims;
    const size_t head = d->width / d->heads;

    for (size_t row = 0; row < rows; row++)
        for (size_t h = 0; h < d->heads; h++) {
            const size_t here = row * d->width + h * head;
            const size_t kept = row * d->context * d->width + h * head;

            look_back(decoder->mixed + here, decoder->q + here, decoder->keys[layer] + kept,
                      decoder->values[layer] + kept, time + 1, head, d->width);
        }
}

/* Rows of the results lie where they are kept: `context` rows apart, at their time. */
static void keep(float *kept, const float *n, const float *w, const struct dims *d, size_t rows,
                 size_t time) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)d->width,
                (blasint)d->width, 1, n, (blasint)d->width, w, (blasint)d->width, 0,
                kept + time * d->width, (blasint)(d->context * d->width));
}

static void block_step(struct decoder *decoder, const struct block *b, size_t layer, size_t rows,
                       size_t time) {
    const struct dims *d = &decoder->layout->dims;

    rmsnorm_forward(decoder->n, decoder->inverse, decoder->x, b->norm1, rows, d->width);
    linear_forward(decoder->q, decoder->n, b->q, rows, d->width, d->width, 0);
    keep(decoder->keys[layer], decoder->n, b->k, d, rows, time);
    keep(decoder->values[layer], decoder->n, b->v, d, rows, time);
    attend(decoder, layer, rows, time);
    linear_forward(decoder->x, decoder->mixed, b->o, rows, d->width, d->width, 1);

    rmsnorm_forward(decoder->n, decoder->inverse, decoder->x, b->norm2, rows, d->width);
    linear_forward(decoder->gate, decoder->n, b->gate, rows, d->width, d->hidden, 0);
    linear_forward(decoder->up, decoder->n, b->up, rows, d->width, d->hidden, 0);
    swiglu_forward(decoder->active, decoder->gate, decoder->up, rows * d->hidden);
    linear_forward(decoder->x, decoder->active, b->down, rows, d->hidden, d->width, 1);
}

static void step(struct decoder *decoder, const struct model *model,
                 const struct sequence *sequences, size_t rows, size_t time) {
    const struct dims *d = &decoder->layout->dims;

    for (size_t row = 0; row < rows; row++) {
        float *x = decoder->x + row * d->width;

        memcpy(x, model->tokens + sequences[row].tokens[time] * d->width, d->width * sizeof *x);
        add_to(x, model->positions + time * d->width, d->width);
    }
    for (size_t layer = 0; layer < d->layers; layer++)
        block_step(decoder, &model->blocks[layer], layer, rows, time);
    rmsnorm_forward(decoder->n, decoder->inverse, decoder->x, model->norm, rows, d->width);
    linear_forward(decoder->chance, decoder->n, model->head, rows, d->width, VOCABULARY, 0);
}

static uint8_t draw(const float *chance, struct random *random) {
    double left = random_uniform(random);
    unsigned last = 0;

    for (unsigned i = 0; i < VOCABULARY; i++) {
        if (!(chance[i] > 0))
            continue;
        last = i;
        left -= (double)chance[i];
        if (left < 0)
            break;
    }
    return (uint8_t)last;
}

static int has_ended(const struct sequence *s) {
    return s->length > s->prompt && s->tokens[s->length - 1] == LINE_END;
}

static void say_next(struct sequence *s, float *chance, struct random *stream) {
    softmax(chance, VOCABULARY);
    s->tokens[s->length] = draw(chance, stream);
    s->log_chance[s->length] = logf(chance[s->tokens[s->length]]);
    s->length++;
}

void decoder_say(struct decoder *decoder, const struct model *model, struct sequence *sequences,
                 struct random *streams, size_t count) {
    size_t going = count;

    for (size_t i = 0; i < count; i++)
        sequences[i].length = sequences[i].prompt;
    for (size_t time = 0; going && time + 1 < decoder->layout->dims.context; time++) {
        step(decoder, model, sequences, count, time);
        for (size_t i = 0; i < count; i++)
            if (sequences[i].length == time + 1 && !has_ended(&sequences[i])) {
                say_next(&sequences[i], decoder->chance + i * VOCABULARY, &streams[i]);
                going -= (size_t)has_ended(&sequences[i]);
            }
    }
}
