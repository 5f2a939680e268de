// SPDX-License-Identifier: Apache-2.0
/*
 * A trainer with FP32 masters on a GPU: each step they are cast into the BF16 weights in place, and the
 * patch is made of what the cast has changed, without a copy of the old weights. One patch is lost on
 * its way; the next one takes its changes along. A worker in the host's memory follows.
 *
 *     example_cuda_cast [ELEMENTS]
 *
 * Set ULPSYNC_CUDA_LIBRARY where libulpsync_cuda.so is not installed.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulpsync/ulpsync.h>

static void must(enum ulp_status status, const char *doing) {
    if (!status)
        return;
    fprintf(stderr, "example_cuda_cast: %s: %s\n", doing, ulp_last_error());
    exit((int)status);
}

static void must_cuda(cudaError_t error) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "example_cuda_cast: %s\n", cudaGetErrorString(error));
    exit(1);
}

static struct ulp_tensor tensor(const char *dtype, const uint64_t *elements, void *data) {
    struct ulp_tensor tensor = {
        .name = "w", .dtype = dtype, .shape = elements, .rank = 1, .data = data};

    must(ulp_tensor_measure(&tensor), "measuring");
    return tensor;
}

/* ---- a step of the optimiser, here on the host ---- */

static float random_number(void) {
    return (float)rand() / (float)RAND_MAX * 2 - 1;
}

static void step(float *masters, uint64_t elements, float size, void *on_device) {
    for (uint64_t i = 0; i < elements; i++)
        masters[i] += size * random_number();
    must_cuda(cudaMemcpy(on_device, masters, elements * sizeof *masters, cudaMemcpyHostToDevice));
}

/* ---- the patch ---- */

struct bytes {
    unsigned char *data;
    size_t used, room;
};

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    struct bytes *to = user;

    if (bytes > to->room - to->used)
        return ULP_E_LIMIT;
    memcpy(to->data + to->used, data, bytes);
    to->used += bytes;
    return ULP_OK;
}

static void make(struct ulp_cuda_weights *trainer, struct bytes *bytes) {
    const struct ulp_diff_options history = {.history = 1};
    const struct ulp_sink sink = {append, bytes};
    struct ulp_diff_report report;

    bytes->used = 0;
    must(ulp_cuda_cast_diff(trainer, &history, &sink, &report), "making a patch");
    printf("a patch of %llu changes in %zu bytes\n", (unsigned long long)report.changed,
           bytes->used);
}

/* Only a patch that the worker has is committed. */
static void publish(struct ulp_cuda_weights *trainer, struct ulp_weights *worker,
                    const struct bytes *bytes) {
    const struct ulp_apply_options remember = {.remember = 1};
    struct ulp_patch *patch = NULL;

    must(ulp_patch_open_memory(bytes->data, bytes->used, &patch), "opening the patch");
    must(ulp_apply(worker, patch, &remember, NULL), "applying the patch");
    must(ulp_cuda_cast_commit(trainer), "committing");
    ulp_patch_free(patch);
}

int main(int argc, char **argv) {
    const uint64_t elements = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    float *masters = calloc(elements, sizeof *masters);
    void *masters_there = NULL, *weights_there = NULL, *held = calloc(elements, 2);
    struct bytes bytes = {malloc(8 * elements + 65536), 0, 8 * elements + 65536};
    struct ulp_tensor master, weights, worker_weights;
    struct ulp_cuda_weights *trainer = NULL;
    struct ulp_weights *worker = NULL;
    struct ulp_root here, there;

    must(ulp_cuda_available(), "looking for a GPU");
    must_cuda(cudaMalloc(&masters_there, 4 * elements));
    must_cuda(cudaMalloc(&weights_there, 2 * elements));
    must_cuda(cudaMemset(weights_there, 0, 2 * elements));
    master = tensor("F32", &elements, masters_there);
    weights = tensor("BF16", &elements, weights_there);
    worker_weights = tensor("BF16", &elements, held);
    must(ulp_cuda_weights_new(&weights, 1, NULL, NULL, &trainer), "the trainer's weights");
    must(ulp_weights_new(&worker_weights, 1, NULL, NULL, &worker), "the worker's weights");

    for (int i = 0; i < 6; i++) {
        step(masters, elements, i ? 1e-5f : 0.02f, masters_there);
        must(ulp_cuda_cast(trainer, &master, 1), "casting");
        make(trainer, &bytes);
        if (i == 3)
            printf("... which is lost: the next one starts where it did\n");
        else
            publish(trainer, worker, &bytes);
    }
    ulp_cuda_weights_root(trainer, &there);
    ulp_weights_root(worker, &here);
    printf("worker and trainer %s\n", memcmp(&here, &there, sizeof here) ? "differ" : "are equal");
    ulp_cuda_weights_free(trainer);
    ulp_weights_free(worker);
    return memcmp(&here, &there, sizeof here) != 0;
}
