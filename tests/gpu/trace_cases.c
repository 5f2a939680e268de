// SPDX-License-Identifier: Apache-2.0
/* Recorded steps of two runs: the device's patches, without and with history, are the CPU's. */
#include "gpu_cases.h"
#include "gpu_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 5

static struct ulp_model *open_file(const char *directory, const char *trace, const char *name) {
    struct ulp_model *model = NULL;
    char path[1024];

    snprintf(path, sizeof path, "%s/%s/%s", directory, trace, name);
    must(ulp_model_open(path, &model), path);
    return model;
}

/* What changes in a step, as pairs of places and values. */
static void change(struct ulp_tensor *tensors, size_t count, const struct ulp_model *changes) {
    for (size_t i = 0; i < count; i++) {
        const struct ulp_tensor *indices, *values;
        char name[256];

        snprintf(name, sizeof name, "%s.indices", tensors[i].name);
        indices = ulp_model_find(changes, name);
        snprintf(name, sizeof name, "%s.values", tensors[i].name);
        values = ulp_model_find(changes, name);
        for (size_t k = 0; indices && values && k < indices->elements; k++) {
            int32_t index;

            memcpy(&index, (const uint8_t *)indices->data + 4 * k, sizeof index);
            memcpy((uint8_t *)tensors[i].data + 2 * (size_t)index,
                   (const uint8_t *)values->data + 2 * k, 2);
        }
    }
}

static struct ulp_tensor *copy_of(const struct ulp_model *model) {
    const size_t count = ulp_model_count(model);
    struct ulp_tensor *tensors = must_alloc(count * sizeof *tensors);

    memcpy(tensors, ulp_model_tensors(model), count * sizeof *tensors);
    for (size_t i = 0; i < count; i++) {
        tensors[i].data = must_alloc(tensors[i].bytes);
        memcpy(tensors[i].data, ulp_model_tensors(model)[i].data, tensors[i].bytes);
    }
    return tensors;
}

static void free_tensors(struct ulp_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(tensors[i].data);
    free(tensors);
}

static void trace_case(const char *directory, const char *trace) {
    struct ulp_model *base = open_file(directory, trace, "step-0.safetensors");
    const size_t count = ulp_model_count(base);
    struct ulp_tensor *held = copy_of(base), *next = copy_of(base);
    struct uploaded on = upload(held, count, 0);
    struct device_weights *weights = NULL;
    struct ulp_weights *twin = NULL;
    uint64_t bytes = 0, changed = 0;

    must(device_weights_new(on.tensors, count, NULL, NULL, &weights), trace);
    must(ulp_weights_new(held, count, NULL, NULL, &twin), trace);
    for (int s = 1; s <= STEPS; s++) {
        struct ulp_diff_report report;
        struct ulp_model *changes;
        struct uploaded to;
        char file[64];

        snprintf(file, sizeof file, "step-%d.sparse.safetensors", s);
        changes = open_file(directory, trace, file);
        change(next, count, changes);
        to = upload(next, count, 0);
        report = step(trace, weights, twin, &to, next);
        bytes += report.patch_bytes;
        changed += report.changed;
        release(&to);
        ulp_model_free(changes);
    }
    printf("trace: %-23s %d steps, %7llu changes, %.2f bits each: equal\n", trace, STEPS,
           (unsigned long long)changed, 8.0 * (double)bytes / (double)changed);
    device_weights_free(weights);
    ulp_weights_free(twin);
    release(&on);
    free_tensors(held, count);
    free_tensors(next, count);
    ulp_model_free(base);
}

void trace_cases(const char *directory) {
    trace_case(directory, "master");
    trace_case(directory, "bf16");
}
