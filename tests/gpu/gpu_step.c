// SPDX-License-Identifier: Apache-2.0
#include "gpu_step.h"

#include "gpu_cases.h"

#include "base/buffer.h"
#include "cuda/memory.h"
#include "gpu/device_apply.h"
#include "gpu/device_diff.h"

#include <stdio.h>
#include <stdlib.h>

void must(enum ulp_status status, const char *doing) {
    if (!status)
        return;
    fprintf(stderr, "%s: %s: %s\n", doing, ulp_status_name(status), ulp_last_error());
    exit(1);
}

void must_hold(bool holds, const char *what, const char *name, size_t where) {
    if (holds)
        return;
    fprintf(stderr, "%s: %s (%zu)\n", name, what, where);
    exit(1);
}

void *must_alloc(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);

    if (!memory)
        abort();
    return memory;
}

uint64_t random_after(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* ---- the same on the device, `shift` bytes off the alignment ---- */

struct uploaded upload(const struct ulp_tensor *tensors, size_t count, size_t shift) {
    struct uploaded uploaded = {must_alloc(count * sizeof *tensors),
                                must_alloc(count * sizeof(void *)), count};

    for (size_t i = 0; i < count; i++) {
        uploaded.tensors[i] = tensors[i];
        must(cuda_memory_new(tensors[i].bytes + shift, &uploaded.memory[i]), "device memory");
        uploaded.tensors[i].data = (uint8_t *)uploaded.memory[i] + shift;
        must(cuda_copy_in(uploaded.tensors[i].data, tensors[i].data, tensors[i].bytes, NULL),
             "uploading");
    }
    return uploaded;
}

void release(struct uploaded *uploaded) {
    for (size_t i = 0; i < uploaded->count; i++)
        cuda_memory_free(uploaded->memory[i]);
    free(uploaded->memory);
    free(uploaded->tensors);
}

/* ---- patches ---- */

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

static void compare(const char *name, const struct buffer *made, const struct buffer *expected) {
    for (size_t i = 0; i < made->used && i < expected->used; i++)
        must_hold(made->data[i] == expected->data[i], "the bytes part here", name, i);
    must_hold(made->used == expected->used, "another length", name, made->used);
}

/* The patch to `next`, by both; the device's is checked against the CPU's, and both take it. */
struct ulp_diff_report step(const char *name, struct device_weights *weights,
                            struct ulp_weights *twin, const struct uploaded *next,
                            const struct ulp_tensor *next_twin) {
    const struct ulp_diff_options options = {.history = 1};
    const struct ulp_apply_options remember = {.remember = 1};
    struct buffer made = BUFFER(UINT64_C(1) << 32), expected = BUFFER(UINT64_C(1) << 32);
    const struct ulp_sink to_made = {append, &made}, to_expected = {append, &expected};
    struct ulp_diff_report report;
    struct ulp_patch *patch = NULL;
    struct device_apply *apply = NULL;

    must(ulp_diff(twin, next_twin, next->count, &options, &to_expected, NULL), "the CPU's patch");
    must(device_diff(weights, next->tensors, next->count, &options, &to_made, &report), name);
    compare(name, &made, &expected);
    must(ulp_patch_open_memory(made.data, made.used, &patch), name);
    must(device_apply_prepare(weights, patch, &remember, &apply), name);
    must(device_apply_commit(apply, NULL), name);
    must(ulp_apply(twin, patch, &remember, NULL), name);
    device_apply_free(apply);
    ulp_patch_free(patch);
    must(device_weights_audit(weights), name);
    buffer_release(&made);
    buffer_release(&expected);
    return report;
}

uint64_t step_in_place(uint16_t *old, uint16_t *next, uint64_t elements) {
    const uint64_t shape[] = {elements};
    struct ulp_tensor from = {.name = "w", .dtype = "BF16", .shape = shape, .rank = 1, .data = old},
                      to;
    struct ulp_apply_options options = {0};
    struct buffer made = BUFFER(UINT64_C(1) << 32);
    const struct ulp_sink sink = {append, &made};
    struct device_weights *weights = NULL;
    struct device_apply *apply = NULL;
    struct ulp_patch *patch = NULL;
    uint64_t bytes;

    must(ulp_tensor_measure(&from), "measuring");
    to = from;
    to.data = next;
    must(ulp_pool_new(0, &options.pool), "threads");
    must(device_weights_new(&from, 1, NULL, NULL, &weights), "weights");
    must(device_diff(weights, &to, 1, NULL, &sink, NULL), "a patch");
    must(ulp_patch_open_memory(made.data, made.used, &patch), "the patch");
    must(device_apply_prepare(weights, patch, &options, &apply), "preparing");
    must(device_apply_commit(apply, NULL), "committing");
    bytes = made.used;
    device_apply_free(apply);
    ulp_patch_free(patch);
    device_weights_free(weights);
    ulp_pool_free(options.pool);
    buffer_release(&made);
    return bytes;
}
