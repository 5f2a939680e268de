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
    {"\xc3\xa4\xe8\xaa\x9e", "'\xc3\xa4\xe8\xaa\x9e'"},
    {"\xc3(\xed\xa0\x80", "'\\xc3(\\xed\\xa0\\x80'"}, /* ill-formed */
    {"\xc2\x9b"
     "2J",
     "'\\xc2\\x9b2J'"}, /* a C1 control character */
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

/* What is shown is escaped whole, begins as the text does, and fits. */
static void check_length(const char *unit, size_t unit_bytes, const char *escaped, size_t count) {
    size_t bytes = count * unit_bytes, each = strlen(escaped);
    char *text = malloc(bytes + 1), *cut;
    struct quoted out;

    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * unit_bytes, unit, unit_bytes);
    out = quote_bytes(text, bytes);
    free(text);
    assert_non_null(memchr(out.text, 0, QUOTE_BYTES));
    assert_int_equal(out.text[0], '\'');
    assert_int_equal(out.text[strlen(out.text) - 1], '\'');
    cut = strstr(out.text, "...");
    if (cut)
        assert_true((size_t)(cut - out.text) - 1 >= 60 && count * each > 130);
    else
        assert_int_equal(strlen(out.text), count * each + 2);
    for (size_t i = 1; cut && out.text + i < cut; i++)
        assert_int_equal(out.text[i], escaped[(i - 1) % each]);
}

static void test_every_length_fits_and_a_cut_shows(void **state) {
    (void)state;
    for (size_t count = 0; count <= 400; count++) {
        check_length("x", 1, "x", count);
        check_length("\x7f", 1, "\\x7f", count);
        check_length("a\x80", 2, "a\\x80", count / 2);
    }
}

/* Paths tell most by their ends. */
static void test_both_ends_of_a_long_text_are_shown(void **state) {
    char text[400];
    struct quoted out;

    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, "/begin", 6);
    memcpy(text + sizeof text - 4, "/end", 4);
    out = quote_bytes(text, sizeof text);
    assert_memory_equal(out.text, "'/begin", 7);
    assert_string_equal(out.text + strlen(out.text) - 5, "/end'");
    assert_non_null(strstr(out.text, "x...x"));
}

/* The shift decides how the escapes fall on the end of the room. */
static void test_escapes_at_the_cut_are_whole(void **state) {
    char text[130];

    (void)state;
    for (size_t shift = 0; shift < sizeof text; shift++) {
        struct quoted out;
        const char *last;

        memset(text, 'x', shift);
        memset(text + shift, '\n', sizeof text - shift);
        out = quote_bytes(text, sizeof text);
        last = out.text + strlen(out.text) - 8;
        assert_non_null(memchr(out.text, 0, QUOTE_BYTES));
        if (shift + 4 * (sizeof text - shift) > QUOTE_BYTES)
            assert_string_equal(last, "\\x0a...'");
    }
}

TEST_MAIN(test_what_is_not_plain_is_escaped, test_each_byte_is_itself_or_four_characters,
          test_quote_bytes_stops_at_the_length, test_every_length_fits_and_a_cut_shows,
          test_both_ends_of_a_long_text_are_shown, test_escapes_at_the_cut_are_whole)
