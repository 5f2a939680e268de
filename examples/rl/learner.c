// SPDX-License-Identifier: Apache-2.0
#include "learner.h"

#include "memory.h"
#include "ops.h"

#include <math.h>
#include <string.h>

/* Sequences that go through the model together: enough for fast products, few enough for caches. */
#define SHARD 64

#define ADAM_FLOOR 1e-8

/* What was said by hardly a chance, and was bad, must not count for more than all the rest. */
#define RATIO_MAX 10.0

enum ulp_status learner_init(struct learner *learner, const struct dims *dims, uint64_t seed,
                             unsigned threads) {
    openblas_set_num_threads(1); /* lanes are our threads, and their bits are always the same */
    memset(learner, 0, sizeof *learner);
    layout_make(dims, &learner->layout);
    learner->masters = zeroed(learner->layout.total, sizeof(float));
    learner->weights = zeroed(learner->layout.total, sizeof(float));
    model_start(&learner->layout, seed, learner->masters);
    model_view(&learner->layout, learner->weights, &learner->model);
    adam_init(&learner->adam, learner->layout.total, ADAM_FLOOR);
    for (size_t i = 0; i < LANES; i++) {
        struct lane *lane = &learner->lanes[i];

        pass_init(&lane->pass, &learner->layout, SHARD, dims->context);
        lane->gradient = zeroed(learner->layout.total, sizeof(float));
        model_view(&learner->layout, lane->gradient, &lane->slopes);
    }
    return ulp_pool_new(threads, &learner->pool);
}

void learner_release(struct learner *learner) {
    for (size_t i = 0; i < LANES; i++) {
        pass_release(&learner->lanes[i].pass);
        free(learner->lanes[i].gradient);
    }
    adam_release(&learner->adam);
    free(learner->masters);
    free(learner->weights);
    ulp_pool_free(learner->pool);
    memset(learner, 0, sizeof *learner);
}

void learner_refresh(struct learner *learner, double floor) {
    adam_release(&learner->adam);
    adam_init(&learner->adam, learner->layout.total, floor);
}

struct work {
    struct learner *learner;
    const struct lesson *lesson;
    size_t tokens; /* that count, of the whole lesson */
    size_t longest;
};

static size_t tokens_that_count(const struct sequence *s) {
    return (size_t)s->length - s->prompt;
}

static void read_in(struct pass *pass, const struct sequence *sequences, size_t count) {
    pass->batch = count;
    for (size_t i = 0; i < count; i++)
        for (size_t t = 0; t < pass->time; t++) {
            const int inside = t + 1 < sequences[i].length;

            pass->input[i * pass->time + t] = inside ? sequences[i].tokens[t] : 0;
            pass->target[i * pass->time + t] = inside ? sequences[i].tokens[t + 1] : 0;
        }
}

/*
 * The slope of min(ratio * advantage, clip(ratio) * advantage): none where the ratio has already gone
 * further than it should, in the direction in which it is pulled.
 */
static double clipped_pull(double ratio, double advantage, double clip, double *clipped) {
    if (advantage > 0 ? ratio > 1 + clip : ratio < 1 - clip) {
        *clipped += 1;
        return 0;
    }
    return ratio * advantage;
}

static double pull_of(const struct work *work, struct lane *lane, const struct sequence *s,
                      size_t token, double log_chance) {
    const double clip = work->lesson->clip;
    const double ratio =
        clip > 0 ? fmin(exp(log_chance - (double)s->log_chance[token]), RATIO_MAX) : 1;
    double pull = s->advantage;

    lane->log_chance += log_chance;
    lane->ratio += ratio;
    if (clip > 0)
        pull = clipped_pull(ratio, s->advantage, clip, &lane->clipped);
    return pull / (double)work->tokens;
}

static void set_pulls(const struct work *work, struct lane *lane,
                      const struct sequence *sequences) {
    struct pass *pass = &lane->pass;

    for (size_t i = 0; i < pass->batch; i++)
        for (size_t t = 0; t < pass->time; t++) {
            const struct sequence *s = &sequences[i];
            const size_t at = i * pass->time + t;
            const int counts = t + 1 >= s->prompt && t + 1 < s->length;

            pass->pull[at] =
                counts ? (float)pull_of(work, lane, s, t + 1, (double)pass->log_chance[at]) : 0;
        }
}

static enum ulp_status walk_lane(void *user, uint64_t number) {
    const struct work *work = user;
    struct lane *lane = &work->learner->lanes[number];

    memset(lane->gradient, 0, work->learner->layout.total * sizeof(float));
    lane->log_chance = lane->ratio = lane->clipped = 0;
    for (size_t at = number * SHARD; at < work->lesson->count; at += LANES * SHARD) {
        const size_t left = work->lesson->count - at;

        lane->pass.time = work->longest - 1;
        read_in(&lane->pass, work->lesson->sequences + at, left < SHARD ? left : SHARD);
        pass_forward(&lane->pass, &work->learner->model);
        set_pulls(work, lane, work->lesson->sequences + at);
        pass_backward(&lane->pass, &work->learner->model, &lane->slopes);
    }
    return ULP_OK;
}

static void report_on(const struct work *work, struct lesson_report *report) {
    const double tokens = (double)work->tokens;

    for (size_t i = 0; i < LANES; i++) {
        const struct lane *lane = &work->learner->lanes[i];

        report->loss -= lane->log_chance / tokens;
        report->ratio += lane->ratio / tokens;
        report->clipped += lane->clipped / tokens;
    }
}

enum ulp_status learner_step(struct learner *learner, const struct lesson *lesson,
                             struct lesson_report *ret_report) {
    struct work work = {.learner = learner, .lesson = lesson};
    struct lesson_report report = {0};
    enum ulp_status status;

    for (size_t i = 0; i < lesson->count; i++) {
        const struct sequence *s = &lesson->sequences[i];

        work.tokens += tokens_that_count(s);
        work.longest = s->length > work.longest ? s->length : work.longest;
    }
    if (!work.tokens)
        return ulp_fail(ULP_E_USAGE, "a lesson without a token to learn from");
    if (work.longest > learner->layout.dims.context)
        return ulp_fail(ULP_E_LIMIT, "a line of %zu tokens; the model has room for %zu",
                        work.longest, learner->layout.dims.context);
    status = ulp_pool_run(learner->pool, LANES, walk_lane, &work, NULL);
    if (status)
        return status;
    for (size_t i = 1; i < LANES; i++)
        add_to(learner->lanes[0].gradient, learner->lanes[i].gradient, learner->layout.total);
    report_on(&work, &report);
    report.gradient =
        adam_step(&learner->adam, learner->masters, learner->lanes[0].gradient, lesson->rate);
    *ret_report = report;
    return ULP_OK;
}
