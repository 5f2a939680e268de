// SPDX-License-Identifier: Apache-2.0
/* ulp_model_open(): every way in which a model lies on a disk. */
#include "tests/tensor/sample.h"

#include <sys/stat.h>
#include <unistd.h>

static const struct ulp_text_pair pairs[] = {{"format", "pt"}, {"a key", "\xc3\xa9\n\"\\"}};

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Tensors [first, end) of the sample in DIRECTORY/NAME. */
static void write_part(const char *directory, const char *name, size_t first, size_t end) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    sample_make(tensors);
    assert_ok(sample_write(path_in(directory, name), tensors + first, end - first, NULL, 0));
}

static void test_one_file(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    char *directory = temp_directory_make();

    (void)state;
    sample_make(tensors);
    write_part(directory, "any name", 0, SAMPLE_TENSORS);
    assert_holds(path_in(directory, "any name"), tensors, SAMPLE_TENSORS);
    temp_directory_remove(directory);
}

/* model.safetensors wins over loose files, and the index over both. */
static void test_directory_precedence(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    char *directory = temp_directory_make();

    (void)state;
    sample_make(tensors);
    write_part(directory, "a.safetensors", 0, 2);
    write_part(directory, "b.safetensors", 2, 5);
    write_part(directory, ".hidden.safetensors", 5, 6);
    write_part(directory, "c.bin", 6, 7);
    assert_holds(directory, tensors, 5);
    write_part(directory, "model.safetensors", 0, 9);
    assert_holds(directory, tensors, 9);
    write_text(path_in(directory, "model.safetensors.index.json"),
               "{\"weight_map\":{\"model.embed.weight\":\"a.safetensors\","
               "\"a.bias\":\"a.safetensors\"}}");
    assert_holds(directory, tensors, 2);
    temp_directory_remove(directory);
}

static void test_index_path(void **state) {
    static const char text[] = "{\"metadata\":{\"total_size\":\"what ever\"},\"weight_map\":{"
                               "\"scalar\":\"one.safetensors\",\"empty\":\"two.safetensors\"}}";
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    struct ulp_model *model = NULL;
    char *directory = temp_directory_make(), before[4096];

    (void)state;
    sample_make(tensors);
    write_part(directory, "one.safetensors", 2, 3);
    write_part(directory, "two.safetensors", 3, 4);
    write_text(path_in(directory, "other.safetensors.index.json"), text);
    assert_ok(ulp_model_open(path_in(directory, "other.safetensors.index.json"), &model));
    assert_int_equal(ulp_model_files(model), 2);
    assert_model_holds(model, tensors + 2, 2);
    ulp_model_free(model);
    /* also without a directory in front of it */
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(directory), 0);
    assert_holds("other.safetensors.index.json", tensors + 2, 2);
    assert_int_equal(chdir(before), 0);
    temp_directory_remove(directory);
}

/* snapshots/x/model.safetensors -> ../../blobs/HASH, as the cache of Hugging Face has it */
static void test_links_into_a_cache(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    char *directory = temp_directory_make();

    (void)state;
    sample_make(tensors);
    assert_int_equal(mkdir(path_in(directory, "blobs"), 0777), 0);
    assert_int_equal(mkdir(path_in(directory, "snapshots"), 0777), 0);
    assert_int_equal(mkdir(path_in(directory, "snapshots/x"), 0777), 0);
    write_part(directory, "blobs/0123", 0, SAMPLE_TENSORS);
    assert_int_equal(
        symlink("../../blobs/0123", path_in(directory, "snapshots/x/model.safetensors")), 0);
    assert_int_equal(symlink("snapshots/x", path_in(directory, "main")), 0);
    assert_holds(path_in(directory, "snapshots/x/model.safetensors"), tensors, SAMPLE_TENSORS);
    assert_holds(path_in(directory, "snapshots/x"), tensors, SAMPLE_TENSORS);
    assert_holds(path_in(directory, "main/"), tensors, SAMPLE_TENSORS);
    temp_directory_remove(directory);
}

/* An index in the cache whose blob is gone must not open whatever lies beside it. */
static void test_index_link_that_leads_nowhere(void **state) {
    struct ulp_model *model = NULL;
    char *directory = temp_directory_make();

    (void)state;
    write_part(directory, "a.safetensors", 0, 2);
    assert_int_equal(
        symlink("../../blobs/4567", path_in(directory, "model.safetensors.index.json")), 0);
    assert_fails(ulp_model_open(directory, &model), ULP_E_NOT_FOUND, "index.json");
    assert_null(model);
    temp_directory_remove(directory);
}

static void test_find(void **state) {
    struct ulp_model *model = NULL;
    char *directory = temp_directory_make();

    (void)state;
    write_part(directory, "m", 0, SAMPLE_TENSORS);
    assert_ok(ulp_model_open(path_in(directory, "m"), &model));
    for (size_t i = 0; i < ulp_model_count(model); i++) {
        const struct ulp_tensor *tensor = &ulp_model_tensors(model)[i];

        assert_ptr_equal(ulp_model_find(model, tensor->name), tensor);
    }
    assert_null(ulp_model_find(model, ""));
    assert_null(ulp_model_find(model, "scala"));
    assert_null(ulp_model_find(model, "scalar "));
    assert_null(ulp_model_find(model, "zzz"));
    assert_null(ulp_model_find(model, NULL));
    assert_null(ulp_model_find(NULL, "scalar"));
    ulp_model_free(model);
    temp_directory_remove(directory);
}

static void test_metadata(void **state) {
    const struct ulp_text_pair *found = NULL;
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    struct ulp_model *model = NULL;
    char *directory = temp_directory_make();

    (void)state;
    sample_make(tensors);
    write_part(directory, "a.safetensors", 0, 1);
    assert_ok(sample_write(path_in(directory, "b.safetensors"), tensors + 1, 1, pairs, 2));
    assert_ok(ulp_model_open(directory, &model));
    assert_int_equal(ulp_model_metadata(model, &found), 2);
    assert_string_equal(found[0].key, "a key");
    assert_string_equal(found[0].value, pairs[1].value);
    assert_string_equal(found[1].key, "format");
    assert_string_equal(found[1].value, "pt");
    ulp_model_free(model);
    assert_ok(ulp_model_open(path_in(directory, "a.safetensors"), &model));
    assert_int_equal(ulp_model_metadata(model, &found), 0);
    ulp_model_free(model);
    temp_directory_remove(directory);
}

static void test_no_tensors(void **state) {
    char *directory = temp_directory_make();

    (void)state;
    assert_ok(sample_write(path_in(directory, "none"), NULL, 0, NULL, 0));
    assert_holds(path_in(directory, "none"), NULL, 0);
    temp_directory_remove(directory);
}

static void test_missing_arguments(void **state) {
    struct ulp_model *model = NULL;

    (void)state;
    assert_fails(ulp_model_open(NULL, &model), ULP_E_USAGE, "NULL");
    assert_fails(ulp_model_open(".", NULL), ULP_E_USAGE, "NULL");
    assert_int_equal(ulp_model_count(NULL), 0);
    assert_int_equal(ulp_model_bytes(NULL), 0);
    assert_int_equal(ulp_model_files(NULL), 0);
    assert_null(ulp_model_tensors(NULL));
    ulp_model_free(NULL);
}

TEST_MAIN(test_one_file, test_directory_precedence, test_index_path, test_links_into_a_cache,
          test_index_link_that_leads_nowhere, test_find, test_metadata, test_no_tensors,
          test_missing_arguments)
