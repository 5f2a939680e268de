// SPDX-License-Identifier: Apache-2.0
#include "synth/checkpoints.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Blocks that one task evolves one after the other: some 30 ms of work. */
#define TASK_BLOCKS 64u
#define TASK_ELEMENTS ((uint64_t)TASK_BLOCKS * SYNTH_BLOCK_ELEMENTS)

struct job {
    const struct synth_checkpoints *what;
    struct ulp_tensor *tensors;
    uint64_t *first_task; /* of each tensor, and the end */
    struct ulp_writer *writers[SYNTH_STEPS_MAX + 1];
};

/* What one task works in. */
struct bench {
    struct synth_block block;
    uint8_t bytes[SYNTH_BLOCK_ELEMENTS * 4];
};

static enum ulp_status out_of_memory(void) {
    return ulp_fail(ULP_E_NOMEM, "out of memory while making a synthetic run");
}

static const char *dtype_name(enum synth_dtype dtype) {
    static const char *const names[] = {"BF16", "F16", "F32"};

    return names[dtype];
}

/* To be freed with free(); NULL when memory is short. */
static char *checkpoint_path(const struct job *job, unsigned step) {
    const char *directory = job->what->directory;
    size_t bytes = strlen(directory) + sizeof "/step-0000000000.safetensors";
    char *path = malloc(bytes);

    if (path)
        snprintf(path, bytes, "%s/step-%03u.safetensors", directory, step);
    return path;
}

/* Early, before minutes of work; the commit, which does not replace either, is what guards. */
static enum ulp_status check_free(const struct job *job) {
    for (unsigned step = 0; step <= job->what->steps; step++) {
        char *path = checkpoint_path(job, step);
        bool there = path && !access(path, F_OK);

        free(path);
        if (there && job->what->commit == ULP_COMMIT_NEW)
            return ulp_fail(ULP_E_EXISTS,
                            "'%s' holds step-%03u.safetensors already; choose another directory or "
                            "add --force",
                            job->what->directory, step);
    }
    return ULP_OK;
}

/* Whether there was such a file. */
static bool remove_step(const struct job *job, unsigned step) {
    char *path = checkpoint_path(job, step);
    bool removed = path && !unlink(path);

    free(path);
    return removed;
}

static enum ulp_status lay_out(struct job *job) {
    const struct synth_plan *plan = job->what->plan;

    job->tensors = calloc(plan->count, sizeof *job->tensors);
    job->first_task = calloc(plan->count + 1, sizeof *job->first_task);
    if (!job->tensors || !job->first_task)
        return out_of_memory();
    for (size_t i = 0; i < plan->count; i++) {
        const struct synth_tensor *from = &plan->tensors[i];
        enum ulp_status status;

        job->tensors[i] = (struct ulp_tensor){.name = from->name,
                                              .dtype = dtype_name(job->what->run.dtype),
                                              .shape = from->shape,
                                              .rank = from->rank};
        status = ulp_tensor_measure(&job->tensors[i]);
        if (status)
            return status;
        job->first_task[i + 1] =
            job->first_task[i] + (from->elements + TASK_ELEMENTS - 1) / TASK_ELEMENTS;
    }
    return ULP_OK;
}

static enum ulp_status open_step(struct job *job, unsigned step) {
    const struct synth_run *run = &job->what->run;
    char recipe[128];
    const struct ulp_text_pair metadata[] = {{"format", "pt"}, {"ulpsync.synth", recipe}};
    char *path = checkpoint_path(job, step);
    enum ulp_status status;

    if (!path)
        return out_of_memory();
    snprintf(recipe, sizeof recipe, "regime=%s dtype=%s lr=%g seed=%llu step=%u",
             run->regime == SYNTH_MASTER ? "master" : "bf16", dtype_name(run->dtype),
             (double)run->lr, (unsigned long long)run->seed, step);
    status = ulp_writer_create(path, job->tensors, job->what->plan->count, metadata, 2,
                               &job->writers[step]);
    free(path);
    return status;
}

/* One block through all steps. */
static enum ulp_status evolve(const struct job *job, struct bench *bench, size_t tensor,
                              uint64_t block) {
    const struct synth_run *run = &job->what->run;
    const struct synth_tensor *of = &job->what->plan->tensors[tensor];
    uint64_t first = block * SYNTH_BLOCK_ELEMENTS, left = of->elements - first;
    size_t elements = left < SYNTH_BLOCK_ELEMENTS ? (size_t)left : SYNTH_BLOCK_ELEMENTS;
    size_t width = synth_dtype_bytes(run->dtype);
    float scale = of->kind == SYNTH_KIND_NORM ? SYNTH_NORM_SCALE : SYNTH_MATRIX_SCALE;

    synth_block_start(&bench->block, run, of->kind, tensor, block, elements, scale);
    for (unsigned step = 0; step <= job->what->steps; step++) {
        enum ulp_status status;

        if (step)
            synth_block_step(&bench->block, run);
        synth_block_emit(&bench->block, run, bench->bytes);
        status = ulp_writer_put(job->writers[step], tensor, first * width, bench->bytes,
                                elements * width);
        if (status)
            return status;
    }
    return ULP_OK;
}

static enum ulp_status evolve_task(void *user, uint64_t task) {
    const struct job *job = user;
    struct bench *bench = malloc(sizeof *bench);
    enum ulp_status status = bench ? ULP_OK : out_of_memory();
    size_t tensor = 0;
    uint64_t block, end;

    while (job->first_task[tensor + 1] <= task)
        tensor++;
    block = (task - job->first_task[tensor]) * TASK_BLOCKS;
    end = (job->what->plan->tensors[tensor].elements + SYNTH_BLOCK_ELEMENTS - 1) /
          SYNTH_BLOCK_ELEMENTS;
    if (end > block + TASK_BLOCKS)
        end = block + TASK_BLOCKS;
    for (; !status && block < end; block++)
        status = evolve(job, bench, tensor, block);
    free(bench);
    return status;
}

static enum ulp_status commit_all(const struct job *job) {
    const bool replace = job->what->commit == ULP_COMMIT_REPLACE;
    unsigned step = 0;

    for (; step <= job->what->steps; step++) {
        enum ulp_status status = ulp_writer_commit(job->writers[step], job->what->commit);

        if (!status)
            continue;
        while (!replace && step-- > 0)
            remove_step(job, step);
        return status;
    }
    while (replace && remove_step(job, step))
        step++;
    return ULP_OK;
}

enum ulp_status synth_checkpoints_write(const struct synth_checkpoints *what, struct ulp_pool *pool,
                                        const struct ulp_progress *progress) {
    struct job job = {.what = what};
    enum ulp_status status;

    if (what->steps > SYNTH_STEPS_MAX)
        return ulp_fail(ULP_E_USAGE, "%u steps; at most %u", what->steps, SYNTH_STEPS_MAX);
    status = check_free(&job);
    if (!status)
        status = lay_out(&job);
    for (unsigned step = 0; !status && step <= what->steps; step++)
        status = open_step(&job, step);
    if (!status)
        status = ulp_pool_run(pool, job.first_task[what->plan->count], evolve_task, &job, progress);
    if (!status)
        status = commit_all(&job);
    for (unsigned step = 0; step <= what->steps; step++)
        ulp_writer_free(job.writers[step]);
    free(job.tensors);
    free(job.first_task);
    return status;
}
