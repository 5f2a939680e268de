// SPDX-License-Identifier: Apache-2.0
#include "host_step.h"

#include "base/buffer.h"
#include "cuda/memory.h"
#include "gpu/device_apply.h"
#include "gpu/device_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 2

/* ---- the snapshot ---- */

struct held {
    struct ulp_tensor *tensors;
    void **memory;
    size_t count;
    bool pinned;
};

static struct held hold(const struct ulp_tensor *tensors, size_t count, struct host_source source) {
    struct held held = {must_alloc(count * sizeof *tensors), must_alloc(count * sizeof(void *)),
                        count, source.pinned};

    for (size_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)tensors[i].bytes + source.shift;

        if (source.pinned)
            must(cuda_pinned_new(bytes, &held.memory[i]), "pinned memory");
        else
            held.memory[i] = must_alloc(bytes);
        must_hold((bytes && cuda_is_pinned(held.memory[i], bytes)) == (bytes && source.pinned),
                  "memory is taken for pinned, or is not", tensors[i].name, i);
        held.tensors[i] = tensors[i];
        held.tensors[i].data = (uint8_t *)held.memory[i] + source.shift;
        memcpy(held.tensors[i].data, tensors[i].data, (size_t)tensors[i].bytes);
    }
    return held;
}

static void let_go(struct held *held) {
    for (size_t i = 0; i < held->count; i++) {
        if (held->pinned)
            cuda_pinned_free(held->memory[i]);
        else
            free(held->memory[i]);
    }
    free(held->tensors);
    free(held->memory);
}

static void must_be(const struct held *held, const struct ulp_tensor *state, const char *name) {
    for (size_t i = 0; i < held->count; i++)
        must_hold(!memcmp(held->tensors[i].data, state[i].data, (size_t)state[i].bytes),
                  "the snapshot is another", name, i);
}

/* ---- patches ---- */

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    return buffer_append(user, data, bytes);
}

/* Fails with the third piece that it gets. */
static enum ulp_status break_off(void *user, const void *data, size_t bytes) {
    unsigned *pieces = user;

    (void)data, (void)bytes;
    return ++*pieces == 3 ? ulp_fail(ULP_E_NO_SPACE, "no more") : ULP_OK;
}

static void must_refuse(struct device_weights *weights, const struct ulp_patch *patch) {
    struct device_apply *apply = NULL;

    must_hold(device_weights_audit(weights) == ULP_E_USAGE, "an audit of the host's", "host", 0);
    must_hold(device_apply_prepare(weights, patch, NULL, &apply) == ULP_E_USAGE,
              "a patch is applied to the host's weights", "host", 0);
}

static void host_step(const char *name, struct device_weights *weights,
                      struct ulp_weights *snapshot, const struct uploaded *next,
                      const struct ulp_tensor *next_here, struct ulp_pool *pool, bool breaks) {
    const struct ulp_diff_options options = {.history = 1, .pool = pool};
    const struct ulp_apply_options remember = {.remember = 1, .pool = pool};
    struct buffer made = BUFFER(UINT64_C(1) << 32), expected = BUFFER(UINT64_C(1) << 32);
    unsigned pieces = 0;
    const struct ulp_sink to_made = {append, &made}, to_expected = {append, &expected},
                          broken = {break_off, &pieces};
    struct ulp_diff_report report, here;
    struct ulp_patch *patch = NULL;

    must(ulp_diff(snapshot, next_here, next->count, &options, &to_expected, &here), name);
    if (breaks)
        must_hold(device_diff(weights, next->tensors, next->count, &options, &broken, NULL) ==
                      ULP_E_NO_SPACE,
                  "a sink that fails is not heard", name, 0);
    must(device_diff(weights, next->tensors, next->count, &options, &to_made, &report), name);
    for (size_t i = 0; i < made.used && i < expected.used; i++)
        must_hold(made.data[i] == expected.data[i], "from the host: the bytes part here", name, i);
    must_hold(made.used == expected.used, "from the host: another length", name, made.used);
    must_hold(report.changed == here.changed && report.history == here.history,
              "from the host: another report", name, 0);
    must(ulp_patch_open_memory(made.data, made.used, &patch), name);
    must_refuse(weights, patch);
    must(ulp_apply(snapshot, patch, &remember, NULL), name);
    ulp_patch_free(patch);
    buffer_release(&made);
    buffer_release(&expected);
}

size_t host_steps(const char *name, struct ulp_tensor *const *states, const struct uploaded *on,
                  size_t state_count, struct host_source source) {
    struct held held = hold(states[0], on[0].count, source);
    struct ulp_weights *snapshot = NULL;
    struct device_weights *weights = NULL;
    struct ulp_pool *pool = NULL;
    size_t bytes;

    must(ulp_pool_new(THREADS, &pool), name);
    must(ulp_weights_new(held.tensors, held.count, pool, NULL, &snapshot), name);
    must(device_weights_on_host(snapshot, source.window_bytes, NULL, &weights), name);
    for (size_t s = 1; s < state_count; s++) {
        must_be(&held, states[s - 1], name);
        host_step(name, weights, snapshot, &on[s], states[s], s % 2 ? pool : NULL, source.broken);
        must_be(&held, states[s], name);
    }
    bytes = windows_bytes(weights->windows);
    device_weights_trim(weights);
    must_hold(windows_bytes(weights->windows) == 0, "memory is kept", name, 0);
    device_weights_free(weights);
    ulp_weights_free(snapshot);
    ulp_pool_free(pool);
    let_go(&held);
    return bytes;
}
