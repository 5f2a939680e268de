// SPDX-License-Identifier: Apache-2.0
#include "cast_bench.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "gpu/device_apply.h"
#include "gpu/device_cast.h"
#include "gpu/device_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 8u
#define PATCH_MAX (UINT64_C(1) << 32)

/* What one state and its patches are made of. */
struct side {
    struct ulp_tensor tensor;
    struct device_weights *weights;
    struct buffer patch;
};

static void hold(enum ulp_status status, const char *doing) {
    if (!status)
        return;
    fprintf(stderr, "gpu_bench: %s: %s: %s\n", doing, ulp_status_name(status), ulp_last_error());
    exit(1);
}

static struct ulp_tensor tensor_of(const uint64_t *shape, const char *dtype, void *data) {
    struct ulp_tensor tensor = {
        .name = "w", .dtype = dtype, .shape = shape, .rank = 1, .data = data};

    hold(ulp_tensor_measure(&tensor), "measuring");
    return tensor;
}

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

static double since(uint64_t started) {
    return (double)(clock_monotonic_ns() - started) / 1e6;
}

static void keep_least(double *best, double ms) {
    if (*best <= 0 || ms < *best)
        *best = ms;
}

/* The patch is taken by the snapshot. */
static void take(struct side *snapshot) {
    struct device_apply *apply = NULL;
    struct ulp_patch *patch = NULL;

    hold(ulp_patch_open_memory(snapshot->patch.data, snapshot->patch.used, &patch), "opening");
    hold(device_apply_prepare(snapshot->weights, patch, NULL, &apply), "preparing");
    hold(device_apply_commit(apply, NULL), "committing");
    device_apply_free(apply);
    ulp_patch_free(patch);
}

static void step(struct side *cast, struct side *snapshot, const struct ulp_tensor *masters,
                 struct cast_times *times) {
    const struct ulp_sink to_cast = {append, &cast->patch}, to_other = {append, &snapshot->patch};
    struct ulp_diff_report report;
    uint64_t started = clock_monotonic_ns();

    hold(device_cast(cast->weights, masters, 1), "casting");
    keep_least(&times->cast_ms, since(started));
    buffer_clear(&cast->patch);
    buffer_clear(&snapshot->patch);
    started = clock_monotonic_ns();
    hold(device_cast_diff(cast->weights, NULL, &to_cast, &report), "a patch at the cast");
    keep_least(&times->cast_diff_ms, since(started));
    started = clock_monotonic_ns();
    hold(device_diff(snapshot->weights, &cast->tensor, 1, NULL, &to_other, NULL), "a patch");
    keep_least(&times->diff_ms, since(started));
    if (cast->patch.used != snapshot->patch.used ||
        memcmp(cast->patch.data, snapshot->patch.data, cast->patch.used) != 0) {
        fprintf(stderr, "gpu_bench: the patches differ\n");
        exit(1);
    }
    take(snapshot);
    hold(device_cast_commit(cast->weights), "committing");
    times->changed = (double)report.changed;
    times->patch_bytes = (double)report.patch_bytes;
}

struct cast_times cast_bench_run(const struct cast_bench *bench) {
    const uint64_t shape[] = {bench->elements};
    const struct ulp_tensor masters = tensor_of(shape, "F32", bench->masters);
    struct side cast = {tensor_of(shape, "BF16", bench->weights), NULL, BUFFER(PATCH_MAX)};
    struct side snapshot = {tensor_of(shape, "BF16", bench->snapshot), NULL, BUFFER(PATCH_MAX)};
    struct cast_times times = {0};

    hold(device_weights_new(&cast.tensor, 1, NULL, NULL, &cast.weights), "weights");
    hold(device_weights_new(&snapshot.tensor, 1, NULL, NULL, &snapshot.weights), "a snapshot");
    for (unsigned i = 0; i < STEPS; i++) {
        bench->step(bench, i);
        step(&cast, &snapshot, &masters, &times);
    }
    times.cast_bytes = device_cast_bytes(cast.weights) + cast.weights->spare.bytes;
    times.encoder_bytes = cuda_encoder_bytes(cast.weights->encoder);
    device_weights_free(cast.weights);
    device_weights_free(snapshot.weights);
    buffer_release(&cast.patch);
    buffer_release(&snapshot.patch);
    return times;
}
