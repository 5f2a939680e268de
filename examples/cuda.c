// SPDX-License-Identifier: Apache-2.0
/*
 * Two steps of a model in the memory of a GPU: the trainer's patch, and a worker that takes it.
 *
 *     example_cuda [HIDDEN LAYERS]      4096 35 is a model of 7 billion parameters
 *
 * Set ULPSYNC_CUDA_LIBRARY where libulpsync_cuda.so is not installed.
 */
#define _POSIX_C_SOURCE 200809L
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ulpsync/ulpsync.h>

#define TENSORS_OF_LAYER 9
#define PATTERN (1u << 24) /* elements that are made here, and repeated */

struct state {
    struct ulp_tensor *tensors;
    char (*names)[64];
    uint64_t (*shapes)[2];
    size_t count;
    uint64_t bytes;
};

static void must(enum ulp_status status, const char *doing) {
    if (!status)
        return;
    fprintf(stderr, "example_cuda: %s: %s\n", doing, ulp_last_error());
    exit((int)status);
}

static void must_cuda(cudaError_t error) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "example_cuda: %s\n", cudaGetErrorString(error));
    exit(1);
}

static double now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- a model ---- */

static void add(struct state *state, const char *name, long layer, uint64_t rows,
                uint64_t columns) {
    struct ulp_tensor *tensor = &state->tensors[state->count];

    if (layer < 0)
        snprintf(state->names[state->count], sizeof *state->names, "model.%s.weight", name);
    else
        snprintf(state->names[state->count], sizeof *state->names, "model.layers.%ld.%s.weight",
                 layer, name);
    state->shapes[state->count][0] = rows;
    state->shapes[state->count][1] = columns;
    *tensor = (struct ulp_tensor){.name = state->names[state->count],
                                  .dtype = "BF16",
                                  .shape = state->shapes[state->count],
                                  .rank = 2};
    must(ulp_tensor_measure(tensor), "measuring");
    must_cuda(cudaMalloc(&tensor->data, tensor->bytes));
    state->bytes += tensor->bytes;
    state->count++;
}

static struct state make_state(uint64_t hidden, long layers) {
    const size_t most = (size_t)layers * TENSORS_OF_LAYER + 2;
    struct state state = {calloc(most, sizeof *state.tensors), calloc(most, sizeof *state.names),
                          calloc(most, sizeof *state.shapes), 0, 0};

    add(&state, "embed", -1, 8 * hidden, hidden);
    add(&state, "head", -1, 8 * hidden, hidden);
    for (long i = 0; i < layers; i++) {
        static const char *const square[] = {"q", "k", "v", "o"};
        const uint64_t wide = hidden * 11 / 4;

        for (size_t k = 0; k < 4; k++)
            add(&state, square[k], i, hidden, hidden);
        add(&state, "gate", i, wide, hidden);
        add(&state, "up", i, wide, hidden);
        add(&state, "down", i, hidden, wide);
        add(&state, "norm1", i, 1, hidden);
        add(&state, "norm2", i, 1, hidden);
    }
    return state;
}

static void fill(const struct state *state, const uint16_t *pattern) {
    for (size_t i = 0; i < state->count; i++) {
        for (uint64_t at = 0; at < state->tensors[i].bytes; at += 2 * PATTERN) {
            uint64_t left = state->tensors[i].bytes - at;

            must_cuda(cudaMemcpy((char *)state->tensors[i].data + at, pattern,
                                 left < 2 * PATTERN ? left : 2 * PATTERN, cudaMemcpyHostToDevice));
        }
    }
}

/* ---- weights as a network has them, and a step: the smaller a weight, the likelier it moves ---- */

static uint64_t random_number(void) {
    static uint64_t state = 1;
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void make_pattern(uint16_t *weights) {
    for (size_t i = 0; i < PATTERN; i++) {
        uint64_t random = random_number();
        unsigned exponent = 121 - (unsigned)__builtin_ctz((unsigned)(random >> 32) | 1u << 20);

        weights[i] = (uint16_t)((random & 1) << 15 | exponent << 7 | (random >> 1 & 127));
    }
}

static void step_pattern(uint16_t *weights) {
    for (size_t i = 0; i < PATTERN; i++) {
        uint64_t random = random_number();
        unsigned down = 121 - (weights[i] >> 7 & 255u);

        if ((random & 0xffffff) < 0x10000u << (down < 7 ? down : 7))
            weights[i] = (uint16_t)(weights[i] + (random >> 40 & 1 ? 1 : -1));
    }
}

/* ---- the two sides ---- */

struct bytes {
    char *data;
    size_t used, room;
};

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    struct bytes *to = user;

    if (to->used + bytes > to->room)
        return ulp_fail(ULP_E_NO_SPACE, "the patch is larger than expected");
    memcpy(to->data + to->used, data, bytes);
    to->used += bytes;
    return ULP_OK;
}

static void step(struct ulp_cuda_weights *weights, const struct state *next,
                 struct bytes *patch_bytes) {
    const struct ulp_diff_options with_history = {.history = 1};
    struct ulp_apply_options remember = {.remember = 1};
    const struct ulp_sink sink = {append, patch_bytes};
    struct ulp_diff_report report;
    struct ulp_patch *patch = NULL;
    struct ulp_cuda_apply *apply = NULL;
    double started = now_ms(), made, prepared;

    patch_bytes->used = 0;
    must(ulp_cuda_diff(weights, next->tensors, next->count, &with_history, &sink, &report),
         "making a patch");
    made = now_ms();
    printf("trainer: %.2f %% changed, a patch of %.2f MB in host memory after %.2f ms%s\n",
           100.0 * (double)report.changed / (double)report.elements,
           (double)patch_bytes->used / 1e6, made - started, report.history ? ", with history" : "");

    must(ulp_pool_new(0, &remember.pool), "threads");
    started = now_ms();
    must(ulp_patch_open_memory(patch_bytes->data, patch_bytes->used, &patch), "opening the patch");
    must(ulp_cuda_apply_prepare(weights, patch, &remember, &apply), "preparing");
    prepared = now_ms();
    must(ulp_cuda_apply_commit(apply, NULL), "committing");
    printf("worker:  decoded and verified in %.2f ms, then a pause of %.2f ms\n",
           prepared - started, now_ms() - prepared);
    ulp_cuda_apply_free(apply);
    ulp_patch_free(patch);
    ulp_pool_free(remember.pool);
}

int main(int argc, char **argv) {
    const uint64_t hidden = argc > 2 ? strtoull(argv[1], NULL, 10) : 1024;
    const long layers = argc > 2 ? strtol(argv[2], NULL, 10) : 4;
    uint16_t *pattern = malloc(2 * PATTERN);
    struct state held, next;
    struct ulp_cuda_weights *weights = NULL;
    struct bytes patch = {NULL, 0, 0};
    double started;

    must(ulp_cuda_available(), "looking for a GPU");
    held = make_state(hidden, layers);
    next = make_state(hidden, layers);
    patch.room = held.bytes / 8 + (1 << 20);
    patch.data = malloc(patch.room);
    make_pattern(pattern);
    fill(&held, pattern);
    started = now_ms();
    must(ulp_cuda_weights_new(held.tensors, held.count, NULL, NULL, &weights),
         "taking the weights");
    printf("%zu tensors, %.2f GB, digested in %.2f ms\n", held.count, (double)held.bytes / 1e9,
           now_ms() - started);
    for (int i = 0; i < 4; i++) {
        step_pattern(pattern);
        fill(&next, pattern);
        step(weights, &next, &patch);
    }
    started = now_ms();
    must(ulp_cuda_weights_audit(weights), "an audit");
    printf("every bit is what it should be, looked at in %.2f ms\n", now_ms() - started);
    ulp_cuda_weights_free(weights);
    return 0;
}
