// SPDX-License-Identifier: Apache-2.0
/* ulp_model_save(): one file or several, and what is saved opens as what it was. */
#include "tests/tensor/sample.h"

#include <sys/stat.h>
#include <unistd.h>

static const struct ulp_text_pair pairs[] = {{"format", "pt"}};

static void assert_saves(const struct ulp_tensor *tensors, unsigned shards) {
    const struct ulp_text_pair *metadata = NULL;
    struct ulp_model *model = NULL;
    char *top = temp_directory_make();
    const char *directory = path_in(top, "made");

    assert_ok(ulp_model_save(directory, tensors, SAMPLE_TENSORS, pairs, 1, shards, NULL));
    assert_ok(ulp_model_open(directory, &model));
    assert_int_equal(ulp_model_files(model), shards);
    assert_int_equal(entries_in(directory), shards == 1 ? 1 : shards + 1);
    assert_model_holds(model, tensors, SAMPLE_TENSORS);
    assert_int_equal(ulp_model_metadata(model, &metadata), 1);
    assert_string_equal(metadata[0].value, "pt");
    ulp_model_free(model);
    temp_directory_remove(top);
}

static void test_every_number_of_shards(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    (void)state;
    sample_make(tensors);
    for (unsigned shards = 1; shards <= 7; shards++)
        assert_saves(tensors, shards);
    assert_saves(tensors, SAMPLE_TENSORS);
}

static void test_names_of_the_files(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    char *directory = temp_directory_make();

    (void)state;
    sample_make(tensors);
    assert_ok(ulp_model_save(directory, tensors, SAMPLE_TENSORS, NULL, 0, 2, NULL));
    assert_int_equal(access(path_in(directory, "model-00001-of-00002.safetensors"), R_OK), 0);
    assert_int_equal(access(path_in(directory, "model-00002-of-00002.safetensors"), R_OK), 0);
    assert_int_equal(access(path_in(directory, "model.safetensors.index.json"), R_OK), 0);
    temp_directory_remove(directory);
}

/* Dtypes of the future, tensors without elements, scalars and packed elements, each alone. */
static void test_awkward_tensors_alone(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    (void)state;
    sample_make(tensors);
    for (size_t i = 0; i < SAMPLE_TENSORS; i++) {
        char *directory = temp_directory_make();

        assert_ok(ulp_model_save(directory, &tensors[i], 1, NULL, 0, 1, NULL));
        assert_holds(directory, &tensors[i], 1);
        temp_directory_remove(directory);
    }
}

static void test_saved_again_it_is_the_same(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    struct ulp_model *model = NULL;
    char *top = temp_directory_make();

    (void)state;
    sample_make(tensors);
    assert_ok(ulp_model_save(path_in(top, "a"), tensors, SAMPLE_TENSORS, NULL, 0, 5, NULL));
    assert_ok(ulp_model_open(path_in(top, "a"), &model));
    assert_ok(ulp_model_save(path_in(top, "b"), ulp_model_tensors(model), ulp_model_count(model),
                             NULL, 0, 3, NULL));
    assert_holds(path_in(top, "b"), tensors, SAMPLE_TENSORS);
    ulp_model_free(model);
    temp_directory_remove(top);
}

static void test_directory_with_a_model_is_refused(void **state) {
    static const char *const names[] = {"x.safetensors", "model.safetensors",
                                        "model.safetensors.index.json"};
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    (void)state;
    sample_make(tensors);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *directory = temp_directory_make();

        assert_int_equal(symlink("nowhere", path_in(directory, names[i])), 0);
        assert_fails(ulp_model_save(directory, tensors, SAMPLE_TENSORS, NULL, 0, 1, NULL),
                     ULP_E_EXISTS, "holds a model already");
        assert_int_equal(entries_in(directory), 1);
        temp_directory_remove(directory);
    }
}

static void test_impossible_requests(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "made");

    (void)state;
    sample_make(tensors);
    assert_fails(ulp_model_save(path, tensors, SAMPLE_TENSORS, NULL, 0, 0, NULL), ULP_E_USAGE,
                 "0 files");
    assert_fails(ulp_model_save(path, tensors, SAMPLE_TENSORS, NULL, 0, 13, NULL), ULP_E_USAGE,
                 "13 files");
    assert_fails(ulp_model_save(path, tensors, SAMPLE_TENSORS, NULL, 0, 4097, NULL), ULP_E_USAGE,
                 "4097 files");
    assert_fails(ulp_model_save(NULL, tensors, SAMPLE_TENSORS, NULL, 0, 1, NULL), ULP_E_USAGE,
                 "NULL");
    assert_fails(ulp_model_save(path, NULL, 1, NULL, 0, 1, NULL), ULP_E_USAGE, "NULL");
    assert_int_equal(entries_in(directory), 0);
    tensors[5].name = tensors[3].name;
    assert_fails(ulp_model_save(directory, tensors, SAMPLE_TENSORS, NULL, 0, 2, NULL),
                 ULP_E_DUPLICATE, "occurs twice");
    assert_int_equal(entries_in(directory), 0);
    temp_directory_remove(directory);
}

struct patience {
    uint64_t reports, allowed, last, total;
};

static int report(void *user, uint64_t done, uint64_t total) {
    struct patience *patience = user;

    assert_true(done >= patience->last && done <= total);
    patience->last = done;
    patience->total = total;
    return patience->reports++ == patience->allowed;
}

/* Stopped at any report, a save leaves nothing, so that the next one can go to the same place. */
static void test_stopped_anywhere(void **state) {
    struct ulp_tensor tensors[SAMPLE_TENSORS];
    char *directory = temp_directory_make();
    enum ulp_status status = ULP_E_CANCELLED;

    (void)state;
    sample_make(tensors);
    for (uint64_t allowed = 0; status; allowed++) {
        struct patience patience = {0, allowed, 0, 0};
        struct ulp_progress progress = {report, &patience};

        status = ulp_model_save(directory, tensors, SAMPLE_TENSORS, NULL, 0, 4, &progress);
        if (status) {
            assert_int_equal(status, ULP_E_CANCELLED);
            assert_int_equal(entries_in(directory), 0);
        } else {
            assert_true(patience.last == patience.total && patience.reports == allowed);
        }
    }
    assert_holds(directory, tensors, SAMPLE_TENSORS);
    temp_directory_remove(directory);
}

/* Somebody else's file appears under the name of a shard that is yet to come. */
struct meddler {
    const char *directory, *name;
    int done;
};

static int meddle(void *user, uint64_t done, uint64_t total) {
    struct meddler *meddler = user;
    FILE *file;

    (void)done;
    (void)total;
    if (!meddler->done++) {
        file = fopen(path_in(meddler->directory, meddler->name), "w");
        fputs("theirs", file);
        fclose(file);
    }
    return 0;
}

/* Nothing of theirs is replaced or removed, and nothing of ours is left. */
static void test_a_failed_save_touches_only_its_own(void **state) {
    static const char *const names[] = {
        "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors", "model.safetensors.index.json"};
    struct ulp_tensor tensors[SAMPLE_TENSORS];

    (void)state;
    sample_make(tensors);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *directory = temp_directory_make(), text[8] = "";
        struct meddler meddler = {directory, names[i], 0};
        struct ulp_progress progress = {meddle, &meddler};
        FILE *file;

        assert_fails(ulp_model_save(directory, tensors, SAMPLE_TENSORS, NULL, 0, 3, &progress),
                     ULP_E_EXISTS, names[i]);
        assert_int_equal(entries_in(directory), 1);
        file = fopen(path_in(directory, names[i]), "r");
        assert_non_null(file);
        assert_int_equal(fread(text, 1, sizeof text, file), 6);
        assert_string_equal(text, "theirs");
        fclose(file);
        temp_directory_remove(directory);
    }
}

TEST_MAIN(test_a_failed_save_touches_only_its_own, test_every_number_of_shards,
          test_names_of_the_files, test_awkward_tensors_alone, test_saved_again_it_is_the_same,
          test_directory_with_a_model_is_refused, test_impossible_requests, test_stopped_anywhere)
