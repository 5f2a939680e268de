// SPDX-License-Identifier: Apache-2.0
/* The root of a state: what changes it, what does not, and that both ways of computing it agree. */
#include "digest/root.h"
#include "scan/digest_sum.h"
#include "scan/scan.h"
#include "tests/scan/every_feature_set.h"

#define TENSORS 4
#define ELEMENTS 600u /* of each */

static uint16_t contents[TENSORS][ELEMENTS];
static uint64_t shapes[TENSORS][2];
static struct ulp_tensor tensors[TENSORS];

static void make_state(void) {
    static const char *const names[TENSORS] = {"a", "b", "c.d", "c.e"};

    test_random_seed(3);
    test_random_bytes(contents, sizeof contents);
    for (int i = 0; i < TENSORS; i++) {
        shapes[i][0] = 20;
        shapes[i][1] = ELEMENTS / 20;
        tensors[i] = (struct ulp_tensor){
            .name = names[i], .dtype = "BF16", .shape = shapes[i], .rank = 2, .data = contents[i]};
        assert_ok(ulp_tensor_measure(&tensors[i]));
    }
}

static struct ulp_root root_now(void) {
    struct ulp_root root;

    assert_ok(ulp_state_digest(tensors, TENSORS, NULL, NULL, NULL, &root));
    return root;
}

static void assert_roots_equal(struct ulp_root x, struct ulp_root y) {
    assert_memory_equal(x.bytes, y.bytes, ULP_ROOT_BYTES);
}

static void assert_roots_differ(struct ulp_root x, struct ulp_root y) {
    assert_memory_not_equal(x.bytes, y.bytes, ULP_ROOT_BYTES);
}

static void test_names_dtypes_and_shapes_count(void **state) {
    struct ulp_root before;

    (void)state;
    make_state();
    before = root_now();
    tensors[0].name = "a2"; /* renamed */
    assert_roots_differ(before, root_now());
    make_state();
    tensors[1].dtype = "F16"; /* re-typed */
    assert_roots_differ(before, root_now());
    make_state();
    shapes[2][0] = 30; /* reshaped */
    shapes[2][1] = ELEMENTS / 30;
    assert_roots_differ(before, root_now());
    make_state();
    shapes[2][0] = ELEMENTS;
    tensors[2].rank = 1;
    assert_roots_differ(before, root_now());
    make_state();
    assert_roots_equal(before, root_now());
}

static void test_swapping_any_two_tensors_counts(void **state) {
    struct ulp_root before;

    (void)state;
    make_state();
    before = root_now();
    for (int i = 0; i < TENSORS; i++) {
        for (int k = i + 1; k < TENSORS; k++) {
            void *data = tensors[i].data;

            tensors[i].data = tensors[k].data;
            tensors[k].data = data;
            assert_roots_differ(before, root_now());
            make_state();
        }
    }
}

/* The last row of one tensor becomes the first of the next: all bytes stay, the boundary moves. */
static void test_moving_a_boundary_counts(void **state) {
    static uint16_t line[40];
    uint64_t shape_x[1] = {20}, shape_y[1] = {20};
    struct ulp_tensor two[2] = {
        {.name = "x", .dtype = "BF16", .shape = shape_x, .rank = 1, .data = line},
        {.name = "y", .dtype = "BF16", .shape = shape_y, .rank = 1, .data = line + 20}};
    struct ulp_root before, after;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_ok(ulp_tensor_measure(&two[i]));
    assert_ok(ulp_state_digest(two, 2, NULL, NULL, NULL, &before));
    for (uint64_t first = 16; first <= 24; first++) {
        shape_x[0] = first;
        shape_y[0] = 40 - first;
        two[1].data = line + first;
        for (int i = 0; i < 2; i++) {
            two[i].bytes = 0;
            assert_ok(ulp_tensor_measure(&two[i]));
        }
        assert_ok(ulp_state_digest(two, 2, NULL, NULL, NULL, &after));
        if (first == 20)
            assert_roots_equal(before, after);
        else
            assert_roots_differ(before, after);
    }
}

static void test_every_bit_counts(void **state) {
    struct ulp_root before;
    uint8_t *bytes = (uint8_t *)contents;

    (void)state;
    make_state();
    before = root_now();
    for (size_t bit = 0; bit < sizeof contents * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_roots_differ(before, root_now());
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_roots_equal(before, root_now());
}

static void test_order_does_not_count(void **state) {
    struct ulp_root before;
    struct ulp_sum sums[TENSORS], shuffled[TENSORS];
    struct ulp_tensor first;

    (void)state;
    make_state();
    before = root_now();
    assert_ok(ulp_state_digest(tensors, TENSORS, NULL, NULL, sums, &before));
    first = tensors[0];
    memmove(tensors, tensors + 1, (TENSORS - 1) * sizeof *tensors);
    tensors[TENSORS - 1] = first;
    assert_ok(ulp_state_digest(tensors, TENSORS, NULL, NULL, shuffled, &before));
    assert_memory_equal(&shuffled[TENSORS - 1], &sums[0], sizeof sums[0]); /* in the order given */
    assert_roots_equal(before, root_now());
    tensors[1].name = tensors[2].name;
    assert_fails(ulp_state_digest(tensors, TENSORS, NULL, NULL, NULL, &before), ULP_E_DUPLICATE,
                 "two tensors are called");
}

/* Sums carried along with the changes give the root of the changed state. */
static void test_incremental_equals_from_scratch(void **state) {
    static uint16_t old[TENSORS][ELEMENTS];
    struct ulp_sum sums[TENSORS];
    struct ulp_root root;
    size_t order[TENSORS];

    (void)state;
    make_state();
    assert_ok(ulp_state_digest(tensors, TENSORS, NULL, NULL, sums, &root));
    assert_ok(root_order(tensors, TENSORS, order));
    for (int step = 0; step < 50; step++) {
        memcpy(old, contents, sizeof old);
        for (int change = 0; change < 40; change++)
            contents[test_random() % TENSORS][test_random() % ELEMENTS] ^= (uint16_t)test_random();
        for (int i = 0; i < TENSORS; i++) {
            uint32_t positions[ELEMENTS];
            uint16_t values[ELEMENTS];
            size_t found = scan_kernels(2)->collect(old[i], contents[i], ELEMENTS, positions);

            scan_kernels(2)->gather(contents[i], positions, found, values);
            digest_replace(old[i], sizeof old[i], 0, 2, positions, found, values, &sums[i]);
        }
        assert_ok(root_of_sums(tensors, order, TENSORS, sums, &root));
        assert_roots_equal(root, root_now());
    }
}

/* A state of many sizes, so that tasks cut through tensors and hold several at once. */
#define MANY 300
static struct ulp_tensor many[MANY];
static uint64_t many_shapes[MANY];
static char many_names[MANY][16];

static uint8_t *make_many(void) {
    uint64_t total = 0;
    uint8_t *bytes;

    test_random_seed(4);
    for (int i = 0; i < MANY; i++) {
        many_shapes[i] = i % 50 == 7 ? 9000001 : test_random() % 1000;
        snprintf(many_names[i], sizeof many_names[i], "t%d", i);
        total += many_shapes[i];
    }
    bytes = malloc(total);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < total; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    total = 0;
    for (int i = 0; i < MANY; i++) {
        many[i] = (struct ulp_tensor){.name = many_names[i],
                                      .dtype = "U8",
                                      .shape = &many_shapes[i],
                                      .rank = 1,
                                      .data = bytes + total};
        assert_ok(ulp_tensor_measure(&many[i]));
        total += many_shapes[i];
    }
    return bytes;
}

static void test_threads_do_not_count(void **state) {
    static const unsigned counts[] = {1, 2, 3, 7};
    uint8_t *bytes = make_many();
    struct ulp_root alone, together;
    struct ulp_sum sums[MANY], expected;

    (void)state;
    assert_ok(ulp_state_digest(many, MANY, NULL, NULL, sums, &alone));
    for (int i = 0; i < MANY; i++) { /* cut into tasks or not, a tensor's sum is the same */
        expected = (struct ulp_sum){{0, 0}};
        digest_add(many[i].data, many[i].bytes, 0, &expected);
        assert_memory_equal(&sums[i], &expected, sizeof expected);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct ulp_pool *pool = NULL;

        assert_ok(ulp_pool_new(counts[i], &pool));
        assert_ok(ulp_state_digest(many, MANY, pool, NULL, NULL, &together));
        assert_roots_equal(alone, together);
        ulp_pool_free(pool);
    }
    free(bytes);
}

static struct ulp_root best_root;

static void same_root(void) {
    assert_roots_equal(best_root, root_now());
}

static void test_instruction_sets_do_not_count(void **state) {
    (void)state;
    make_state();
    best_root = root_now();
    with_every_feature_set(same_root);
}

static int stop_at_once(void *user, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    ++*(int *)user;
    return 1;
}

static void test_a_caller_can_stop_it(void **state) {
    uint8_t *bytes = make_many();
    int calls = 0;
    struct ulp_progress progress = {stop_at_once, &calls};
    struct ulp_root root;

    (void)state;
    assert_fails(ulp_state_digest(many, MANY, NULL, &progress, NULL, &root), ULP_E_CANCELLED,
                 "stopped");
    assert_int_equal(calls, 1);
    free(bytes);
}

static void test_an_empty_state_has_a_root(void **state) {
    struct ulp_root nothing, root;
    uint64_t shape[1] = {0};
    struct ulp_tensor empty = {.name = "e", .dtype = "F32", .shape = shape, .rank = 1};

    (void)state;
    assert_ok(ulp_state_digest(NULL, 0, NULL, NULL, NULL, &nothing));
    assert_ok(ulp_tensor_measure(&empty));
    assert_ok(ulp_state_digest(&empty, 1, NULL, NULL, NULL, &root));
    assert_roots_differ(nothing, root);
}

static void test_every_allocation_may_fail(void **state) {
    struct ulp_root root, expected;
    enum ulp_status status = ULP_E_NOMEM;

    (void)state;
    make_state();
    expected = root_now();
    for (uint64_t i = 0; status; i++) {
        failing_allocator_start(i, 0);
        status = ulp_state_digest(tensors, TENSORS, NULL, NULL, NULL, &root);
        assert_true(failing_allocator_stop() >= i);
        assert_true(status == ULP_OK || status == ULP_E_NOMEM);
    }
    assert_roots_equal(root, expected);
}

/* Of a dtype that is not known, zero bytes at the end are contents, not padding. */
static void test_zero_bytes_at_the_end_count(void **state) {
    static uint8_t bytes[8] = {1, 2, 3, 4};
    uint64_t shape[1] = {4};
    struct ulp_tensor narrow = {
        .name = "t", .dtype = "X4", .shape = shape, .rank = 1, .bytes = 4, .data = bytes};
    struct ulp_tensor wide = narrow;
    struct ulp_root x, y;

    (void)state;
    wide.bytes = 8;
    assert_ok(ulp_tensor_measure(&narrow));
    assert_ok(ulp_tensor_measure(&wide));
    assert_ok(ulp_state_digest(&narrow, 1, NULL, NULL, NULL, &x));
    assert_ok(ulp_state_digest(&wide, 1, NULL, NULL, NULL, &y));
    assert_roots_differ(x, y);
}

static enum ulp_status digest_one(struct ulp_tensor tensor) {
    struct ulp_root root;

    return ulp_state_digest(&tensor, 1, NULL, NULL, NULL, &root);
}

/* A tensor that was not measured, or changed since, has no root rather than a wrong one. */
static void test_bad_tensors_are_refused(void **state) {
    struct ulp_tensor good, bad;

    (void)state;
    make_state();
    good = tensors[0];
    assert_ok(digest_one(good));
    bad = good;
    bad.bytes = 0;
    assert_fails(digest_one(bad), ULP_E_SIZE, "need 1200 bytes, but 0 are there");
    bad = good;
    bad.bits = 0;
    assert_fails(digest_one(bad), ULP_E_USAGE, "ulp_tensor_measure");
    bad = good;
    bad.rank = 1;
    assert_fails(digest_one(bad), ULP_E_SIZE, "need 40 bytes");
    bad = good;
    bad.name = "\xff";
    assert_fails(digest_one(bad), ULP_E_UTF8, "not UTF-8");
    bad.name = NULL;
    assert_fails(digest_one(bad), ULP_E_USAGE, "lacks its name");
    bad = good;
    bad.data = NULL;
    assert_fails(digest_one(bad), ULP_E_USAGE, "lacks");
}

/* The public way to follow changes, in two windows of a tensor. */
static void test_a_root_can_be_kept_through_the_api(void **state) {
    struct ulp_sum sums[TENSORS];
    struct ulp_root root, expected;
    uint32_t positions[2] = {3, 5}, beyond = ELEMENTS - 400, disorder[2] = {5, 5};
    uint16_t values[2] = {0x1234, 0xffff};

    (void)state;
    make_state();
    assert_ok(ulp_state_digest(tensors, TENSORS, NULL, NULL, sums, &root));
    assert_ok(ulp_sum_replace(&tensors[1], 0, positions, values, 2, &sums[1]));
    assert_ok(ulp_sum_replace(&tensors[1], 400, positions, values, 2, &sums[1]));
    for (int i = 0; i < 2; i++)
        contents[1][positions[i]] = contents[1][400 + positions[i]] = values[i];
    assert_ok(ulp_state_root(tensors, TENSORS, sums, &root));
    expected = root_now();
    assert_roots_equal(root, expected);
    assert_fails(ulp_sum_replace(&tensors[1], 400, &beyond, values, 1, &sums[1]), ULP_E_USAGE,
                 "outside");
    assert_fails(ulp_sum_replace(&tensors[1], 0, disorder, values, 2, &sums[1]), ULP_E_USAGE,
                 "must ascend");
    assert_fails(ulp_sum_replace(&tensors[1], 4, positions, values, 2, &sums[1]), ULP_E_USAGE,
                 "multiple of 8");
    assert_ok(ulp_state_root(tensors, TENSORS, sums, &root)); /* untouched by what was refused */
    assert_roots_equal(root, expected);
}

TEST_MAIN(test_zero_bytes_at_the_end_count, test_bad_tensors_are_refused,
          test_a_root_can_be_kept_through_the_api, test_names_dtypes_and_shapes_count,
          test_swapping_any_two_tensors_counts, test_moving_a_boundary_counts,
          test_every_bit_counts, test_order_does_not_count, test_incremental_equals_from_scratch,
          test_threads_do_not_count, test_instruction_sets_do_not_count, test_a_caller_can_stop_it,
          test_an_empty_state_has_a_root, test_every_allocation_may_fail)
