// SPDX-License-Identifier: Apache-2.0
#include "tests/tensor/sample.h"

#include <dirent.h>

#define DATA_BYTES 4096

static const struct {
    const char *name, *dtype;
    uint64_t shape[4];
    uint32_t rank;
    uint64_t bytes; /* of an unknown dtype */
} kinds[SAMPLE_TENSORS] = {
    {"model.embed.weight", "BF16", {16, 8}, 2, 0},
    {"a.bias", "F32", {9}, 1, 0},
    {"scalar", "F64", {0}, 0, 0},
    {"empty", "I64", {0, 3}, 2, 0},
    {"packed", "F4", {3, 2}, 2, 0},
    {"six", "F6_E2M3", {4}, 1, 0},
    {"flags", "BOOL", {5}, 1, 0},
    {"future", "F3_X", {8}, 1, 3},
    {"future.empty", "X9", {7, 0}, 2, 0},
    {"wide", "C64", {3}, 1, 0},
    {"\xc3\xa9\"\\\n", "F16", {7}, 1, 0},
    {"int", "I32", {1, 1, 1, 2}, 4, 0},
};

void sample_make(struct ulp_tensor tensors[SAMPLE_TENSORS]) {
    static uint8_t data[DATA_BYTES];
    size_t at = 0;

    test_random_seed(7);
    test_random_bytes(data, sizeof data);
    for (size_t i = 0; i < SAMPLE_TENSORS; i++) {
        tensors[i] = (struct ulp_tensor){.name = kinds[i].name,
                                         .dtype = kinds[i].dtype,
                                         .shape = kinds[i].shape,
                                         .rank = kinds[i].rank,
                                         .bytes = kinds[i].bytes,
                                         .data = data + at};
        assert_ok(ulp_tensor_measure(&tensors[i]));
        at += tensors[i].bytes;
        assert_true(at <= sizeof data);
    }
}

static void assert_same(const struct ulp_tensor *a, const struct ulp_tensor *b) {
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    for (uint32_t i = 0; i < a->rank; i++)
        assert_int_equal(a->shape[i], b->shape[i]);
    assert_int_equal(a->bits, b->bits);
    assert_int_equal(a->elements, b->elements);
    assert_int_equal(a->bytes, b->bytes);
    if (a->bytes)
        assert_memory_equal(a->data, b->data, a->bytes);
}

void assert_model_holds(const struct ulp_model *model, const struct ulp_tensor *tensors,
                        size_t count) {
    uint64_t bytes = 0;

    assert_int_equal(ulp_model_count(model), count);
    for (size_t i = 0; i < count; i++) {
        const struct ulp_tensor *found = ulp_model_find(model, tensors[i].name);

        assert_non_null(found);
        assert_same(&tensors[i], found);
        bytes += tensors[i].bytes;
    }
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(ulp_model_tensors(model)[i - 1].name, ulp_model_tensors(model)[i].name) <
                    0);
    assert_int_equal(ulp_model_bytes(model), bytes);
}

void assert_holds(const char *path, const struct ulp_tensor *tensors, size_t count) {
    struct ulp_model *model = NULL;

    assert_ok(ulp_model_open(path, &model));
    assert_model_holds(model, tensors, count);
    ulp_model_free(model);
}

enum ulp_status sample_write(const char *path, const struct ulp_tensor *tensors, size_t count,
                             const struct ulp_text_pair *metadata, size_t metadata_count) {
    struct ulp_writer *writer = NULL;
    enum ulp_status status =
        ulp_writer_create(path, tensors, count, metadata, metadata_count, &writer);

    for (size_t i = 0; !status && i < count; i++)
        status = ulp_writer_put(writer, i, 0, tensors[i].data, tensors[i].bytes);
    if (!status)
        status = ulp_writer_commit(writer, ULP_COMMIT_REPLACE);
    ulp_writer_free(writer);
    return status;
}

unsigned entries_in(const char *directory) {
    unsigned count = 0;
    struct dirent *entry;
    DIR *open_directory = opendir(directory);

    assert_non_null(open_directory);
    while ((entry = readdir(open_directory)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open_directory);
    return count;
}
