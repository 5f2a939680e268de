// SPDX-License-Identifier: Apache-2.0
/*
 * Every allocation of every call fails in turn, once and from there on: the call says so, leaks
 * nothing, leaves no file, and works when memory is back.
 */
#include "tests/tensor/sample.h"

static const struct ulp_text_pair pairs[] = {{"format", "pt"}, {"k", "v"}};

/* One call under test; `path` is where it works. */
typedef enum ulp_status (*attempt)(const char *path);

static enum ulp_status open_it(const char *path) {
    struct ulp_model *model = NULL;
    enum ulp_status status = ulp_model_open(path, &model);

    assert_true(status ? !model : !!model);
    ulp_model_free(model);
    return status;
}

static enum ulp_status write_it(const char *path) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    sample_make(tensors);
    return sample_write(path, tensors, SAMPLE_TENSORS, pairs, 2);
}

static enum ulp_status save_it(const char *path) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    sample_make(tensors);
    return ulp_model_save(path, tensors, SAMPLE_TENSORS, pairs, 2, 3, NULL);
}

/* Fails allocation 0, 1, ... until the call succeeds; `directory` must stay as it is until then. */
static void fail_in_turn(attempt call, const char *path, const char *directory, int persistent) {
    unsigned before = entries_in(directory);
    enum ulp_status status = ULP_E_NOMEM;
    uint64_t fail_at;

    for (fail_at = 0; status; fail_at++) {
        failing_allocator_start(fail_at, persistent);
        status = call(path);
        failing_allocator_stop();
        if (status) {
            assert_int_equal(status, ULP_E_NOMEM);
            assert_non_null(strstr(ulp_last_error(), "out of memory"));
            assert_int_equal(entries_in(directory), before);
        }
        assert_true(fail_at < 100000);
    }
    assert_true(fail_at > 3); /* or nothing was tested */
}

static void test_open_file(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "m");

    (void)state;
    assert_ok(write_it(path));
    fail_in_turn(open_it, path, directory, 0);
    fail_in_turn(open_it, path, directory, 1);
    temp_directory_remove(directory);
}

static void test_open_directory(void **state) {
    char *directory = temp_directory_make();

    (void)state;
    assert_ok(save_it(directory));
    fail_in_turn(open_it, directory, directory, 0);
    fail_in_turn(open_it, directory, directory, 1);
    assert_int_equal(remove(path_in(directory, "model.safetensors.index.json")), 0);
    fail_in_turn(open_it, directory, directory, 0);
    fail_in_turn(open_it, directory, directory, 1);
    temp_directory_remove(directory);
}

static void test_write(void **state) {
    (void)state;
    for (int persistent = 0; persistent < 2; persistent++) {
        char *directory = temp_directory_make();

        fail_in_turn(write_it, path_in(directory, "m"), directory, persistent);
        assert_int_equal(entries_in(directory), 1);
        temp_directory_remove(directory);
    }
}

static void test_save(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    (void)state;
    sample_make(tensors);
    for (int persistent = 0; persistent < 2; persistent++) {
        char *directory = temp_directory_make();

        fail_in_turn(save_it, directory, directory, persistent);
        assert_holds(directory, tensors, SAMPLE_TENSORS);
        temp_directory_remove(directory);
    }
}

TEST_MAIN(test_open_file, test_open_directory, test_write, test_save)
