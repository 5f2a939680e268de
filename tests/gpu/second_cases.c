// SPDX-License-Identifier: Apache-2.0
/*
 * Two states on the device, one of which takes each patch while the other is in use: after every
 * commit and undo both are, byte for byte, what the CPU has at that version. On a GPU, or on
 * fibers that stand in for one.
 */
#include "gpu_cases.h"
#include "gpu_step.h"

#include "base/buffer.h"
#include "cuda/memory.h"
#include "gpu/device_apply.h"
#include "gpu/device_diff.h"
#include "gpu/device_second.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 5
#define TENSORS 5

static const char *const name = "two states";

static uint64_t next_random(void) {
    static uint64_t state = 7;

    return random_after(&state);
}

/* ---- versions in the host's memory ---- */

struct versions {
    uint64_t elements[TENSORS];
    struct ulp_tensor of[STEPS + 1][TENSORS];
};

/* One byte in about `every` becomes another; 0: none. */
static void change(uint8_t *bytes, uint64_t count, uint64_t every) {
    for (uint64_t i = 0; every && i < count; i++) {
        const uint64_t random = next_random();

        if (random % every == 0)
            bytes[i] = (uint8_t)(bytes[i] + (random >> 40 | 1));
    }
}

static void make_versions(struct versions *versions, uint64_t scale) {
    static const char *const dtypes[TENSORS] = {"BF16", "F32", "F8_E4M3", "F64", "BF16"};
    static const char *const names[TENSORS] = {"a", "b", "c", "d", "e"};
    static const uint64_t every[STEPS] = {200, 60, 0, 7, 1000};

    for (int t = 0; t < TENSORS; t++) {
        versions->elements[t] = t == TENSORS - 1 ? 3 : (uint64_t)(9000 - 1001 * t) * scale + 5;
        for (int v = 0; v <= STEPS; v++) {
            struct ulp_tensor *tensor = &versions->of[v][t];

            *tensor = (struct ulp_tensor){
                .name = names[t], .dtype = dtypes[t], .shape = &versions->elements[t], .rank = 1};
            must(ulp_tensor_measure(tensor), name);
            tensor->data = must_alloc(tensor->bytes);
            if (v) {
                memcpy(tensor->data, versions->of[v - 1][t].data, tensor->bytes);
                change(tensor->data, tensor->bytes, every[v - 1]);
            } else {
                change(tensor->data, tensor->bytes, 1);
            }
        }
    }
}

static void free_versions(struct versions *versions) {
    for (int v = 0; v <= STEPS; v++) {
        for (int t = 0; t < TENSORS; t++)
            free(versions->of[v][t].data);
    }
}

/* ---- the device ---- */

struct pair {
    struct uploaded sets[2];
    struct device_weights *weights;
    uint32_t *front; /* pinned */
};

static void compare_set(const struct uploaded *set, const struct ulp_tensor *expected, size_t at) {
    for (size_t t = 0; t < set->count; t++) {
        uint8_t *bytes = must_alloc(expected[t].bytes);

        must(cuda_copy_out(bytes, set->tensors[t].data, expected[t].bytes, NULL), name);
        must(cuda_wait(NULL), name);
        must_hold(!memcmp(bytes, expected[t].data, expected[t].bytes), "a state differs", name, at);
        free(bytes);
    }
}

static void compare(const struct pair *pair, uint32_t front, const struct ulp_tensor *used,
                    const struct ulp_tensor *beside, size_t at) {
    must_hold(*(volatile uint32_t *)pair->front == front, "the word is wrong", name, at);
    must_hold(pair->weights->second->front == front, "another state is in use", name, at);
    compare_set(&pair->sets[front], used, at);
    compare_set(&pair->sets[1 - front], beside, at);
    must(device_weights_audit(pair->weights), name);
}

static struct pair make_pair(const struct versions *versions) {
    struct pair pair = {
        {upload(versions->of[0], TENSORS, 0), upload(versions->of[1], TENSORS, 8)}, NULL, NULL};

    must(cuda_pinned_new(sizeof *pair.front, (void **)&pair.front), name);
    *pair.front = 0;
    must(device_weights_new(pair.sets[0].tensors, TENSORS, NULL, NULL, &pair.weights), name);
    must(device_second_attach(pair.weights, pair.sets[1].tensors, TENSORS, pair.front), name);
    compare(&pair, 0, versions->of[0], versions->of[0], 0);
    return pair;
}

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

/* Made by the CPU; taken, taken back, and taken again. Returns the handle, for later. */
static struct device_apply *take(struct pair *pair, const struct versions *versions, int version,
                                 struct ulp_weights *twin, struct buffer *bytes,
                                 struct ulp_patch **ret_patch) {
    const struct ulp_diff_options options = {.history = 1};
    const struct ulp_apply_options remember = {.remember = 1};
    const struct ulp_tensor *to = versions->of[version], *from = versions->of[version - 1];
    const struct ulp_tensor *before = versions->of[version < 2 ? 0 : version - 2];
    const uint32_t front = *pair->front;
    const struct ulp_sink sink = {append, bytes};
    struct device_apply *apply = NULL;

    must(ulp_diff(twin, to, TENSORS, &options, &sink, NULL), name);
    must(ulp_patch_open_memory(bytes->data, bytes->used, ret_patch), name);
    must(device_apply_prepare(pair->weights, *ret_patch, &remember, &apply), name);
    compare(pair, front, from, before, (size_t)version);
    must(device_apply_commit(apply, NULL), name);
    compare(pair, 1 - front, to, from, (size_t)version);
    must(device_apply_undo(apply), name);
    compare(pair, front, from, to, (size_t)version);
    must(device_apply_commit(apply, NULL), name);
    compare(pair, 1 - front, to, from, (size_t)version);
    must(ulp_apply(twin, *ret_patch, &remember, NULL), name);
    return apply;
}

/* What is compared with is what is in use: the device makes the CPU's patch. */
static void compare_patch(struct pair *pair, const struct versions *versions,
                          const struct ulp_weights *twin) {
    struct buffer made = BUFFER(UINT64_C(1) << 32), expected = BUFFER(UINT64_C(1) << 32);
    const struct ulp_sink to_made = {append, &made}, to_expected = {append, &expected};
    struct uploaded next = upload(versions->of[0], TENSORS, 0);

    must(device_diff(pair->weights, next.tensors, TENSORS, NULL, &to_made, NULL), name);
    must(ulp_diff(twin, versions->of[0], TENSORS, NULL, &to_expected, NULL), name);
    must_hold(made.used == expected.used && !memcmp(made.data, expected.data, made.used),
              "another patch than the CPU's", name, made.used);
    buffer_release(&made);
    buffer_release(&expected);
    release(&next);
}

void second_cases(uint64_t scale) {
    struct versions versions;
    struct device_apply *applies[STEPS];
    struct ulp_patch *patches[STEPS] = {NULL};
    struct buffer bytes[STEPS];
    struct ulp_weights *twin = NULL;
    struct ulp_tensor live[TENSORS];
    struct pair pair;

    make_versions(&versions, scale);
    pair = make_pair(&versions);
    memcpy(live, versions.of[0], sizeof live);
    for (int t = 0; t < TENSORS; t++) {
        live[t].data = must_alloc(live[t].bytes);
        memcpy(live[t].data, versions.of[0][t].data, live[t].bytes);
    }
    must(ulp_weights_new(live, TENSORS, NULL, NULL, &twin), name);
    for (int v = 0; v < STEPS; v++) {
        bytes[v] = BUFFER(UINT64_C(1) << 32);
        applies[v] = take(&pair, &versions, v + 1, twin, &bytes[v], &patches[v]);
        compare_patch(&pair, &versions, twin);
    }
    for (int v = STEPS; v > 0; v--) { /* all the way back */
        must(device_apply_undo(applies[v - 1]), name);
        compare(&pair, (uint32_t)(v + 1) % 2, versions.of[v - 1], versions.of[v], (size_t)v);
    }
    for (int v = 0; v < STEPS; v++) {
        device_apply_free(applies[v]);
        ulp_patch_free(patches[v]);
        buffer_release(&bytes[v]);
    }
    printf("two states: %d patches of 4 widths, there, back and there again: as on the CPU\n",
           STEPS);
    device_weights_free(pair.weights);
    cuda_pinned_free(pair.front);
    release(&pair.sets[0]);
    release(&pair.sets[1]);
    ulp_weights_free(twin);
    for (int t = 0; t < TENSORS; t++)
        free(live[t].data);
    free_versions(&versions);
}
