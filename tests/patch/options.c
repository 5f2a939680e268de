// SPDX-License-Identifier: Apache-2.0
/* Options that make no sense are refused, and nothing is written. */
#include "tests/patch/state.h"

#include <unistd.h>

static const struct form forms[] = {{"a", "BF16", {16, 32}, 2, 0}, {"b", "F32", {30}, 1, 0}};
static const struct ulp_region region = {"a", 0, 16, 0, 16};

static struct states {
    struct state base, next;
    struct ulp_weights *weights;
    struct bytes bytes;
    struct ulp_patch *patch;
} states;

static void begin(void) {
    states.base = state_make(forms, COUNT(forms), 0);
    states.next = state_copy(&states.base);
    state_step(&states.next, 100);
    states.weights = weights_of(&states.base);
    states.bytes = patch_to(states.weights, &states.next, NULL);
    states.patch = open_bytes(&states.bytes);
}

static void end(void) {
    ulp_patch_free(states.patch);
    bytes_free(&states.bytes);
    ulp_weights_free(states.weights);
    state_free(&states.base);
    state_free(&states.next);
}

static void diff_refused(struct ulp_diff_options options, const char *text) {
    struct bytes made = {0};
    struct ulp_sink sink = bytes_sink(&made);

    assert_fails(
        ulp_diff(states.weights, states.next.tensors, states.next.count, &options, &sink, NULL),
        ULP_E_USAGE, text);
    assert_int_equal(made.used, 0);
    bytes_free(&made);
}

static void squash_refused(struct ulp_diff_options options, const char *text) {
    const struct ulp_patch *patches[] = {states.patch};
    struct bytes made = {0};
    struct ulp_sink sink = bytes_sink(&made);

    assert_fails(ulp_squash(states.weights, patches, 1, &options, &sink, NULL), ULP_E_USAGE, text);
    assert_int_equal(made.used, 0);
    bytes_free(&made);
}

static void test_coders(void **unused) {
    (void)unused;
    begin();
    for (int coder = -3; coder < 9; coder++) {
        if (coder >= ULP_CODER_BEST && coder <= ULP_CODER_DENSE)
            continue;
        diff_refused((struct ulp_diff_options){.coder = (enum ulp_coder)coder}, "no coder");
        squash_refused((struct ulp_diff_options){.coder = (enum ulp_coder)coder}, "no coder");
    }
    end();
}

/* Else a rank without regions would make a patch of everything. */
static void test_regions_and_their_number(void **unused) {
    (void)unused;
    begin();
    diff_refused((struct ulp_diff_options){.region_count = 2}, "regions");
    diff_refused((struct ulp_diff_options){.regions = &region}, "regions");
    squash_refused((struct ulp_diff_options){.region_count = 2}, "regions");
    squash_refused((struct ulp_diff_options){.regions = &region}, "regions");
    end();
}

static void test_squashed_patches_are_whole(void **unused) {
    (void)unused;
    begin();
    squash_refused((struct ulp_diff_options){.regions = &region, .region_count = 1}, "is whole");
    squash_refused((struct ulp_diff_options){.history = 1}, "without history");
    end();
}

static int count_reports(void *user, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    ++*(unsigned *)user;
    return 0;
}

/* A file that is there is refused before the work is done, not after. */
static void test_outputs_that_exist(void **unused) {
    unsigned reports = 0;
    const struct ulp_progress progress = {count_reports, &reports};
    const struct ulp_diff_options options = {.progress = &progress};
    char *top = temp_directory_make();
    const char *path = path_in(top, "p.ulp");
    const struct ulp_patch *patches[1];

    (void)unused;
    begin();
    patches[0] = states.patch;
    assert_int_equal(symlink("nowhere", path), 0);
    assert_fails(ulp_name_is_free(path), ULP_E_EXISTS, "exists already");
    assert_fails(ulp_diff_file(states.weights, states.next.tensors, states.next.count, &options,
                               path, ULP_COMMIT_NEW, NULL),
                 ULP_E_EXISTS, "exists already");
    assert_fails(ulp_squash_file(states.weights, patches, 1, &options, path, ULP_COMMIT_NEW, NULL),
                 ULP_E_EXISTS, "exists already");
    assert_int_equal(reports, 0);
    assert_ok(
        ulp_squash_file(states.weights, patches, 1, &options, path, ULP_COMMIT_REPLACE, NULL));
    assert_int_equal(unlink(path), 0);
    assert_ok(ulp_name_is_free(path));
    assert_ok(ulp_diff_file(states.weights, states.next.tensors, states.next.count, &options, path,
                            ULP_COMMIT_NEW, NULL));
    assert_true(reports > 1);
    end();
    temp_directory_remove(top);
}

TEST_MAIN(test_coders, test_regions_and_their_number, test_squashed_patches_are_whole,
          test_outputs_that_exist)
