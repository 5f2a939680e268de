// SPDX-License-Identifier: Apache-2.0
/* ulp_writer: canonical bytes, and a name that only ever shows a complete file. */
#include "tests/tensor/sample.h"

#include "base/buffer.h"
#include "base/endian.h"
#include "base/file.h"
#include "base/word.h"
#include "tensor/dtype.h"

#include <unistd.h>

static const struct ulp_text_pair pairs[] = {{"b", "1"}, {"a", "2"}, {"c", ""}};

static struct buffer contents(const char *path) {
    struct buffer bytes = BUFFER(1u << 20);

    assert_ok(file_read(path, FILE_REFUSE_LINKS, &bytes));
    return bytes;
}

static void shuffle(struct ulp_tensor *tensors, struct ulp_text_pair *metadata) {
    for (size_t i = SAMPLE_TENSORS - 1; i > 0; i--) {
        size_t other = test_random() % (i + 1);
        struct ulp_tensor kept = tensors[i];

        tensors[i] = tensors[other];
        tensors[other] = kept;
    }
    for (size_t i = 2; i > 0; i--) {
        size_t other = test_random() % (i + 1);
        struct ulp_text_pair kept = metadata[i];

        metadata[i] = metadata[other];
        metadata[other] = kept;
    }
}

static void test_any_order_gives_the_same_bytes(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    struct ulp_text_pair metadata[] = {pairs[0], pairs[1], pairs[2]};
    char *directory = temp_directory_make();
    struct buffer first;

    (void)state;
    sample_make(tensors);
    assert_ok(sample_write(path_in(directory, "first"), tensors, SAMPLE_TENSORS, metadata, 3));
    first = contents(path_in(directory, "first"));
    for (int round = 0; round < 50; round++) {
        struct buffer again;

        shuffle(tensors, metadata);
        assert_ok(sample_write(path_in(directory, "again"), tensors, SAMPLE_TENSORS, metadata, 3));
        again = contents(path_in(directory, "again"));
        assert_int_equal(first.used, again.used);
        assert_memory_equal(first.data, again.data, first.used);
        buffer_release(&again);
    }
    buffer_release(&first);
    temp_directory_remove(directory);
}

/* Wide elements come first, so that each tensor is aligned to its element; data starts at a
 * multiple of 8. The mapping itself is aligned to a page. */
static void test_wide_elements_first(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    struct ulp_model *model = NULL;
    char *directory = temp_directory_make();
    struct buffer bytes;

    (void)state;
    sample_make(tensors);
    assert_ok(sample_write(path_in(directory, "m"), tensors, SAMPLE_TENSORS, NULL, 0));
    bytes = contents(path_in(directory, "m"));
    assert_int_equal(load_le64(bytes.data) % 8, 0);
    buffer_release(&bytes);
    assert_ok(ulp_model_open(path_in(directory, "m"), &model));
    for (size_t i = 0; i < SAMPLE_TENSORS; i++) {
        const struct ulp_tensor *a = &ulp_model_tensors(model)[i];
        unsigned word = word_bytes_of(a->bits);

        assert_int_equal((uintptr_t)a->data % word, 0);
        for (size_t k = 0; a->bytes && k < SAMPLE_TENSORS; k++) {
            const struct ulp_tensor *b = &ulp_model_tensors(model)[k];

            if (b->bytes && word_bytes_of(b->bits) < word)
                assert_true((uintptr_t)a->data < (uintptr_t)b->data);
        }
    }
    ulp_model_free(model);
    temp_directory_remove(directory);
}

static void test_put_stays_inside_its_tensor(void **state) {
    static const uint8_t data[16];
    static const uint64_t shape[] = {8};
    struct ulp_tensor tensors[] = {{.name = "a", .dtype = "U8", .shape = shape, .rank = 1},
                                   {.name = "b", .dtype = "U8", .shape = shape, .rank = 1}};
    struct ulp_writer *writer = NULL;
    char *directory = temp_directory_make();

    (void)state;
    assert_ok(ulp_tensor_measure(&tensors[0]));
    assert_ok(ulp_tensor_measure(&tensors[1]));
    assert_ok(ulp_writer_create(path_in(directory, "m"), tensors, 2, NULL, 0, &writer));
    assert_ok(ulp_writer_put(writer, 0, 0, data, 8));
    assert_ok(ulp_writer_put(writer, 0, 8, data, 0));
    assert_ok(ulp_writer_put(writer, 1, 7, data, 1));
    assert_fails(ulp_writer_put(writer, 0, 0, data, 9), ULP_E_USAGE, "9 bytes at 0");
    assert_fails(ulp_writer_put(writer, 0, 8, data, 1), ULP_E_USAGE, "1 bytes at 8");
    assert_fails(ulp_writer_put(writer, 0, 9, data, 0), ULP_E_USAGE, "0 bytes at 9");
    assert_fails(ulp_writer_put(writer, 1, 1, data, UINT64_MAX), ULP_E_USAGE, "do not fit");
    assert_fails(ulp_writer_put(writer, 1, UINT64_MAX, data, 1), ULP_E_USAGE, "do not fit");
    assert_fails(ulp_writer_put(writer, 2, 0, data, 1), ULP_E_USAGE, "tensor 2 of");
    assert_fails(ulp_writer_put(writer, 0, 0, NULL, 1), ULP_E_USAGE, "NULL");
    assert_fails(ulp_writer_put(NULL, 0, 0, data, 1), ULP_E_USAGE, "NULL");
    assert_ok(ulp_writer_commit(writer, ULP_COMMIT_REPLACE));
    assert_fails(ulp_writer_put(writer, 0, 0, data, 8), ULP_E_USAGE, "committed");
    assert_fails(ulp_writer_commit(writer, ULP_COMMIT_REPLACE), ULP_E_USAGE, "committed");
    ulp_writer_free(writer);
    temp_directory_remove(directory);
}

static void test_bytes_never_written_are_zero(void **state) {
    static const uint8_t one = 1;
    static const uint64_t shape[] = {100000};
    struct ulp_tensor tensor = {.name = "a", .dtype = "U8", .shape = shape, .rank = 1};
    const uint8_t *data;
    struct ulp_writer *writer = NULL;
    struct ulp_model *model = NULL;
    char *directory = temp_directory_make();

    (void)state;
    assert_ok(ulp_tensor_measure(&tensor));
    assert_ok(ulp_writer_create(path_in(directory, "m"), &tensor, 1, NULL, 0, &writer));
    assert_ok(ulp_writer_put(writer, 0, 50000, &one, 1));
    assert_ok(ulp_writer_commit(writer, ULP_COMMIT_REPLACE));
    ulp_writer_free(writer);
    assert_ok(ulp_model_open(path_in(directory, "m"), &model));
    data = ulp_model_tensors(model)[0].data;
    for (size_t i = 0; i < shape[0]; i++)
        assert_int_equal(data[i], i == 50000);
    ulp_model_free(model);
    temp_directory_remove(directory);
}

static void test_nothing_shows_before_the_commit(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    struct ulp_writer *writer = NULL;
    struct ulp_model *model = NULL;
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "model.safetensors");

    (void)state;
    sample_make(tensors);
    assert_ok(ulp_writer_create(path, tensors, SAMPLE_TENSORS, NULL, 0, &writer));
    for (size_t i = 0; i < SAMPLE_TENSORS; i++)
        assert_ok(ulp_writer_put(writer, i, 0, tensors[i].data, tensors[i].bytes));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_fails(ulp_model_open(directory, &model), ULP_E_NO_MODEL, "no safetensors file");
    ulp_writer_free(writer);
    assert_int_equal(entries_in(directory), 0);
    temp_directory_remove(directory);
}

static void test_commit_replaces(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    struct ulp_writer *writer = NULL;
    struct ulp_model *old = NULL;
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "m");

    (void)state;
    sample_make(tensors);
    assert_ok(sample_write(path, tensors, 3, NULL, 0));
    assert_ok(ulp_model_open(path, &old));
    assert_ok(ulp_writer_create(path, tensors + 3, 4, NULL, 0, &writer));
    for (size_t i = 0; i < 4; i++)
        assert_ok(ulp_writer_put(writer, i, 0, tensors[3 + i].data, tensors[3 + i].bytes));
    assert_holds(path, tensors, 3);
    assert_ok(ulp_writer_commit(writer, ULP_COMMIT_REPLACE));
    assert_holds(path, tensors + 3, 4);
    assert_model_holds(old, tensors, 3); /* whoever had the old file keeps it */
    ulp_model_free(old);
    ulp_writer_free(writer);
    assert_int_equal(entries_in(directory), 1);
    temp_directory_remove(directory);
}

static enum ulp_status create(const char *path, struct ulp_tensor a, struct ulp_tensor b,
                              const struct ulp_text_pair *metadata, size_t metadata_count) {
    struct ulp_tensor tensors[] = {a, b};
    struct ulp_writer *writer = NULL;
    enum ulp_status status = ulp_writer_create(path, tensors, 2, metadata, metadata_count, &writer);

    assert_true(status ? !writer : !!writer);
    ulp_writer_free(writer);
    return status;
}

static void test_create_refuses(void **state) {
    static const struct ulp_text_pair twice[] = {{"k", "1"}, {"k", "2"}}, bad[] = {{"k", "\xff"}};
    struct ulp_tensor a = {.name = "a", .dtype = "U8", .bits = 8, .elements = 1, .bytes = 1}, b = a,
                      wrong = a;
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "m");

    (void)state;
    b.name = "b";
    wrong.name = "b";
    wrong.bytes = 2;
    assert_ok(create(path, a, b, NULL, 0));
    assert_fails(create(path, a, a, NULL, 0), ULP_E_DUPLICATE, "'a' occurs twice");
    assert_fails(create(path, a, wrong, NULL, 0), ULP_E_SIZE, "need 1 bytes");
    assert_fails(create(path, a, b, twice, 2), ULP_E_DUPLICATE, "'k' occurs twice");
    assert_fails(create(path, a, b, bad, 1), ULP_E_UTF8, "not UTF-8");
    b.name = "__metadata__";
    assert_fails(create(path, a, b, NULL, 0), ULP_E_NAME, "__metadata__");
    b.name = "\xff";
    assert_fails(create(path, a, b, NULL, 0), ULP_E_UTF8, "not UTF-8");
    b.name = "b";
    b.dtype = "F\"3";
    assert_fails(create(path, a, b, NULL, 0), ULP_E_NAME, "impossible dtype");
    b.dtype = "U8";
    assert_fails(create(path_in(directory, "gone/m"), a, b, NULL, 0), ULP_E_NOT_FOUND, "gone");
    assert_fails(create(path_in(directory, ""), a, b, NULL, 0), ULP_E_USAGE, "a directory");
    assert_int_equal(entries_in(directory), 0);
    temp_directory_remove(directory);
}

/* What the reader would refuse must not be written in the first place. */
static void test_metadata_limits(void **state) {
    static char key[4098];
    struct ulp_text_pair pair = {key, "v"};
    struct ulp_tensor a = {.name = "a", .dtype = "U8", .bits = 8, .elements = 1, .bytes = 1}, b = a;
    char *directory = temp_directory_make();

    (void)state;
    b.name = "b";
    memset(key, 'k', 4097);
    assert_fails(create(path_in(directory, "m"), a, b, &pair, 1), ULP_E_LIMIT, "4096");
    key[4096] = 0;
    assert_ok(create(path_in(directory, "m"), a, b, &pair, 1));
    temp_directory_remove(directory);
}

TEST_MAIN(test_any_order_gives_the_same_bytes, test_wide_elements_first,
          test_put_stays_inside_its_tensor, test_bytes_never_written_are_zero,
          test_nothing_shows_before_the_commit, test_commit_replaces, test_create_refuses,
          test_metadata_limits)
