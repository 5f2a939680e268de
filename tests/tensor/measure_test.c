// SPDX-License-Identifier: Apache-2.0
/* ulp_tensor_measure(): what follows from dtype, shape and bytes. */
#include "tests/test.h"

#define RANK(shape) ((uint32_t)(sizeof(shape) / sizeof(shape)[0]))

static struct ulp_tensor make(const char *dtype, const uint64_t *shape, uint32_t rank,
                              uint64_t bytes) {
    return (struct ulp_tensor){
        .name = "t", .dtype = dtype, .shape = shape, .rank = rank, .bytes = bytes};
}

static void assert_measures(struct ulp_tensor tensor, uint32_t bits, uint64_t elements,
                            uint64_t bytes) {
    assert_ok(ulp_tensor_measure(&tensor));
    assert_int_equal(tensor.bits, bits);
    assert_int_equal(tensor.elements, elements);
    assert_int_equal(tensor.bytes, bytes);
}

/* A failed call leaves the tensor as it was. */
static void assert_refused(struct ulp_tensor tensor, enum ulp_status status, const char *text) {
    struct ulp_tensor before = tensor;

    assert_fails(ulp_tensor_measure(&tensor), status, text);
    assert_memory_equal(&before, &tensor, sizeof before);
}

static void test_known_dtypes(void **state) {
    static const uint64_t matrix[] = {3, 5}, empty[] = {0, UINT64_MAX, UINT64_MAX}, pair[] = {2};

    (void)state;
    assert_measures(make("BF16", matrix, 2, 0), 16, 15, 30);
    assert_measures(make("BF16", matrix, 2, 30), 16, 15, 30);
    assert_measures(make("F64", NULL, 0, 0), 64, 1, 8);
    assert_measures(make("F32", empty, 3, 0), 32, 0, 0);
    assert_measures(make("F4", pair, 1, 0), 4, 2, 1);
    assert_refused(make("BF16", matrix, 2, 29), ULP_E_SIZE, "need 30 bytes, but 29");
    assert_refused(make("F32", empty, 3, 4), ULP_E_SIZE, "need 0 bytes, but 4");
}

static void test_packed_dtypes_fill_bytes(void **state) {
    static const uint64_t three[] = {3}, four[] = {4};

    (void)state;
    assert_measures(make("F6_E3M2", four, 1, 0), 6, 4, 3);
    assert_refused(make("F6_E3M2", three, 1, 0), ULP_E_SIZE, "whole bytes");
    assert_refused(make("F4", three, 1, 2), ULP_E_SIZE, "whole bytes");
    assert_refused(make("F4", NULL, 0, 1), ULP_E_SIZE, "whole bytes");
}

static void test_unknown_dtypes_follow_their_bytes(void **state) {
    static const uint64_t eight[] = {8}, zero[] = {0}, many[] = {4096}, huge[] = {UINT64_MAX};

    (void)state;
    assert_measures(make("F3_X", eight, 1, 3), 3, 8, 3);
    assert_measures(make("F3_X", eight, 1, 4096), 4096, 8, 4096);
    assert_measures(make("F3_X", many, 1, 512), 1, 4096, 512);
    assert_measures(make("F3_X", zero, 1, 0), 0, 0, 0);
    assert_measures(make("F3_X", NULL, 0, 16), 128, 1, 16);
    assert_refused(make("F3_X", eight, 1, 0), ULP_E_SIZE, "do not divide");
    assert_refused(make("F3_X", zero, 1, 1), ULP_E_SIZE, "do not divide");
    assert_refused(make("F3_X", many, 1, 511), ULP_E_SIZE, "do not divide");
    assert_refused(make("F3_X", huge, 1, UINT64_MAX), ULP_E_SIZE, "do not divide");
    assert_refused(make("F3_X", eight, 1, 4097), ULP_E_LIMIT, "4097 bits");
}

/* 2^k - 1, 2^k and 2^k + 1 around where products leave 64 bits. */
static void test_overflow(void **state) {
    static const uint64_t last[] = {(UINT64_C(1) << 61) - 1}, first[] = {UINT64_C(1) << 61},
                          behind[] = {(UINT64_C(1) << 61) + 1},
                          square[] = {UINT64_C(1) << 32, UINT64_C(1) << 32};

    (void)state;
    assert_measures(make("U8", last, 1, 0), 8, last[0], last[0]);
    assert_refused(make("U8", first, 1, 0), ULP_E_SIZE, "2^64 bits");
    assert_refused(make("U8", behind, 1, 0), ULP_E_SIZE, "2^64 bits");
    assert_refused(make("U8", square, 2, 0), ULP_E_SIZE, "multiplies");
    assert_refused(make("F3_X", square, 2, 8), ULP_E_SIZE, "multiplies");
}

static void test_rank(void **state) {
    uint64_t shape[65];

    (void)state;
    for (size_t i = 0; i < RANK(shape); i++)
        shape[i] = 1;
    assert_measures(make("U8", shape, 64, 0), 8, 1, 1);
    assert_refused(make("U8", shape, 65, 0), ULP_E_LIMIT, "65 dimensions");
}

static void test_names(void **state) {
    static char longest[4098];
    struct ulp_tensor tensor = make("U8", NULL, 0, 0);

    (void)state;
    memset(longest, 'x', 4097);
    tensor.name = longest;
    assert_refused(tensor, ULP_E_LIMIT, "4097 bytes");
    longest[4096] = 0;
    assert_measures(tensor, 8, 1, 1);
    tensor.name = "";
    assert_refused(tensor, ULP_E_NAME, "without a name");
    tensor.name = "__metadata__";
    assert_refused(tensor, ULP_E_NAME, "__metadata__");
    tensor.name = "\xc0\x80";
    assert_refused(tensor, ULP_E_UTF8, "not UTF-8");
    assert_refused(make("F 32", NULL, 0, 4), ULP_E_NAME, "impossible dtype");
    assert_refused(make("", NULL, 0, 4), ULP_E_NAME, "impossible dtype");
}

static void test_missing_arguments(void **state) {
    struct ulp_tensor tensor = make("U8", NULL, 1, 0);

    (void)state;
    assert_fails(ulp_tensor_measure(NULL), ULP_E_USAGE, "NULL");
    assert_refused(tensor, ULP_E_USAGE, "NULL");
    assert_refused(make(NULL, NULL, 0, 0), ULP_E_USAGE, "NULL");
    tensor.name = NULL;
    assert_refused(tensor, ULP_E_USAGE, "NULL");
}

TEST_MAIN(test_known_dtypes, test_packed_dtypes_fill_bytes, test_unknown_dtypes_follow_their_bytes,
          test_overflow, test_rank, test_names, test_missing_arguments)
