// SPDX-License-Identifier: Apache-2.0
/* A buffer holds its maximum and not one byte more; what it refuses leaves no trace. */
#include "tests/test.h"

#include "base/buffer.h"

static void test_the_maximum_is_exact(void **state) {
    static const size_t maxima[] = {0, 1, 62, 63, 64, 65, 127, 128, 1000, 65536};

    (void)state;
    for (size_t i = 0; i < sizeof maxima / sizeof maxima[0]; i++) {
        struct buffer buffer = BUFFER(maxima[i]);

        assert_ok(buffer_append_fill(&buffer, 'x', maxima[i]));
        assert_int_equal(buffer.used, maxima[i]);
        assert_int_equal(strlen(buffer_text(&buffer)), maxima[i]);
        assert_fails(buffer_append(&buffer, "y", 1), ULP_E_LIMIT, "bytes where that is the limit");
        assert_fails(buffer_append_fill(&buffer, 'y', 1), ULP_E_LIMIT, "more than ");
        assert_fails(buffer_append_format(&buffer, "%d", 7), ULP_E_LIMIT, "more than ");
        assert_int_equal(buffer.used, maxima[i]);
        assert_int_equal(strspn(buffer_text(&buffer), "x"), maxima[i]);
        assert_ok(buffer_append(&buffer, "", 0));
        buffer_release(&buffer);
    }
}

static void test_one_more_than_the_maximum_changes_nothing(void **state) {
    struct buffer buffer = BUFFER(10);

    (void)state;
    assert_fails(buffer_append_text(&buffer, "12345678901"), ULP_E_LIMIT, "more than 10 bytes");
    assert_string_equal(buffer_text(&buffer), "");
    assert_ok(buffer_append_text(&buffer, "1234"));
    assert_fails(buffer_append_text(&buffer, "5678901"), ULP_E_LIMIT, "more than 10 bytes");
    assert_fails(buffer_append(&buffer, "", SIZE_MAX), ULP_E_LIMIT, "more than 10 bytes");
    assert_string_equal(buffer_text(&buffer), "1234");
    assert_ok(buffer_append_text(&buffer, "567890"));
    assert_string_equal(buffer_text(&buffer), "1234567890");
    buffer_release(&buffer);
}

static void test_a_nul_always_stands_behind_the_contents(void **state) {
    struct buffer buffer = BUFFER(1000);

    (void)state;
    for (size_t used = 0; used < 1000; used++) {
        assert_int_equal(buffer.used, used);
        assert_int_equal(strlen(buffer_text(&buffer)), used);
        assert_ok(buffer_append(&buffer, "z", 1));
        assert_int_equal(buffer.data[buffer.used], 0);
    }
    buffer_clear(&buffer);
    assert_string_equal(buffer_text(&buffer), "");
    assert_int_equal(buffer.used, 0);
    buffer_release(&buffer);
}

static void test_pieces_follow_each_other(void **state) {
    struct buffer buffer = BUFFER(100);

    (void)state;
    assert_ok(buffer_append_text(&buffer, "a"));
    assert_ok(buffer_append(&buffer, "b\0c", 3));
    assert_ok(buffer_append_format(&buffer, "-%s-%03d", "d", 5));
    assert_ok(buffer_append_fill(&buffer, 0xff, 2));
    assert_ok(buffer_append_fill(&buffer, 'q', 0));
    assert_int_equal(buffer.used, 12);
    assert_memory_equal(buffer.data, "ab\0c-d-005\xff\xff", 13);
    buffer_release(&buffer);
}

static void test_an_untouched_buffer_is_empty_text(void **state) {
    struct buffer buffer = BUFFER(5);

    (void)state;
    assert_string_equal(buffer_text(&buffer), "");
    buffer_clear(&buffer);
    assert_string_equal(buffer_text(&buffer), "");
    buffer_release(&buffer);
}

static void test_release_keeps_the_maximum_for_reuse(void **state) {
    struct buffer buffer = BUFFER(8);

    (void)state;
    failing_allocator_start(UINT64_MAX, 0);
    for (int round = 0; round < 3; round++) {
        assert_ok(buffer_append_text(&buffer, "12345678"));
        assert_fails(buffer_append_text(&buffer, "9"), ULP_E_LIMIT, "more than 8 bytes");
        buffer_release(&buffer);
        buffer_release(&buffer);
        assert_null(buffer.data);
        assert_int_equal(buffer.used, 0);
        assert_int_equal(buffer.max, 8);
        assert_string_equal(buffer_text(&buffer), "");
    }
    failing_allocator_stop();
}

static void test_a_formatted_piece_has_a_limit(void **state) {
    struct buffer buffer = BUFFER(10000);
    char text[300];

    (void)state;
    assert_ok(buffer_append_text(&buffer, "before"));
    for (size_t length = 250; length < sizeof text; length++) {
        memset(text, 'x', length);
        text[length] = 0;
        if (length < 256)
            assert_ok(buffer_append_format(&buffer, "%s", text));
        else
            assert_fails(buffer_append_format(&buffer, "%s", text), ULP_E_INTERNAL,
                         "a formatted piece exceeds 256 bytes");
    }
    assert_int_equal(buffer.used, 6 + 250 + 251 + 252 + 253 + 254 + 255);
    assert_int_equal(strlen(buffer_text(&buffer)), buffer.used);
    buffer_release(&buffer);
}

static void test_a_failed_allocation_keeps_the_contents(void **state) {
    struct buffer buffer = BUFFER(100000);

    (void)state;
    failing_allocator_start(1, 0);
    assert_ok(buffer_append_text(&buffer, "kept"));
    assert_fails(buffer_append_fill(&buffer, 'x', 5000), ULP_E_NOMEM, "out of memory");
    assert_string_equal(buffer_text(&buffer), "kept");
    assert_int_equal(buffer.used, 4);
    assert_ok(buffer_append_fill(&buffer, 'x', 5000));
    assert_int_equal(strlen(buffer_text(&buffer)), 5004);
    buffer_release(&buffer);
    failing_allocator_stop();
}

static void test_growth_is_geometric(void **state) {
    struct buffer buffer = BUFFER(1000000);

    (void)state;
    failing_allocator_start(UINT64_MAX, 0);
    for (size_t i = 0; i < 1000000; i++)
        assert_ok(buffer_append(&buffer, "x", 1));
    assert_int_equal(strlen(buffer_text(&buffer)), 1000000);
    buffer_release(&buffer);
    assert_in_range(failing_allocator_stop(), 2, 30);
}

TEST_MAIN(test_the_maximum_is_exact, test_one_more_than_the_maximum_changes_nothing,
          test_a_nul_always_stands_behind_the_contents, test_pieces_follow_each_other,
          test_an_untouched_buffer_is_empty_text, test_release_keeps_the_maximum_for_reuse,
          test_a_formatted_piece_has_a_limit, test_a_failed_allocation_keeps_the_contents,
          test_growth_is_geometric)
