// SPDX-License-Identifier: Apache-2.0
/* Overflow is seen exactly where 64 bits end. */
#include "tests/test.h"

#include "base/checked.h"

struct sum {
    uint64_t a, b;
    bool overflows;
    uint64_t result;
};

static const struct sum sums[] = {
    {0, 0, false, 0},
    {1, 2, false, 3},
    {UINT64_MAX, 0, false, UINT64_MAX},
    {0, UINT64_MAX, false, UINT64_MAX},
    {UINT64_MAX - 1, 1, false, UINT64_MAX},
    {UINT64_MAX, 1, true, 0},
    {1, UINT64_MAX, true, 0},
    {UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, false, UINT64_MAX},
    {UINT64_C(1) << 63, UINT64_C(1) << 63, true, 0},
    {UINT64_MAX, UINT64_MAX, true, 0},
};

static const struct sum products[] = {
    {0, 0, false, 0},
    {0, UINT64_MAX, false, 0},
    {1, UINT64_MAX, false, UINT64_MAX},
    {UINT32_MAX, UINT32_MAX, false, UINT64_C(0xfffffffe00000001)},
    {UINT64_C(1) << 32, UINT32_MAX, false, UINT64_C(0xffffffff00000000)},
    {UINT64_C(1) << 32, UINT64_C(1) << 32, true, 0},
    {UINT64_C(1) << 63, 2, true, 0},
    {UINT64_C(0x5555555555555555), 3, false, UINT64_MAX},
    {UINT64_C(0x5555555555555556), 3, true, 0},
    {UINT64_MAX, UINT64_MAX, true, 0},
};

static void test_sums_overflow_exactly_above_64_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        uint64_t result = 0;

        assert_int_equal(add_overflows(sums[i].a, sums[i].b, &result), sums[i].overflows);
        if (!sums[i].overflows)
            assert_int_equal(result, sums[i].result);
    }
}

static void test_products_overflow_exactly_above_64_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        uint64_t result = 0;

        assert_int_equal(mul_overflows(products[i].a, products[i].b, &result),
                         products[i].overflows);
        if (!products[i].overflows)
            assert_int_equal(result, products[i].result);
    }
}

/* Division says the same in another way. */
static void test_random_products_agree_with_division(void **state) {
    (void)state;
    test_random_seed(1);
    for (int round = 0; round < 100000; round++) {
        uint64_t a = test_random() >> (test_random() % 64),
                 b = test_random() >> (test_random() % 64);
        uint64_t result = 0;
        bool expected = a && b > UINT64_MAX / a;

        assert_int_equal(mul_overflows(a, b, &result), expected);
        if (!expected)
            assert_int_equal(result, a * b);
        assert_int_equal(add_overflows(a, b, &result), b > UINT64_MAX - a);
    }
}

TEST_MAIN(test_sums_overflow_exactly_above_64_bits, test_products_overflow_exactly_above_64_bits,
          test_random_products_agree_with_division)
