// SPDX-License-Identifier: Apache-2.0
/* The order of bytes is that of the format, at any alignment, whatever the machine's is. */
#include "tests/test.h"

#include "base/endian.h"

static const uint8_t bytes_1_to_8[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88};

static void test_le64_has_its_lowest_byte_first(void **state) {
    uint8_t stored[8];

    (void)state;
    assert_int_equal(load_le64(bytes_1_to_8), UINT64_C(0x8807060504030201));
    store_le64(stored, UINT64_C(0x8807060504030201));
    assert_memory_equal(stored, bytes_1_to_8, 8);
}

static void test_be32_has_its_highest_byte_first(void **state) {
    uint8_t stored[4];

    (void)state;
    assert_int_equal(load_be32(bytes_1_to_8), UINT32_C(0x01020304));
    assert_int_equal(load_be32(bytes_1_to_8 + 4), UINT32_C(0x05060788));
    store_be32(stored, UINT32_C(0x01020304));
    assert_memory_equal(stored, bytes_1_to_8, 4);
}

/* The block has just these bytes, so that reading one more is seen. */
static void test_partial_words_read_just_their_bytes(void **state) {
    static const uint64_t expected[] = {0,
                                        UINT64_C(0x01),
                                        UINT64_C(0x0201),
                                        UINT64_C(0x030201),
                                        UINT64_C(0x04030201),
                                        UINT64_C(0x0504030201),
                                        UINT64_C(0x060504030201),
                                        UINT64_C(0x07060504030201),
                                        UINT64_C(0x8807060504030201)};

    (void)state;
    for (size_t bytes = 0; bytes <= 8; bytes++) {
        uint8_t *block = malloc(bytes ? bytes : 1);

        assert_non_null(block);
        memcpy(block, bytes_1_to_8, bytes);
        assert_int_equal(load_le_partial(block, bytes), expected[bytes]);
        free(block);
    }
}

static void test_extreme_values_survive_at_every_alignment(void **state) {
    static const uint64_t values[] = {0,
                                      1,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x100,
                                      UINT32_MAX,
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};
    uint8_t room[24];

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        for (size_t shift = 1; shift <= 8; shift++) {
            memset(room, 0xaa, sizeof room);
            store_le64(room + shift, values[i]);
            assert_int_equal(load_le64(room + shift), values[i]);
            assert_int_equal(load_le_partial(room + shift, 8), values[i]);
            assert_int_equal(room[shift - 1], 0xaa);
            assert_int_equal(room[shift + 8], 0xaa);
            store_be32(room + shift, (uint32_t)values[i]);
            assert_int_equal(load_be32(room + shift), (uint32_t)values[i]);
        }
    }
}

TEST_MAIN(test_le64_has_its_lowest_byte_first, test_be32_has_its_highest_byte_first,
          test_partial_words_read_just_their_bytes, test_extreme_values_survive_at_every_alignment)
