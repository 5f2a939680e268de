// SPDX-License-Identifier: Apache-2.0
/* The public header with kernels that are loaded at run time: here those that run on fibers, to which
 * the host's memory is the device's. What cannot be loaded is said. */
#include "tests/test.h"

#define ELEMENTS 20000u

static uint16_t old_weights[ELEMENTS], new_weights[ELEMENTS];
static const uint64_t shape[] = {ELEMENTS};

static struct ulp_tensor tensor_of(uint16_t *data) {
    struct ulp_tensor tensor = {
        .name = "w", .dtype = "BF16", .shape = shape, .rank = 1, .data = data};

    assert_int_equal(ulp_tensor_measure(&tensor), ULP_OK);
    return tensor;
}

struct bytes {
    uint8_t data[65536];
    size_t used;
};

static enum ulp_status append(void *user, const void *data, size_t bytes) {
    struct bytes *to = user;

    assert_true(to->used + bytes <= sizeof to->data);
    memcpy(to->data + to->used, data, bytes);
    to->used += bytes;
    return ULP_OK;
}

/* These come first: a library that was loaded stays. */
static void test_what_cannot_be_loaded(void **unused) {
    const struct ulp_tensor tensor = tensor_of(old_weights);
    struct ulp_cuda_weights *weights = NULL;
    const char *good = getenv("EMULATED_LIBRARY");

    (void)unused;
    setenv("ULPSYNC_CUDA_LIBRARY", "/nowhere/libulpsync_cuda.so", 1);
    assert_int_equal(ulp_cuda_available(), ULP_E_DEVICE);
    assert_non_null(strstr(ulp_last_error(), "/nowhere"));
    assert_int_equal(ulp_cuda_weights_new(&tensor, 1, NULL, NULL, &weights), ULP_E_DEVICE);
    assert_null(weights);
    setenv("ULPSYNC_CUDA_LIBRARY", "libc.so.6", 1);
    assert_int_equal(ulp_cuda_available(), ULP_E_DEVICE);
    assert_non_null(strstr(ulp_last_error(), "another library"));
    assert_non_null(good);
    setenv("ULPSYNC_CUDA_LIBRARY", good, 1);
    assert_int_equal(ulp_cuda_available(), ULP_OK);
}

static void test_a_step(void **unused) {
    const struct ulp_tensor old = tensor_of(old_weights), new = tensor_of(new_weights);
    static struct bytes made, expected;
    const struct ulp_sink to_made = {append, &made}, to_expected = {append, &expected};
    struct ulp_cuda_weights *weights = NULL;
    struct ulp_weights *twin = NULL;
    struct ulp_patch *patch = NULL;
    struct ulp_cuda_apply *apply = NULL;
    struct ulp_root root;
    struct ulp_patch_info info;
    uint32_t poisoned = 0;

    (void)unused;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        old_weights[i] = (uint16_t)(0x3c00 + i * 2654435761u % 512);
        new_weights[i] = (uint16_t)(old_weights[i] + (i % 20 == 0));
    }
    assert_int_equal(ulp_weights_new(&old, 1, NULL, NULL, &twin), ULP_OK);
    assert_int_equal(ulp_diff(twin, &new, 1, NULL, &to_expected, NULL), ULP_OK);
    assert_int_equal(ulp_cuda_weights_new(&old, 1, &poisoned, NULL, &weights), ULP_OK);
    assert_int_equal(ulp_cuda_diff(weights, &new, 1, NULL, &to_made, NULL), ULP_OK);
    assert_int_equal(made.used, expected.used);
    assert_memory_equal(made.data, expected.data, made.used);

    assert_int_equal(ulp_patch_open_memory(made.data, made.used, &patch), ULP_OK);
    ulp_patch_info(patch, &info);
    assert_int_equal(ulp_cuda_apply_prepare(weights, patch, NULL, &apply), ULP_OK);
    assert_int_equal(ulp_cuda_apply_commit(apply, NULL), ULP_OK);
    assert_memory_equal(old_weights, new_weights, sizeof old_weights);
    ulp_cuda_weights_root(weights, &root);
    assert_memory_equal(&root, &info.child, sizeof root);
    assert_int_equal(ulp_cuda_apply_undo(apply), ULP_OK);
    assert_memory_not_equal(old_weights, new_weights, sizeof old_weights);
    ulp_cuda_apply_free(apply);

    assert_int_equal(ulp_cuda_weights_audit(weights), ULP_OK);
    old_weights[7] ^= 1;
    assert_int_equal(ulp_cuda_weights_audit(weights), ULP_E_WRONG_BASE);
    old_weights[7] ^= 1;
    poisoned = 1;
    assert_int_equal(ulp_cuda_apply(weights, patch, NULL, NULL), ULP_E_POISONED);
    poisoned = 0;
    assert_int_equal(ulp_cuda_apply(weights, patch, NULL, NULL), ULP_OK);
    assert_memory_equal(old_weights, new_weights, sizeof old_weights);
    ulp_patch_free(patch);
    ulp_cuda_weights_trim(weights);
    ulp_cuda_weights_free(weights);
    ulp_weights_free(twin);
}

/* The same with a second state: what is in use is never written. */
static void test_two_states(void **unused) {
    static uint16_t sets[2][ELEMENTS], before[ELEMENTS];
    const struct ulp_tensor old = tensor_of(sets[0]), second = tensor_of(sets[1]),
                            new = tensor_of(new_weights);
    static struct bytes made;
    const struct ulp_sink sink = {append, &made};
    struct ulp_cuda_weights *weights = NULL;
    struct ulp_cuda_apply *apply = NULL;
    struct ulp_patch *patch = NULL;
    uint32_t front = 1; /* as who started before left it */

    (void)unused;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        sets[0][i] = before[i] = (uint16_t)(new_weights[i] - (i % 30 == 0));
    assert_int_equal(ulp_cuda_weights_new(&old, 1, NULL, NULL, &weights), ULP_OK);
    assert_int_equal(ulp_cuda_weights_front(weights), 0);
    assert_int_equal(ulp_cuda_weights_double(weights, &old, 1, NULL), ULP_E_OVERLAP);
    assert_int_equal(ulp_cuda_weights_double(weights, &second, 1, &front), ULP_OK);
    assert_int_equal(ulp_cuda_weights_front(weights), 1);
    assert_int_equal(ulp_cuda_diff(weights, &new, 1, NULL, &sink, NULL), ULP_OK);
    assert_int_equal(ulp_patch_open_memory(made.data, made.used, &patch), ULP_OK);
    assert_int_equal(ulp_cuda_apply_prepare(weights, patch, NULL, &apply), ULP_OK);
    assert_memory_equal(sets[1], before, sizeof before);
    assert_int_equal(ulp_cuda_apply_commit(apply, NULL), ULP_OK);
    assert_int_equal(ulp_cuda_weights_front(weights), 0);
    assert_int_equal(front, 0);
    assert_memory_equal(sets[0], before, sizeof before);
    assert_memory_equal(sets[1], new_weights, sizeof before);
    assert_int_equal(ulp_cuda_apply_undo(apply), ULP_OK);
    assert_int_equal(front, 1);
    assert_memory_equal(sets[1], new_weights, sizeof before);
    sets[1][7] ^= 1;
    assert_int_equal(ulp_cuda_weights_audit(weights), ULP_E_WRONG_BASE);
    assert_int_equal(ulp_cuda_apply_commit(apply, NULL), ULP_OK);
    assert_memory_equal(sets[1], new_weights, sizeof before);
    assert_int_equal(ulp_cuda_weights_audit(weights), ULP_OK);
    assert_int_equal(ulp_cuda_cast(weights, &new, 1), ULP_E_USAGE);
    ulp_cuda_apply_free(apply);
    ulp_patch_free(patch);
    ulp_cuda_weights_free(weights);
}

static void test_a_step_from_the_host(void **unused) {
    const struct ulp_tensor old = tensor_of(old_weights), new = tensor_of(new_weights);
    const struct ulp_diff_options options = {.history = 1};
    const struct ulp_apply_options remember = {.remember = 1};
    static struct bytes made, expected;
    const struct ulp_sink to_made = {append, &made}, to_expected = {append, &expected};
    struct ulp_cuda_weights *weights = NULL;
    struct ulp_weights *snapshot = NULL;
    struct ulp_cuda_apply *apply = NULL;
    struct ulp_root root, known;

    (void)unused;
    assert_int_equal(ulp_weights_new(&old, 1, NULL, NULL, &snapshot), ULP_OK);
    assert_int_equal(ulp_cuda_weights_on_host(snapshot, NULL, &weights), ULP_OK);
    for (uint32_t step = 0; step < 3; step++) {
        struct ulp_patch *patch = NULL;

        for (uint32_t i = step; i < ELEMENTS; i += 23)
            new_weights[i]++;
        made.used = expected.used = 0;
        assert_int_equal(ulp_diff(snapshot, &new, 1, &options, &to_expected, NULL), ULP_OK);
        assert_int_equal(ulp_cuda_diff(weights, &new, 1, &options, &to_made, NULL), ULP_OK);
        assert_int_equal(made.used, expected.used);
        assert_memory_equal(made.data, expected.data, made.used);
        assert_int_equal(ulp_patch_open_memory(made.data, made.used, &patch), ULP_OK);
        assert_int_equal(ulp_cuda_apply_prepare(weights, patch, NULL, &apply), ULP_E_USAGE);
        assert_non_null(strstr(ulp_last_error(), "ulp_apply()"));
        assert_int_equal(ulp_apply(snapshot, patch, &remember, NULL), ULP_OK);
        ulp_weights_root(snapshot, &root);
        ulp_cuda_weights_root(weights, &known);
        assert_memory_equal(&root, &known, sizeof root);
        ulp_patch_free(patch);
    }
    assert_int_equal(ulp_cuda_weights_double(weights, &new, 1, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_cast(weights, &new, 1), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_weights_audit(weights), ULP_E_USAGE);
    assert_non_null(strstr(ulp_last_error(), "host"));
    ulp_cuda_weights_trim(weights);
    ulp_cuda_weights_free(weights);
    ulp_weights_free(snapshot);
}

/* Of a tile there is no whole state to compare with. */
static void test_a_tile_on_the_host(void **unused) {
    const struct ulp_tensor old = tensor_of(old_weights);
    const struct ulp_region half = {"w", 0, 1, 0, ELEMENTS / 2};
    const struct ulp_root root = {{0}};
    struct ulp_cuda_weights *weights = NULL;
    struct ulp_weights *tile = NULL;

    (void)unused;
    assert_int_equal(ulp_weights_new_tile(&old, 1, &half, 1, &root, NULL, NULL, &tile), ULP_OK);
    assert_int_equal(ulp_cuda_weights_on_host(tile, NULL, &weights), ULP_E_REGIONS);
    assert_null(weights);
    ulp_weights_free(tile);
}

/* Half of the tensor: made as a partial patch, taken by weights that hold the half alone. */
static void test_a_tile(void **unused) {
    static const struct ulp_region half = {"w", 0, 1, ELEMENTS / 2, ELEMENTS / 2};
    const struct ulp_diff_options options = {.regions = &half, .region_count = 1};
    const struct ulp_tensor old = tensor_of(old_weights), new = tensor_of(new_weights);
    static struct bytes made, expected;
    const struct ulp_sink to_made = {append, &made}, to_expected = {append, &expected};
    const struct ulp_root child = {{7}};
    struct ulp_cuda_weights *whole = NULL, *tile = NULL;
    struct ulp_weights *twin = NULL;
    struct ulp_patch *patch = NULL;
    const struct ulp_patch *part;
    struct ulp_cuda_apply *apply = NULL;
    struct ulp_root root;

    (void)unused;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        new_weights[i] = (uint16_t)(old_weights[i] + (i % 30 == 0));
    assert_int_equal(ulp_weights_new(&old, 1, NULL, NULL, &twin), ULP_OK);
    assert_int_equal(ulp_diff(twin, &new, 1, &options, &to_expected, NULL), ULP_OK);
    assert_int_equal(ulp_cuda_weights_new(&old, 1, NULL, NULL, &whole), ULP_OK);
    assert_int_equal(ulp_cuda_diff(whole, &new, 1, &options, &to_made, NULL), ULP_OK);
    assert_int_equal(made.used, expected.used);
    assert_memory_equal(made.data, expected.data, made.used);
    ulp_cuda_weights_root(whole, &root);
    assert_int_equal(ulp_cuda_weights_new_tile(&old, 1, &half, 1, &root, NULL, NULL, &tile),
                     ULP_OK);
    assert_int_equal(ulp_patch_open_memory(made.data, made.used, &patch), ULP_OK);
    part = patch;
    assert_int_equal(ulp_cuda_apply_prepare(tile, patch, NULL, &apply), ULP_E_REGIONS);
    assert_int_equal(ulp_cuda_apply_prepare_parts(tile, &part, 1, &child, NULL, &apply), ULP_OK);
    assert_int_equal(ulp_cuda_apply_commit(apply, NULL), ULP_OK);
    assert_memory_equal(old_weights + ELEMENTS / 2, new_weights + ELEMENTS / 2,
                        sizeof old_weights / 2);
    assert_memory_not_equal(old_weights, new_weights, sizeof old_weights / 2);
    ulp_cuda_weights_root(tile, &root);
    assert_memory_equal(&root, &child, sizeof root);
    assert_int_equal(ulp_cuda_weights_audit(tile), ULP_OK);
    assert_int_equal(ulp_cuda_cast(tile, &new, 1), ULP_E_REGIONS);
    assert_int_equal(ulp_cuda_weights_double(tile, &new, 1, NULL), ULP_E_REGIONS);
    ulp_cuda_apply_free(apply);
    ulp_patch_free(patch);
    ulp_cuda_weights_free(tile);
    ulp_cuda_weights_free(whole);
    ulp_weights_free(twin);
}

/* Two casts, of which one patch is lost, as the public header has it. */
static void test_casts(void **unused) {
    static float masters[ELEMENTS];
    static struct bytes made, expected;
    static uint16_t base[ELEMENTS];
    const struct ulp_tensor to = tensor_of(old_weights), from = tensor_of(base);
    struct ulp_tensor master = to;
    const struct ulp_sink to_made = {append, &made}, to_expected = {append, &expected};
    struct ulp_cuda_weights *weights = NULL;
    struct ulp_weights *twin = NULL;

    (void)unused;
    master.dtype = "F32";
    master.data = masters;
    master.bytes = 0;
    assert_int_equal(ulp_tensor_measure(&master), ULP_OK);
    memcpy(base, old_weights, sizeof base);
    assert_int_equal(ulp_weights_new(&from, 1, NULL, NULL, &twin), ULP_OK);
    assert_int_equal(ulp_cuda_weights_new(&to, 1, NULL, NULL, &weights), ULP_OK);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        masters[i] = (float)i;
    assert_int_equal(ulp_cuda_cast(weights, &master, 1), ULP_OK);
    assert_int_equal(old_weights[257], 0x4380); /* half-way, to even */
    assert_int_equal(old_weights[259], 0x4382);
    assert_int_equal(ulp_cuda_cast_diff(weights, NULL, &to_made, NULL), ULP_OK);
    for (uint32_t i = 0; i < ELEMENTS; i += 30)
        masters[i] += 100;
    assert_int_equal(ulp_cuda_cast(weights, &master, 1), ULP_OK);
    made.used = 0;
    assert_int_equal(ulp_cuda_cast_diff(weights, NULL, &to_made, NULL), ULP_OK);
    assert_int_equal(ulp_diff(twin, &to, 1, NULL, &to_expected, NULL), ULP_OK);
    assert_int_equal(made.used, expected.used);
    assert_memory_equal(made.data, expected.data, made.used);
    assert_int_equal(ulp_cuda_cast_undo(weights), ULP_OK);
    assert_memory_equal(old_weights, base, sizeof base);
    assert_int_equal(ulp_cuda_cast_commit(weights), ULP_E_USAGE);
    ulp_cuda_weights_free(weights);
    ulp_weights_free(twin);
}

static void test_arguments(void **unused) {
    const struct ulp_patch *hole = NULL;
    struct ulp_cuda_apply *apply = NULL;

    (void)unused;
    assert_int_equal(ulp_cuda_weights_new_tile(NULL, 0, NULL, 0, NULL, NULL, NULL, NULL),
                     ULP_E_USAGE);
    assert_int_equal(ulp_cuda_apply_prepare_parts(NULL, &hole, 1, NULL, NULL, &apply), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_weights_double(NULL, NULL, 0, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_weights_new(NULL, 1, NULL, NULL, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_cast(NULL, NULL, 0), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_cast_diff(NULL, NULL, NULL, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_cast_commit(NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_cast_undo(NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_weights_on_host(NULL, NULL, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_diff(NULL, NULL, 0, NULL, NULL, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_apply(NULL, NULL, NULL, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_apply_commit(NULL, NULL), ULP_E_USAGE);
    assert_int_equal(ulp_cuda_apply_undo(NULL), ULP_E_USAGE);
    ulp_cuda_apply_free(NULL);
    ulp_cuda_weights_free(NULL);
}

/* With nothing of the library but what it exports, and so without our own runner. */
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_cannot_be_loaded),
        cmocka_unit_test(test_a_step),
        cmocka_unit_test(test_two_states),
        cmocka_unit_test(test_a_step_from_the_host),
        cmocka_unit_test(test_a_tile_on_the_host),
        cmocka_unit_test(test_a_tile),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
