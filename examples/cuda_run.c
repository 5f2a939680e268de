// SPDX-License-Identifier: Apache-2.0
/*
 * A trainer and a worker whose weights are in the memory of a GPU, and a store between them:
 *
 *     example_cuda_run STORE [TENSORS]     each has 2^24 weights in BF16: 32 MiB; 8 unless told
 *
 * Here both are in one process and on one GPU. STORE is a new directory, or where else stores are. Set
 * ULPSYNC_CUDA_LIBRARY where libulpsync_cuda.so is not installed.
 */
#define _POSIX_C_SOURCE 200809L
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ulpsync/ulpsync.h>

#define ELEMENTS (1u << 24)
#define STEPS 10

static const uint64_t shape[] = {4096, ELEMENTS / 4096};

static void must(enum ulp_status status, const char *doing) {
    if (!status)
        return;
    fprintf(stderr, "example_cuda_run: %s: %s\n", doing, ulp_last_error());
    exit((int)status);
}

static void must_cuda(cudaError_t error) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "example_cuda_run: %s\n", cudaGetErrorString(error));
    exit(1);
}

static double now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- a model, and steps of it: here from the host, since nothing is trained ---- */

static struct ulp_tensor *make_model(size_t count) {
    struct ulp_tensor *tensors = calloc(count, sizeof *tensors);
    char(*names)[40] = calloc(count, sizeof *names);

    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "layers.%zu.weight", i);
        tensors[i] =
            (struct ulp_tensor){.name = names[i], .dtype = "BF16", .shape = shape, .rank = 2};
        must(ulp_tensor_measure(&tensors[i]), "measuring");
        must_cuda(cudaMalloc(&tensors[i].data, tensors[i].bytes));
        must_cuda(cudaMemset(tensors[i].data, 0, tensors[i].bytes));
    }
    return tensors;
}

static uint64_t random_number(void) {
    static uint64_t state = 1;
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 31);
}

/* At first anything; then one weight in a hundred moves by one unit. */
static void train(uint16_t *weights, const struct ulp_tensor *tensors, size_t count, int first) {
    for (size_t i = 0; i < ELEMENTS; i++) {
        uint64_t random = random_number();

        if (first)
            weights[i] = (uint16_t)(0x3800 + (random & 0x83ff));
        else if (random % 100 == 0)
            weights[i] = (uint16_t)(weights[i] + (random >> 63 ? 1 : -1));
    }
    for (size_t i = 0; i < count; i++)
        must_cuda(cudaMemcpy(tensors[i].data, weights, tensors[i].bytes, cudaMemcpyHostToDevice));
}

static int same(const struct ulp_tensor *a, const struct ulp_tensor *b, size_t count) {
    char *x = malloc(2 * ELEMENTS), *y = malloc(2 * ELEMENTS);
    int equal = x && y;

    for (size_t i = 0; equal && i < count; i++) {
        must_cuda(cudaMemcpy(x, a[i].data, a[i].bytes, cudaMemcpyDeviceToHost));
        must_cuda(cudaMemcpy(y, b[i].data, b[i].bytes, cudaMemcpyDeviceToHost));
        equal = !memcmp(x, y, a[i].bytes);
    }
    free(x);
    free(y);
    return equal;
}

/* ---- the two sides ---- */

static void publish(struct ulp_publisher *publisher, const struct ulp_tensor *tensors, size_t count,
                    uint64_t step) {
    struct ulp_run_report report;
    const double started = now_ms();

    must(ulp_publisher_publish(publisher, tensors, count, step, &report), "publishing");
    printf(
        "trainer: version %llu, %.2f MB stored, in %.1f ms: %.1f coding, %.1f checking, %.1f storing\n",
        (unsigned long long)report.version, (double)report.stored_bytes / 1e6, now_ms() - started,
        (double)report.phases.encode_ns / 1e6, (double)report.phases.verify_ns / 1e6,
        (double)(report.phases.store_ns + report.phases.commit_ns) / 1e6);
    must(ulp_publisher_anchor(publisher, NULL), "making an anchor"); /* now and then there is one */
}

static void follow(struct ulp_follower *follower) {
    struct ulp_run_report report;
    double started = now_ms(), polled;

    must(ulp_follower_poll(follower, &report), "polling"); /* the engine works meanwhile */
    while (report.ready) {
        polled = now_ms();
        must(ulp_follower_apply(follower, &report), "applying"); /* and here it waits */
        printf("worker:  version %llu, ready after %.1f ms, a pause of %.2f ms\n",
               (unsigned long long)report.version, polled - started, now_ms() - polled);
        started = now_ms();
        must(ulp_follower_poll(follower, &report), "polling");
    }
}

int main(int argc, char **argv) {
    const size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 8;
    struct ulp_run_options options = {.anchor_every = 8};
    uint16_t *weights = malloc(2 * ELEMENTS);
    struct ulp_store *store = NULL;
    struct ulp_publisher *publisher = NULL;
    struct ulp_follower *follower = NULL;
    struct ulp_tensor *trainers, *workers;
    uint32_t *poisoned = NULL; /* 1 while weights are neither old nor new */

    if (argc < 2 || !count || !weights) {
        fprintf(stderr, "usage: example_cuda_run STORE [TENSORS]\n");
        return 2;
    }
    must(ulp_cuda_available(), "looking for a GPU");
    must(ulp_store_open(argv[1], &store), "opening the store");
    must(ulp_pool_new(0, &options.pool), "threads");
    trainers = make_model(count);
    workers = make_model(count);
    must_cuda(cudaMallocHost((void **)&poisoned, sizeof *poisoned));
    *poisoned = 0;
    must(ulp_publisher_open_cuda(store, "example", NULL, 0, NULL, &options, &publisher),
         "opening a publisher");
    must(ulp_follower_open_cuda(store, "example", workers, count, poisoned, NULL, &options,
                                &follower),
         "opening a follower");
    for (int i = 0; i < STEPS; i++) {
        train(weights, trainers, count, i == 0);
        publish(publisher, trainers, count, (uint64_t)i);
        follow(follower);
    }
    if (!same(trainers, workers, count)) {
        fprintf(stderr, "example_cuda_run: the worker has other weights than the trainer\n");
        return 1;
    }
    puts("the worker has the trainer's weights, bit for bit");
    ulp_follower_close(follower);
    ulp_publisher_close(publisher);
    ulp_store_free(store);
    ulp_pool_free(options.pool);
    return 0;
}
