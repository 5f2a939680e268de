// SPDX-License-Identifier: Apache-2.0
/* Tensors of more than 2^32 bytes and elements, in a file that is almost all hole. */
#include "tests/test.h"

#include <sys/stat.h>

#define HUGE_BYTES ((UINT64_C(5) << 30) + 3)

static const uint64_t huge_shape[] = {HUGE_BYTES}, small_shape[] = {4};
static const uint8_t last[] = {1, 2, 3, 4};

static struct ulp_tensor make(const char *name, const uint64_t *shape) {
    struct ulp_tensor tensor = {.name = name, .dtype = "F8_E4M3", .shape = shape, .rank = 1};

    assert_ok(ulp_tensor_measure(&tensor));
    return tensor;
}

/* 0 when the file system has no holes or no room for such a file. */
static int write_huge(const char *path) {
    struct ulp_tensor tensors[] = {make("behind", small_shape), make("a.huge", huge_shape)};
    struct ulp_writer *writer = NULL;
    struct stat info;
    enum ulp_status status = ulp_writer_create(path, tensors, 2, NULL, 0, &writer);

    if (status == ULP_E_NO_SPACE || status == ULP_E_IO)
        return 0;
    assert_ok(status);
    assert_ok(ulp_writer_put(writer, 1, HUGE_BYTES - sizeof last, last, sizeof last));
    assert_ok(ulp_writer_put(writer, 0, 0, last, sizeof last));
    assert_fails(ulp_writer_put(writer, 1, HUGE_BYTES, last, 1), ULP_E_USAGE, "do not fit");
    assert_ok(ulp_writer_commit(writer, ULP_COMMIT_REPLACE));
    ulp_writer_free(writer);
    assert_int_equal(stat(path, &info), 0);
    return info.st_blocks < (1 << 20);
}

static void test_more_than_four_gibibytes(void **state) {
    struct ulp_model *model = NULL;
    const struct ulp_tensor *tensor;
    char *directory = temp_directory_make();

    (void)state;
    if (!write_huge(path_in(directory, "m"))) {
        temp_directory_remove(directory);
        skip();
    }
    assert_ok(ulp_model_open(path_in(directory, "m"), &model));
    tensor = ulp_model_find(model, "a.huge");
    assert_non_null(tensor);
    assert_true(tensor->bytes == HUGE_BYTES && tensor->elements == HUGE_BYTES);
    assert_memory_equal((const uint8_t *)tensor->data + HUGE_BYTES - sizeof last, last,
                        sizeof last);
    assert_int_equal(*(const uint8_t *)tensor->data, 0);
    assert_int_equal(((const uint8_t *)tensor->data)[UINT64_C(1) << 32], 0);
    assert_memory_equal(ulp_model_find(model, "behind")->data, last, sizeof last);
    assert_true(ulp_model_bytes(model) == HUGE_BYTES + 4);
    ulp_model_free(model);
    temp_directory_remove(directory);
}

TEST_MAIN(test_more_than_four_gibibytes)
