// SPDX-License-Identifier: Apache-2.0
/* Partial patches whose regions lie across the pieces of the tensor, and bands with many changes in
 * a row. */
#include "tests/patch/state.h"

/* A whole patch made elsewhere names the sum of every piece, so those of the handle must be right,
 * too. */
static void goes_on(struct ulp_weights *weights, struct state *live) {
    struct state next = state_copy(live);
    struct bytes bytes;
    struct ulp_patch *patch;

    state_step(&next, 1);
    bytes = patch_between(live, &next, NULL);
    patch = open_bytes(&bytes);
    assert_ok(ulp_apply(weights, patch, NULL, NULL));
    assert_same_state(live, &next);
    ulp_patch_free(patch);
    bytes_free(&bytes);
    state_free(&next);
}

/* Both parts make the new state, and its root is known from them alone. */
static void join(const struct form *form, const struct ulp_region *first,
                 const struct ulp_region *second, unsigned per_mille) {
    struct state base = state_make(form, 1, 0), next = state_copy(&base);
    struct ulp_weights *weights = weights_of(&base);
    const struct ulp_diff_options options[] = {{.regions = first, .region_count = 1},
                                               {.regions = second, .region_count = 1}};
    struct bytes bytes[2];
    const struct ulp_patch *parts[2];
    struct ulp_patch *opened[2];
    struct ulp_apply *apply = NULL;
    struct ulp_root expected, root;

    state_step(&next, per_mille);
    expected = root_of(&next);
    for (size_t i = 0; i < 2; i++) {
        bytes[i] = patch_to(weights, &next, &options[i]);
        parts[i] = opened[i] = open_bytes(&bytes[i]);
    }
    assert_ok(ulp_parts_root(parts, 2, &root));
    assert_same_root(&root, &expected);
    assert_ok(ulp_apply_prepare_parts(weights, parts, 2, &expected, NULL, &apply));
    assert_ok(ulp_apply_commit(apply, NULL, NULL));
    assert_same_state(&base, &next);
    assert_root_of(weights, &next);
    ulp_apply_free(apply);
    goes_on(weights, &base);
    for (size_t i = 0; i < 2; i++) {
        ulp_patch_free(opened[i]);
        bytes_free(&bytes[i]);
    }
    ulp_weights_free(weights);
    state_free(&base);
    state_free(&next);
}

/* 4098 rows of 4096 bytes are one piece and two rows. The second region begins at another row than
 * its tensor's pieces do, so one of its blocks falls into both. */
static void test_regions_across_pieces(void **unused) {
    static const struct form form = {"t", "F8_E4M3", {4098, 4096}, 2, 0};
    static const struct ulp_region top = {"t", 0, 100, 0, 4096}, rest = {"t", 100, 3998, 0, 4096};

    (void)unused;
    join(&form, &top, &rest, 3);
}

static void test_bands_across_pieces(void **unused) {
    static const struct form form = {"t", "F8_E4M3", {4098, 4096}, 2, 0};
    static const struct ulp_region left = {"t", 0, 4098, 0, 1000},
                                   right = {"t", 0, 4098, 1000, 3096};

    (void)unused;
    join(&form, &left, &right, 3);
}

/* Most elements change, so that the sums of a word's bytes come in several goes. */
static void test_dense_bands(void **unused) {
    static const struct form bytes = {"t", "F8_E4M3", {30, 1000}, 2, 0};
    static const struct form halves = {"t", "BF16", {30, 1000}, 2, 0};
    static const struct ulp_region left = {"t", 0, 30, 0, 504}, right = {"t", 0, 30, 504, 496};

    (void)unused;
    for (unsigned density = 300; density <= 1000; density += 100) {
        join(&bytes, &left, &right, density);
        join(&halves, &left, &right, density);
    }
}

TEST_MAIN(test_regions_across_pieces, test_bands_across_pieces, test_dense_bands)
