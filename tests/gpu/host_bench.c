// SPDX-License-Identifier: Apache-2.0
/* Diff and encode with the old weights in the host's memory, beside a bare copy of them to the device. */
#include "gpu_step.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "cuda/memory.h"
#include "gpu/device_diff.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 7

void host_bench(void *old, void *next, uint64_t elements);

struct host_bench {
    struct ulp_tensor snapshot, old, next; /* the latter on the device */
    struct ulp_pool *pool;
    double copy_ms; /* the limit */
};

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

static double ms_since(uint64_t started) {
    return (double)(clock_monotonic_ns() - started) / 1e6;
}

/* The best of some rounds; the first takes memory. */
static double time_diff(const struct host_bench *bench, struct device_weights *weights,
                        const struct ulp_tensor *next, struct buffer *made) {
    const struct ulp_diff_options options = {.pool = bench->pool, .history = 1};
    const struct ulp_sink sink = {append, made};
    double best = 1e9;

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t started = clock_monotonic_ns();
        double ms;

        buffer_clear(made);
        must(device_diff(weights, next, 1, &options, &sink, NULL), "a patch from the host");
        ms = ms_since(started);
        best = ms < best ? ms : best;
    }
    return best;
}

static void tell(const struct host_bench *bench, const char *what, double ms, size_t patch_bytes,
                 const struct device_weights *weights) {
    printf("    %-36s %7.3f ms %6.2f times the copy, %.1f GB/s; %.0f MB of device memory, a patch "
           "of %.2f MB\n",
           what, ms, ms / bench->copy_ms, (double)bench->old.bytes / ms / 1e6,
           (double)windows_bytes(weights->windows) / 1e6, (double)patch_bytes / 1e6);
}

/* To the new weights and, with what is then remembered, back. */
static void time_source(struct host_bench *bench, const char *what, const char *with_history) {
    const struct ulp_apply_options remember = {.pool = bench->pool, .remember = 1};
    struct buffer made = BUFFER(UINT64_C(1) << 32);
    struct ulp_weights *snapshot = NULL;
    struct device_weights *weights = NULL;
    struct ulp_patch *patch = NULL;
    double ms;

    must(cuda_copy_out(bench->snapshot.data, bench->old.data, (size_t)bench->old.bytes, NULL),
         "copying");
    must(cuda_wait(NULL), "copying");
    must(ulp_weights_new(&bench->snapshot, 1, bench->pool, NULL, &snapshot), "digesting");
    must(device_weights_on_host(snapshot, 0, NULL, &weights), "weights");
    ms = time_diff(bench, weights, &bench->next, &made);
    tell(bench, what, ms, made.used, weights);
    must(ulp_patch_open_memory(made.data, made.used, &patch), "the patch");
    must(ulp_apply(snapshot, patch, &remember, NULL), "applying");
    ulp_patch_free(patch);
    ms = time_diff(bench, weights, &bench->old, &made);
    tell(bench, with_history, ms, made.used, weights);
    device_weights_free(weights);
    ulp_weights_free(snapshot);
    buffer_release(&made);
}

static double time_copy(const void *pinned, size_t bytes) {
    void *device = NULL;
    double best = 1e9;

    must(cuda_memory_new(bytes, &device), "device memory");
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t started = clock_monotonic_ns();
        double ms;

        must(cuda_copy_in(device, pinned, bytes, NULL), "copying");
        must(cuda_wait(NULL), "copying");
        ms = ms_since(started);
        best = ms < best ? ms : best;
    }
    cuda_memory_free(device);
    return best;
}

void host_bench(void *old, void *next, uint64_t elements) {
    const uint64_t shape[] = {elements};
    struct host_bench bench = {
        .old = {.name = "w", .dtype = "BF16", .shape = shape, .rank = 1, .data = old}};
    void *pinned = NULL;

    must(ulp_tensor_measure(&bench.old), "measuring");
    bench.next = bench.snapshot = bench.old;
    bench.next.data = next;
    must(ulp_pool_new(0, &bench.pool), "threads");
    must(cuda_pinned_new((size_t)bench.old.bytes, &pinned), "pinned memory");
    bench.copy_ms = time_copy(pinned, (size_t)bench.old.bytes);
    printf("    %-36s %7.3f ms, %.1f GB/s\n", "copy of the old weights, pinned", bench.copy_ms,
           (double)bench.old.bytes / bench.copy_ms / 1e6);
    bench.snapshot.data = pinned;
    time_source(&bench, "from the host, pinned", "the same with history");
    cuda_pinned_free(pinned);
    bench.snapshot.data = must_alloc((size_t)bench.old.bytes);
    time_source(&bench, "from the host, not pinned", "the same with history");
    free(bench.snapshot.data);
    ulp_pool_free(bench.pool);
}
