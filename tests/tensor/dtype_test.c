// SPDX-License-Identifier: Apache-2.0
/* Dtypes are widths. */
#include "tests/test.h"

#include "base/word.h"
#include "tensor/dtype.h"

/* The dtypes of the format and the bits of one element. */
static const struct {
    const char *name;
    uint32_t bits;
} table[] = {
    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},        {"U8", 8},
    {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},        {"BF16", 16},
    {"I32", 32},    {"U32", 32},    {"F32", 32},    {"I64", 64},        {"U64", 64},
    {"F64", 64},    {"C64", 64},
};

static void test_known_dtypes_have_their_width(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_int_equal(ulp_dtype_bits(table[i].name), table[i].bits);
}

static void test_other_names_have_none(void **state) {
    static const char *const names[] = {"",     "bf16", "BF16 ", " BF16", "BF1",  "BF166", "F3_X",
                                        "C128", "F8",   "float", "F32\n", "F-32", "I4"};

    (void)state;
    assert_int_equal(ulp_dtype_bits(NULL), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(ulp_dtype_bits(names[i]), 0);
}

static void test_names_of_future_dtypes(void **state) {
    (void)state;
    assert_true(dtype_name_allowed("F3_X"));
    assert_true(dtype_name_allowed("q"));
    assert_true(dtype_name_allowed("12345678901234567890123456789012"));
    assert_false(dtype_name_allowed("123456789012345678901234567890123"));
    assert_false(dtype_name_allowed(""));
    assert_false(dtype_name_allowed("F 3"));
    assert_false(dtype_name_allowed("F-3"));
    assert_false(dtype_name_allowed("F3\""));
    assert_false(dtype_name_allowed("\xc3\xa9"));
}

static void test_words_divide_elements(void **state) {
    (void)state;
    assert_int_equal(word_bytes_of(4), 1);
    assert_int_equal(word_bytes_of(6), 1);
    assert_int_equal(word_bytes_of(8), 1);
    assert_int_equal(word_bytes_of(16), 2);
    assert_int_equal(word_bytes_of(24), 1);
    assert_int_equal(word_bytes_of(32), 4);
    assert_int_equal(word_bytes_of(48), 2);
    assert_int_equal(word_bytes_of(64), 8);
    assert_int_equal(word_bytes_of(96), 4);
    assert_int_equal(word_bytes_of(128), 8);
}

TEST_MAIN(test_known_dtypes_have_their_width, test_other_names_have_none,
          test_names_of_future_dtypes, test_words_divide_elements)
