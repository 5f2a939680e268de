// SPDX-License-Identifier: Apache-2.0
/*
 * A large state is compared by rounds, on streams that the handle's own knows nothing of. When a launch is
 * refused, whichever it is, all of them are waited for before the patch is given up: memory that was
 * lent for it is lent to others next. Streams are told apart by the linker's wraps.
 */
#include "tests/gpu/emulated/device.h"

#include "cuda/memory.h"
#include "gpu/device_diff.h"

#include <limits.h>

#define STREAMS 16u

static uint8_t streams[STREAMS]; /* an address each */
static bool busy[STREAMS];
static unsigned made;

/* Stream 0 is the handle's. */
static void set_busy(void *stream, bool now) {
    busy[stream ? (size_t)((uint8_t *)stream - streams) : 0] = now;
}

/* ---- what is wrapped ---- */

enum ulp_status __wrap_cuda_stream_new(int first, void **ret_stream);
void __wrap_cuda_stream_free(void *stream);
enum ulp_status __real_cuda_copy_in(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __wrap_cuda_copy_in(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __real_cuda_copy_out(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __wrap_cuda_copy_out(void *to, const void *from, size_t bytes, void *stream);
enum ulp_status __real_cuda_encoder_plan(struct cuda_encoder *encoder, const struct cuda_plan *plan,
                                         void *stream);
enum ulp_status __wrap_cuda_encoder_plan(struct cuda_encoder *encoder, const struct cuda_plan *plan,
                                         void *stream);
enum ulp_status __real_cuda_wait(void *stream);
enum ulp_status __wrap_cuda_wait(void *stream);

enum ulp_status __wrap_cuda_stream_new(int first, void **ret_stream) {
    (void)first;
    assert_in_range(++made, 1, STREAMS - 1);
    *ret_stream = &streams[made];
    return ULP_OK;
}

void __wrap_cuda_stream_free(void *stream) {
    (void)stream;
}

enum ulp_status __wrap_cuda_copy_in(void *to, const void *from, size_t bytes, void *stream) {
    set_busy(stream, true);
    return __real_cuda_copy_in(to, from, bytes, stream);
}

enum ulp_status __wrap_cuda_copy_out(void *to, const void *from, size_t bytes, void *stream) {
    set_busy(stream, true);
    return __real_cuda_copy_out(to, from, bytes, stream);
}

enum ulp_status __wrap_cuda_encoder_plan(struct cuda_encoder *encoder, const struct cuda_plan *plan,
                                         void *stream) {
    set_busy(stream, true);
    return __real_cuda_encoder_plan(encoder, plan, stream);
}

enum ulp_status __wrap_cuda_wait(void *stream) {
    set_busy(stream, false);
    return __real_cuda_wait(stream);
}

/* ---- refusals ---- */

static enum ulp_status compare(struct device_weights *weights, const struct on_device *new,
                               struct bytes *ret_bytes) {
    const struct ulp_sink sink = bytes_sink(ret_bytes);

    return device_diff(weights, new->tensors, new->count, NULL, &sink, NULL);
}

/* Each launch once, until none is left to be refused; then the patch is the CPU's. */
static void test_refused(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {901}, 1, 0},
                                        {"b", "F32", {700}, 1, 0},
                                        {"c", "BF16", {777}, 1, 0},
                                        {"d", "F64", {200}, 1, 0}};
    struct state old = state_make(forms, COUNT(forms), 0), next = state_copy(&old);
    struct on_device from, to;
    struct device_weights *weights;
    struct bytes expected, got = {0};
    enum ulp_status status = ULP_E_DEVICE;
    unsigned refused = 0;

    (void)unused;
    state_step(&next, 30);
    from = device_copy(&old, 0);
    to = device_copy(&next, 0);
    expected = patch_between(&old, &next, NULL);
    weights = device_weights_of(&from);
    weights->round_bytes = 1;
    while (status) {
        bytes_free(&got);
        got = (struct bytes){0};
        emulate_launches_left = refused++;
        status = compare(weights, &to, &got);
        emulate_launches_left = UINT_MAX;
        for (unsigned i = 1; i <= made; i++)
            assert_true(!status || !busy[i]);
    }
    assert_true(weights->rounds && refused > 20);
    assert_same_bytes(&got, &expected);
    device_weights_free(weights);
    bytes_free(&got);
    bytes_free(&expected);
    device_release(&from);
    device_release(&to);
    state_free(&old);
    state_free(&next);
}

/* ---- graphs ---- */

static void compare_refused(struct device_weights *weights, const struct on_device *new) {
    struct bytes got = {0};

    emulate_launches_left = 0;
    assert_int_equal(compare(weights, new, &got), ULP_E_DEVICE);
    emulate_launches_left = UINT_MAX;
    bytes_free(&got);
}

/* What is run again and again becomes a graph; one that a kernel is missing from is never run. */
static void test_refused_in_a_graph(void **unused) {
    static const struct form forms[] = {{"a", "BF16", {901}, 1, 0}};
    struct state old = state_make(forms, COUNT(forms), 0), next = state_copy(&old);
    struct on_device from = device_copy(&old, 0);
    struct device_weights *weights = device_weights_of(&from);

    (void)unused;
    for (int run = 0; run < 5; run++) {
        struct bytes expected, got = {0};
        struct on_device to;

        state_step(&next, 30);
        to = device_copy(&next, 0);
        expected = patch_between(&old, &next, NULL);
        compare_refused(weights, &to);
        compare_refused(weights, &to); /* as a graph */
        assert_ok(compare(weights, &to, &got));
        assert_same_bytes(&got, &expected);
        bytes_free(&got);
        bytes_free(&expected);
        device_release(&to);
    }
    device_weights_free(weights);
    device_release(&from);
    state_free(&old);
    state_free(&next);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_refused_in_a_graph)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
