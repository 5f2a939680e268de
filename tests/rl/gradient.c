// SPDX-License-Identifier: Apache-2.0
/*
 * The gradients of every kind of parameter against central differences. Compiled with RL_DOUBLE: a
 * step of 1e-5 leaves an error of about 1e-10 there, so a wrong term cannot hide.
 */
#include "tests/test.h"

#include "examples/rl/pass.h"
#include "examples/rl/random.h"

#include <math.h>

#define STEP 1e-5
#define TOLERANCE 1e-6
#define PROBES 12 /* of each parameter */

static const struct dims dims = {.context = 7, .width = 12, .heads = 3, .hidden = 20, .layers = 2};

struct fixture {
    struct layout layout;
    real *parameters, *slopes;
    struct model model, gradient;
    struct pass pass;
};

/* Few different bytes, so that embeddings are met several times; some tokens have no pull, some are
 * pushed away, as in a group of samples. */
static void fill(struct pass *pass) {
    struct random random = random_stream(1, 2, 3);

    for (size_t i = 0; i < pass->batch * pass->time; i++) {
        pass->input[i] = (uint8_t)random_below(&random, 9);
        pass->target[i] = (uint8_t)random_below(&random, 9);
        pass->pull[i] = i % 5 == 0 ? 0 : random_normal(&random);
    }
}

static void start(struct fixture *f) {
    struct random random = random_stream(4, 5, 6);

    layout_make(&dims, &f->layout);
    f->parameters = calloc(f->layout.total, sizeof *f->parameters);
    f->slopes = calloc(f->layout.total, sizeof *f->slopes);
    model_start(&f->layout, 7, f->parameters);
    for (size_t i = 0; i < f->layout.total; i++) /* gains that are not all 1 */
        f->parameters[i] += 0.1 * random_normal(&random);
    model_view(&f->layout, f->parameters, &f->model);
    model_view(&f->layout, f->slopes, &f->gradient);
    pass_init(&f->pass, &f->layout, 3, 6);
    fill(&f->pass);
}

static void end(struct fixture *f) {
    pass_release(&f->pass);
    free(f->parameters);
    free(f->slopes);
}

static double loss(struct fixture *f) {
    double sum = 0;

    pass_forward(&f->pass, &f->model);
    for (size_t i = 0; i < f->pass.batch * f->pass.time; i++)
        sum -= f->pass.pull[i] * f->pass.log_chance[i];
    return sum;
}

static double difference(struct fixture *f, size_t at) {
    const double here = f->parameters[at];
    double up, down;

    f->parameters[at] = here + STEP;
    up = loss(f);
    f->parameters[at] = here - STEP;
    down = loss(f);
    f->parameters[at] = here;
    return (up - down) / (2 * STEP);
}

static void probe(struct fixture *f, const struct parameter *p, struct random *random) {
    double largest = 0;

    for (unsigned i = 0; i < PROBES; i++) {
        /* Only the first rows of embeddings are met. */
        const size_t reach = p->shape[0] == VOCABULARY ? 9 * dims.width : p->count;
        const size_t at = p->offset + random_below(random, reach);
        const double measured = difference(f, at), computed = f->slopes[at];

        if (fabs(measured - computed) > TOLERANCE * (1 + fabs(measured)))
            fail_msg("%s[%zu]: the gradient is %.9f, and %.9f by differences", p->name,
                     at - p->offset, computed, measured);
        largest = fmax(largest, fabs(measured));
    }
    if (largest < 1e-3)
        fail_msg("%s: no probe had a slope, so nothing was tested", p->name);
}

static void test_every_parameter(void **state) {
    struct fixture f = {0};
    struct random random = random_stream(8, 9, 10);

    (void)state;
    start(&f);
    loss(&f);
    pass_backward(&f.pass, &f.model, &f.gradient);
    for (size_t i = 0; i < f.layout.count; i++)
        probe(&f, &f.layout.parameters[i], &random);
    end(&f);
}

/* What comes later does not change what is said now. */
static void test_causal(void **state) {
    struct fixture f = {0};
    double before, same, later;

    (void)state;
    start(&f);
    pass_forward(&f.pass, &f.model);
    before = f.pass.log_chance[2], later = f.pass.log_chance[4];
    f.pass.input[3] ^= 1;
    pass_forward(&f.pass, &f.model);
    same = f.pass.log_chance[2];
    assert_true(before == same);
    assert_true(later != f.pass.log_chance[4]);
    end(&f);
}

/* Two passes of half the sequences give the gradient of one pass. */
static void test_gradients_add_up(void **state) {
    struct fixture f = {0};
    real *whole;
    const size_t tokens = 6;

    (void)state;
    start(&f);
    loss(&f);
    pass_backward(&f.pass, &f.model, &f.gradient);
    whole = calloc(f.layout.total, sizeof *whole);
    memcpy(whole, f.slopes, f.layout.total * sizeof *whole);
    memset(f.slopes, 0, f.layout.total * sizeof *whole);
    for (unsigned round = 0; round < 2; round++) {
        f.pass.batch = round ? 1 : 2;
        loss(&f);
        pass_backward(&f.pass, &f.model, &f.gradient);
        memmove(f.pass.input, f.pass.input + 2 * tokens, tokens);
        memmove(f.pass.target, f.pass.target + 2 * tokens, tokens);
        memmove(f.pass.pull, f.pass.pull + 2 * tokens, tokens * sizeof *f.pass.pull);
    }
    for (size_t i = 0; i < f.layout.total; i++)
        assert_true(fabs(whole[i] - f.slopes[i]) <= 1e-9 * (1 + fabs(whole[i])));
    free(whole);
    end(&f);
}

TEST_MAIN(test_every_parameter, test_causal, test_gradients_add_up)
