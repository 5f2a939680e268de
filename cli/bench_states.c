// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_states.h"

#include <math.h>
#include <stdlib.h>

/* Blocks that one task evolves: some 30 ms of work. */
#define TASK_BLOCKS 64u

/* A state that starts exactly a power of two behind another competes with it for the same places in
 * the caches, which real weights do not. */
#define STAGGER 4160u

#define TUNING_BLOCKS 8u
#define TUNING_ROUNDS 40u

struct job {
    const struct synth_run *run;
    struct bench_states *states;
    uint64_t *first_task; /* of each tensor, and the end */
};

static enum ulp_status out_of_memory(void) {
    return ulp_fail(ULP_E_NOMEM, "out of memory for the states; choose a smaller --size");
}

static uint64_t blocks_of(const struct synth_tensor *tensor) {
    return (tensor->elements + SYNTH_BLOCK_ELEMENTS - 1) / SYNTH_BLOCK_ELEMENTS;
}

static void start_block(struct synth_block *block, const struct synth_run *run,
                        const struct synth_tensor *of, uint64_t tensor, uint64_t index) {
    uint64_t left = of->elements - index * SYNTH_BLOCK_ELEMENTS;

    synth_block_start(block, run, of->kind, tensor, index,
                      left < SYNTH_BLOCK_ELEMENTS ? (size_t)left : SYNTH_BLOCK_ELEMENTS,
                      of->kind == SYNTH_KIND_NORM ? SYNTH_NORM_SCALE : SYNTH_MATRIX_SCALE);
}

static enum ulp_status evolve(void *user, uint64_t task) {
    const struct job *job = user;
    struct bench_states *states = job->states;
    struct synth_block *block = malloc(sizeof *block);
    size_t tensor = 0;
    uint64_t index, end;

    if (!block)
        return out_of_memory();
    while (job->first_task[tensor + 1] <= task)
        tensor++;
    index = (task - job->first_task[tensor]) * TASK_BLOCKS;
    end = blocks_of(&states->plan.tensors[tensor]);
    end = end < index + TASK_BLOCKS ? end : index + TASK_BLOCKS;
    for (; index < end; index++) {
        start_block(block, job->run, &states->plan.tensors[tensor], tensor, index);
        for (int state = 0; state < STATES; state++) {
            if (state)
                synth_block_step(block, job->run);
            synth_block_emit(block, job->run,
                             (uint8_t *)states->tensors[state][tensor].data +
                                 index * SYNTH_BLOCK_ELEMENTS * 2);
        }
    }
    free(block);
    return ULP_OK;
}

static enum ulp_status describe(struct bench_states *states, int state) {
    uint8_t *at = states->memory[state] + STAGGER * (size_t)state;

    for (size_t i = 0; i < states->plan.count; i++) {
        const struct synth_tensor *from = &states->plan.tensors[i];
        struct ulp_tensor *to = &states->tensors[state][i];
        enum ulp_status status;

        *to = (struct ulp_tensor){.name = from->name,
                                  .dtype = "BF16",
                                  .shape = from->shape,
                                  .rank = from->rank,
                                  .data = at};
        status = ulp_tensor_measure(to);
        if (status)
            return status;
        at += to->bytes;
    }
    return ULP_OK;
}

static enum ulp_status take_memory(struct bench_states *states) {
    enum ulp_status status = ULP_OK;

    states->bytes = states->plan.params * 2;
    for (int state = 0; !status && state < STATES; state++) {
        states->tensors[state] = calloc(states->plan.count, sizeof *states->tensors[state]);
        states->memory[state] = malloc((size_t)states->bytes + (size_t)STAGGER * STATES);
        if (!states->tensors[state] || !states->memory[state])
            return out_of_memory();
        status = describe(states, state);
    }
    return status;
}

enum ulp_status bench_states_make(const struct synth_run *run, uint64_t bytes,
                                  struct ulp_pool *pool, const struct ulp_progress *progress,
                                  struct bench_states *states) {
    struct job job = {.run = run, .states = states};
    enum ulp_status status = synth_plan_make(bytes / 2, 0, &states->plan);

    if (status)
        return status;
    status = take_memory(states);
    job.first_task = calloc(states->plan.count + 1, sizeof *job.first_task);
    if (!status && !job.first_task)
        status = out_of_memory();
    for (size_t i = 0; !status && job.first_task && i < states->plan.count; i++)
        job.first_task[i + 1] =
            job.first_task[i] +
            (blocks_of(&states->plan.tensors[i]) + TASK_BLOCKS - 1) / TASK_BLOCKS;
    if (!status && job.first_task)
        status = ulp_pool_run(pool, job.first_task[states->plan.count], evolve, &job, progress);
    free(job.first_task);
    if (status)
        bench_states_release(states);
    return status;
}

void bench_states_release(struct bench_states *states) {
    for (int state = 0; state < STATES; state++) {
        free(states->tensors[state]);
        free(states->memory[state]);
    }
    synth_plan_release(&states->plan);
    *states = (struct bench_states){0};
}

/* ---- density ---- */

struct tuning {
    struct synth_block block;
    uint16_t old[SYNTH_BLOCK_ELEMENTS], new[SYNTH_BLOCK_ELEMENTS];
};

static double measure_density(struct tuning *tuning, const struct synth_run *run) {
    const struct synth_tensor matrix = {.elements = TUNING_BLOCKS * SYNTH_BLOCK_ELEMENTS,
                                        .kind = SYNTH_KIND_MATRIX};
    uint64_t changed = 0;

    for (unsigned i = 0; i < TUNING_BLOCKS; i++) {
        start_block(&tuning->block, run, &matrix, 0, i);
        synth_block_step(&tuning->block, run);
        synth_block_emit(&tuning->block, run, tuning->old);
        synth_block_step(&tuning->block, run);
        synth_block_emit(&tuning->block, run, tuning->new);
        for (size_t k = 0; k < SYNTH_BLOCK_ELEMENTS; k++)
            changed += tuning->old[k] != tuning->new[k];
    }
    return (double)changed / (double)matrix.elements;
}

/* The density grows with the learning rate, so the right one can be closed in on. */
enum ulp_status bench_states_tune(struct synth_run *run, double density) {
    double low = 1e-12, high = 1.0;
    struct tuning *tuning = malloc(sizeof *tuning);

    if (!tuning)
        return out_of_memory();
    for (unsigned i = 0; i < TUNING_ROUNDS; i++) {
        double middle = sqrt(low * high);

        run->lr = (float)middle;
        if (measure_density(tuning, run) < density)
            low = middle;
        else
            high = middle;
    }
    free(tuning);
    return ULP_OK;
}
