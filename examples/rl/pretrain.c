// SPDX-License-Identifier: Apache-2.0
#include "pretrain.h"

#include "memory.h"
#include "random.h"

#include <math.h>
#include <string.h>

#define WARM_UP 20
#define REPORT_EVERY 50

/* Up in a line, down in a wave. */
static double rate_at(const struct pretraining *how, uint64_t step) {
    const double warm = step < WARM_UP ? (double)(step + 1) / WARM_UP : 1;
    const double wave = 0.5 + 0.5 * cos(3.141592653589793 * (double)step / (double)how->steps);

    return how->rate * warm * (0.02 + 0.98 * wave);
}

static void report(struct jsonl *log, uint64_t step, const struct lesson_report *lesson,
                   double started) {
    printf("pre-training: step %llu, loss %.3f, %.1f s\n", (unsigned long long)step, lesson->loss,
           seconds() - started);
    fflush(stdout);
    jsonl_begin(log, "pretrain");
    jsonl_count(log, "step", step);
    jsonl_number(log, "loss", lesson->loss);
    jsonl_number(log, "seconds", seconds() - started);
    jsonl_end(log);
}

enum ulp_status pretrain(struct learner *learner, const struct corpus *corpus,
                         const struct pretraining *how, struct jsonl *log) {
    const double started = seconds();
    struct sequence *batch = zeroed(how->batch, sizeof *batch);
    struct random random = random_stream(how->seed, 'p', 0);
    struct lesson_report lesson = {0};
    enum ulp_status status = ULP_OK;

    for (uint64_t step = 0; !status && step < how->steps; step++) {
        for (size_t i = 0; i < how->batch; i++)
            batch[i] = corpus->lines[random_below(&random, corpus->count)];
        memcpy(learner->weights, learner->masters, learner->layout.total * sizeof(float));
        status = learner_step(learner, &(struct lesson){batch, how->batch, rate_at(how, step), 0},
                              &lesson);
        if (!status && ((step + 1) % REPORT_EVERY == 0 || step + 1 == how->steps))
            report(log, step + 1, &lesson, started);
    }
    free(batch);
    return status;
}
