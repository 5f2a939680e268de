// SPDX-License-Identifier: Apache-2.0
/*
 * Patches of recorded steps, through the public interface: what they weigh, that they give the next
 * step, and that all of them squash into one.
 */
#include "tests/test.h"

#include <stdbool.h>

#define STEPS 5u
#define TENSORS_MAX 8u

struct state {
    struct ulp_tensor tensors[TENSORS_MAX];
    size_t count;
};

struct bytes {
    uint8_t *data;
    size_t used;
};

static enum ulp_status keep(void *user, const void *data, size_t count) {
    struct bytes *bytes = user;

    bytes->data = realloc(bytes->data, bytes->used + count);
    assert_non_null(bytes->data);
    memcpy(bytes->data + bytes->used, data, count);
    bytes->used += count;
    return ULP_OK;
}

static struct state copy_of(const struct ulp_tensor *tensors, size_t count) {
    struct state state = {.count = count};

    assert_true(count <= TENSORS_MAX);
    for (size_t i = 0; i < count; i++) {
        state.tensors[i] = tensors[i];
        state.tensors[i].data = malloc(tensors[i].bytes);
        assert_non_null(state.tensors[i].data);
        memcpy(state.tensors[i].data, tensors[i].data, tensors[i].bytes);
    }
    return state;
}

static void state_free(struct state *state) {
    for (size_t i = 0; i < state->count; i++)
        free(state->tensors[i].data);
}

static bool same(const struct state *a, const struct state *b) {
    for (size_t i = 0; i < a->count; i++) {
        if (memcmp(a->tensors[i].data, b->tensors[i].data, a->tensors[i].bytes) != 0)
            return false;
    }
    return true;
}

static struct ulp_model *open_file(const char *trace, const char *name) {
    struct ulp_model *model = NULL;
    char path[1024];

    snprintf(path, sizeof path, "%s/%s/%s", TRACE_DIRECTORY, trace, name);
    assert_ok(ulp_model_open(path, &model));
    return model;
}

static void step(struct state *state, const struct ulp_model *changes) {
    for (size_t i = 0; i < state->count; i++) {
        const struct ulp_tensor *tensor = &state->tensors[i], *indices, *values;
        char name[256];

        snprintf(name, sizeof name, "%s.indices", tensor->name);
        indices = ulp_model_find(changes, name);
        snprintf(name, sizeof name, "%s.values", tensor->name);
        values = ulp_model_find(changes, name);
        for (size_t k = 0; indices && k < indices->elements; k++) {
            int32_t index;

            memcpy(&index, (const uint8_t *)indices->data + 4 * k, sizeof index);
            memcpy((uint8_t *)tensor->data + 2 * (size_t)index,
                   (const uint8_t *)values->data + 2 * k, 2);
        }
    }
}

struct trace {
    struct ulp_model *base;
    struct state steps[STEPS + 1];
};

static struct trace trace_load(const char *name) {
    struct trace trace = {.base = open_file(name, "step-0.safetensors")};

    trace.steps[0] = copy_of(ulp_model_tensors(trace.base), ulp_model_count(trace.base));
    for (unsigned i = 1; i <= STEPS; i++) {
        struct ulp_model *changes;
        char file[64];

        snprintf(file, sizeof file, "step-%u.sparse.safetensors", i);
        changes = open_file(name, file);
        trace.steps[i] = copy_of(trace.steps[i - 1].tensors, trace.steps[i - 1].count);
        step(&trace.steps[i], changes);
        ulp_model_free(changes);
    }
    return trace;
}

static void trace_free(struct trace *trace) {
    for (unsigned i = 0; i <= STEPS; i++)
        state_free(&trace->steps[i]);
    ulp_model_free(trace->base);
}

/* The patch from `from` to `to`, applied and compared. Returns its bits per change. */
static double check_patch(const struct state *before, const struct state *from,
                          const struct state *to) {
    struct state held = copy_of(from->tensors, from->count);
    struct ulp_weights *weights = NULL;
    struct ulp_patch *patch = NULL;
    struct bytes bytes = {0};
    const struct ulp_sink sink = {keep, &bytes};
    const struct ulp_diff_options options = {.history = before != NULL};
    struct ulp_diff_report report;

    assert_ok(ulp_weights_new(held.tensors, held.count, NULL, NULL, &weights));
    if (before)
        assert_ok(ulp_weights_remember(weights, before->tensors, before->count, NULL, NULL));
    assert_ok(ulp_diff(weights, to->tensors, to->count, &options, &sink, &report));
    assert_int_equal(report.patch_bytes, bytes.used);
    assert_int_equal(report.history, before != NULL);
    assert_ok(ulp_patch_open_memory(bytes.data, bytes.used, &patch));
    assert_ok(ulp_apply(weights, patch, NULL, NULL));
    assert_true(same(&held, to));
    ulp_patch_free(patch);
    ulp_weights_free(weights);
    state_free(&held);
    free(bytes.data);
    return 8.0 * (double)report.patch_bytes / (double)report.changed;
}

/* Figures that were reached; a little room for a change that gains elsewhere. */
static void check_trace(const char *name, double stateless_most, double history_most,
                        double all_steps_most) {
    struct trace trace = trace_load(name);
    double stateless = 0, history = 0, all;

    for (unsigned i = 0; i < STEPS; i++) {
        stateless += check_patch(NULL, &trace.steps[i], &trace.steps[i + 1]) / STEPS;
        if (i)
            history += check_patch(&trace.steps[i - 1], &trace.steps[i], &trace.steps[i + 1]) /
                       (STEPS - 1);
    }
    all = check_patch(NULL, &trace.steps[0], &trace.steps[STEPS]);
    printf("%s: %.3f bits per change, with history %.3f, all steps in one %.3f\n", name, stateless,
           history, all);
    assert_true(stateless <= stateless_most && history <= history_most && all <= all_steps_most);
    trace_free(&trace);
}

static void test_master(void **state) {
    (void)state;
    check_trace("master", 7.85, 7.83, 6.14);
}

static void test_bf16(void **state) {
    (void)state;
    check_trace("bf16", 5.37, 4.14, 6.69);
}

TEST_MAIN(test_master, test_bf16)
