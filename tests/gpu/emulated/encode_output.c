// SPDX-License-Identifier: Apache-2.0
/* A patch that is longer than the encoder has room for: the room grows until it fits, and is not many times
 * what was needed, however many waves had found it full. And where there is no memory, that is all: what
 * comes next does not fail for it. */
#include "tests/gpu/emulated/device.h"

#include "gpu/device_diff.h"

extern size_t emulate_memory_most;

/* Kinds of elements, each of which is a chunk of some tensors. */
static const char *const dtypes[] = {"F64", "I64", "F32", "I32", "BF16", "F16", "I16"};
#define EACH 50u
#define TENSORS (COUNT(dtypes) * EACH)

static char names[TENSORS][8];
static struct form forms[TENSORS];

static struct state make_base(void) {
    for (size_t i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "t%03zu", i);
        forms[i] = (struct form){names[i], dtypes[i / EACH], {20000}, 1, 0};
    }
    return state_make(forms, TENSORS, 0);
}

/* Each chunk is a wave. */
static void make_encoder(struct device_weights *weights) {
    struct cuda_plan plan = weights->plan.device;
    const struct cuda_encoder_options options = {.waves = plan.segment_count};

    plan.segments = weights->plan.segments;
    plan.blocks = weights->plan.blocks;
    assert_int_equal(plan.segment_count, COUNT(dtypes));
    assert_ok(cuda_encoder_new(&plan, &options, &weights->encoder));
}

static void test_many_waves(void **unused) {
    struct state base = make_base(), next = state_copy(&base);
    struct bytes expected, made = {0};
    const struct ulp_sink sink = bytes_sink(&made);

    (void)unused;
    state_scramble(&next, 110);
    expected = patch_between(&base, &next, NULL);
    assert_true(expected.used > (size_t)3 << 20); /* to begin with there is room for 1 MiB */
    struct on_device old = device_copy(&base, 0), new = device_copy(&next, 0);
    struct device_weights *weights = device_weights_of(&old);

    make_encoder(weights);
    emulate_memory_most = (size_t)12 << 20;
    assert_ok(device_diff(weights, new.tensors, new.count, NULL, &sink, NULL));
    emulate_memory_most = 0;
    assert_same_bytes(&made, &expected);
    device_weights_free(weights);
    bytes_free(&made);
    bytes_free(&expected);
    device_release(&old);
    device_release(&new);
    state_free(&base);
    state_free(&next);
}

static void test_a_commit_after_no_memory(void **unused) {
    static const struct form few[] = {{"a", "BF16", {3000}, 1, 0}, {"b", "F32", {500}, 1, 0}};
    struct state base = state_make(few, COUNT(few), 0), next = state_copy(&base);
    struct bytes bytes, made = {0};
    const struct ulp_sink sink = bytes_sink(&made);

    (void)unused;
    state_step(&next, 30);
    bytes = patch_between(&base, &next, NULL);
    struct ulp_patch *patch = open_bytes(&bytes);
    struct on_device old = device_copy(&base, 0), new = device_copy(&next, 0);
    struct device_weights *weights = device_weights_of(&old);
    struct device_apply *apply = NULL;

    assert_ok(device_apply_prepare(weights, patch, NULL, &apply));
    emulate_memory_most = 1;
    assert_int_equal(device_diff(weights, new.tensors, new.count, NULL, &sink, NULL), ULP_E_NOMEM);
    emulate_memory_most = 0;
    assert_ok(device_apply_commit(apply, NULL));
    assert_on_device(&old, &next);
    assert_int_equal(*weights->poisoned, 0);
    assert_ok(device_weights_audit(weights));
    device_apply_free(apply);
    device_weights_free(weights);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    bytes_free(&made);
    device_release(&old);
    device_release(&new);
    state_free(&base);
    state_free(&next);
}

TEST_MAIN(test_many_waves, test_a_commit_after_no_memory)
