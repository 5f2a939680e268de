// SPDX-License-Identifier: Apache-2.0
/* Text from outside cannot break out of its quotes, drive a terminal, or flood a message. */
#include "tests/test.h"

#include "base/quote.h"

static const struct {
    const char *text, *quoted;
} cases[] = {
    {"", "''"},
    {"model.safetensors", "'model.safetensors'"},
    {"a b~!\"#", "'a b~!\"#'"},
    {"it's", "'it\\x27s'"},
    {"back\\slash", "'back\\x5cslash'"},
    {"\x1b[31m", "'\\x1b[31m'"},
    {"a\tb\r\n", "'a\\x09b\\x0d\\x0a'"},
    {"\x01\x1f\x7f", "'\\x01\\x1f\\x7f'"},
    {"\xc3\xa4", "'\\xc3\\xa4'"},
    {"\x80\xff", "'\\x80\\xff'"},
};

static void test_what_is_not_plain_is_escaped(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(quote(cases[i].text).text, cases[i].quoted);
}

static void test_each_byte_is_itself_or_four_characters(void **state) {
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte, expected[8];
        int plain = byte >= ' ' && byte <= '~' && byte != '\'' && byte != '\\';

        snprintf(expected, sizeof expected, plain ? "'%c'" : "'\\x%02x'", byte);
        assert_string_equal(quote_bytes(&one, 1).text, expected);
    }
}

/* Only the given bytes are read: there is no NUL behind them. */
static void test_quote_bytes_stops_at_the_length(void **state) {
    (void)state;
    assert_string_equal(quote_bytes("abcdef", 3).text, "'abc'");
    assert_string_equal(quote_bytes("abc", 0).text, "''");
    assert_string_equal(quote_bytes("a\0b", 3).text, "'a\\x00b'");
}

/* Whole when it ends with the quote; else a start of the escaped text, then the mark of the cut. */
static void check_length(const char *unit, size_t unit_bytes, const char *escaped, size_t count) {
    size_t bytes = count * unit_bytes, each = strlen(escaped);
    char *text = malloc(bytes + 1);
    struct quoted out;
    size_t length, shown;

    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * unit_bytes, unit, unit_bytes);
    out = quote_bytes(text, bytes);
    assert_non_null(memchr(out.text, 0, QUOTE_BYTES));
    length = strlen(out.text);
    shown = length - 2;
    assert_int_equal(out.text[0], '\'');
    assert_int_equal(out.text[length - 1], '\'');
    if (length > 5 && !strcmp(out.text + length - 4, "...'")) {
        shown -= 3;
        assert_true(shown > 140 && shown < count * each);
    } else {
        assert_int_equal(shown, count * each);
    }
    assert_int_equal(shown % each, 0);
    for (size_t i = 0; i < shown; i++)
        assert_int_equal(out.text[1 + i], escaped[i % each]);
    free(text);
}

static void test_every_length_fits_and_a_cut_shows(void **state) {
    (void)state;
    for (size_t count = 0; count <= 400; count++) {
        check_length("x", 1, "x", count);
        check_length("\x7f", 1, "\\x7f", count);
        check_length("a\x80", 2, "a\\x80", count / 2);
    }
}

/* The shift decides how the escapes fall on the end of the room. */
static void test_escapes_at_the_cut_are_whole(void **state) {
    char text[400];

    (void)state;
    for (size_t shift = 0; shift < 160; shift++) {
        struct quoted out;

        memset(text, 'x', shift);
        memset(text + shift, '\n', sizeof text - shift);
        out = quote_bytes(text, sizeof text);
        assert_non_null(memchr(out.text, 0, QUOTE_BYTES));
        assert_string_equal(out.text + strlen(out.text) - 4, "...'");
        if (shift < 140)
            assert_memory_equal(out.text + strlen(out.text) - 8, "\\x0a...'", 8);
    }
}

TEST_MAIN(test_what_is_not_plain_is_escaped, test_each_byte_is_itself_or_four_characters,
          test_quote_bytes_stops_at_the_length, test_every_length_fits_and_a_cut_shows,
          test_escapes_at_the_cut_are_whole)
