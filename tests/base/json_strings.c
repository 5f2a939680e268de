// SPDX-License-Identifier: Apache-2.0
/* Strings: what escapes mean, where the limit is, and that writing and reading agree. */
#include "tests/test.h"

#include "base/json.h"
#include "base/utf8.h"

static enum ulp_status read_string(const char *json_text, struct buffer *text) {
    struct json json;
    enum ulp_status status;

    json_init(&json, json_text, strlen(json_text), "a test");
    status = json_string(&json, text);
    return status ? status : json_end(&json);
}

static const struct {
    const char *json, *text;
} meanings[] = {
    {"\"\"", ""},
    {" \"a\" ", "a"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
    {"\"a\\u0041\\u00e4b\"", "aA\xc3\xa4"
                             "b"},
    {"\"\\u0001\\u001f\\u007f\"", "\x01\x1f\x7f"},
    {"\"\\u07ff\\u0800\"", "\xdf\xbf\xe0\xa0\x80"},
    {"\"\\u20AC\\u20ac\"", "\xe2\x82\xac\xe2\x82\xac"},
    {"\"\\ud7ff\\ue000\\uFFFF\"", "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
    {"\"\\uD83D\\uDE00\"", "\xf0\x9f\x98\x80"},
    {"\"\\ud800\\udc00\\udbff\\udfff\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    {"\"\\\\u0041\"", "\\u0041"},
    {"\"\xc3\xa4\xf0\x9f\x98\x80\"", "\xc3\xa4\xf0\x9f\x98\x80"},
    {"\"/\x7f'\"", "/\x7f'"},
};

static void test_escapes_mean_what_they_should(void **state) {
    struct buffer text = BUFFER(100);

    (void)state;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        assert_ok(read_string(meanings[i].json, &text));
        assert_string_equal(buffer_text(&text), meanings[i].text);
        assert_int_equal(text.used, strlen(meanings[i].text));
    }
    buffer_release(&text);
}

/* Encodes by the definition, apart from the code under test. */
static size_t encode(uint32_t code, char out[5]) {
    static const uint32_t starts[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    out[0] = (char)(starts[length] + (code >> (6 * (length - 1))));
    for (size_t i = 1; i < length; i++)
        out[i] = (char)(0x80 + (code >> (6 * (length - 1 - i))) % 64);
    out[length] = 0;
    return length;
}

static void check_code_point(uint32_t code, struct buffer *json, struct buffer *text) {
    char utf8[5], escaped[32];
    size_t length = encode(code, utf8);

    buffer_clear(json);
    assert_ok(json_append_string(json, utf8));
    assert_true(utf8_valid(buffer_text(json), json->used));
    assert_ok(read_string(buffer_text(json), text));
    assert_int_equal(text->used, length);
    assert_string_equal(buffer_text(text), utf8);
    if (code < 0x10000)
        snprintf(escaped, sizeof escaped, "\"\\u%04x\"", (unsigned)code);
    else
        snprintf(escaped, sizeof escaped, "\"\\u%04X\\u%04x\"",
                 (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + ((code - 0x10000) & 0x3ff)));
    assert_ok(read_string(escaped, text));
    assert_string_equal(buffer_text(text), utf8);
}

static void test_every_code_point_makes_the_round_trip(void **state) {
    struct buffer json = BUFFER(100), text = BUFFER(100);

    (void)state;
    for (uint32_t code = 1; code < 0x800; code++)
        check_code_point(code, &json, &text);
    for (uint32_t code = 0x800; code <= 0x10ffff; code += code < 0x2000 ? 1 : 61) {
        if (code < 0xd800 || code > 0xdfff)
            check_code_point(code, &json, &text);
    }
    check_code_point(0xd7ff, &json, &text);
    check_code_point(0xe000, &json, &text);
    check_code_point(0xffff, &json, &text);
    check_code_point(0x10000, &json, &text);
    check_code_point(0x10ffff, &json, &text);
    buffer_release(&json);
    buffer_release(&text);
}

static void test_writing_escapes_only_what_must_be(void **state) {
    struct buffer json = BUFFER(1000);

    (void)state;
    assert_ok(json_append_string(&json, "plain /'\x7f \xc3\xa4\xf0\x9f\x98\x80"));
    assert_string_equal(buffer_text(&json), "\"plain /'\x7f \xc3\xa4\xf0\x9f\x98\x80\"");
    buffer_clear(&json);
    assert_ok(json_append_string(&json, "q\"b\\n\nt\tx\x01\x1f"));
    assert_string_equal(buffer_text(&json), "\"q\\\"b\\\\n\\u000at\\u0009x\\u0001\\u001f\"");
    buffer_clear(&json);
    assert_ok(json_append_string(&json, ""));
    assert_ok(json_append_string(&json, "a"));
    assert_string_equal(buffer_text(&json), "\"\"\"a\"");
    buffer_release(&json);
}

static void test_writing_stops_at_the_limit(void **state) {
    struct buffer exact = BUFFER(10), less = BUFFER(9);

    (void)state;
    assert_ok(json_append_string(&exact, "a\x01"
                                         "b"));
    assert_string_equal(buffer_text(&exact), "\"a\\u0001b\"");
    assert_fails(json_append_string(&less, "a\x01"
                                           "b"),
                 ULP_E_LIMIT, "more than 9 bytes");
    buffer_release(&exact);
    buffer_release(&less);
}

/* The limit counts bytes of the meaning, not of its spelling. */
static void test_the_limit_of_a_string_is_exact(void **state) {
    static const char *const four_bytes[] = {"\"abcd\"", "\"ab\\u0041\\n\"", "\"\\ud83d\\ude00\"",
                                             "\"\\u00e4\xc3\xa4\""};
    struct buffer exact = BUFFER(4), less = BUFFER(3);

    (void)state;
    for (size_t i = 0; i < sizeof four_bytes / sizeof four_bytes[0]; i++) {
        assert_ok(read_string(four_bytes[i], &exact));
        assert_int_equal(exact.used, 4);
        assert_fails(read_string(four_bytes[i], &less), ULP_E_LIMIT,
                     "'a test': the string at byte 1 of the JSON text exceeds 3 bytes");
    }
    buffer_release(&exact);
    buffer_release(&less);
}

static void test_a_key_has_a_limit_too(void **state) {
    struct buffer key = BUFFER(3);
    struct json json;
    bool more = false;

    (void)state;
    json_init(&json, "{\"abc\":1,\"abcd\":2}", 18, "a test");
    assert_ok(json_object_begin(&json));
    assert_ok(json_member(&json, &key, &more));
    assert_true(more);
    assert_string_equal(buffer_text(&key), "abc");
    assert_ok(json_skip(&json));
    more = false;
    assert_fails(json_member(&json, &key, &more), ULP_E_LIMIT, "the string at byte 10 of the JSON");
    assert_false(more);
    buffer_release(&key);
}

static void test_a_string_replaces_what_was_there(void **state) {
    struct buffer text = BUFFER(10);

    (void)state;
    assert_ok(read_string("\"long text\"", &text));
    assert_ok(read_string("\"b\"", &text));
    assert_string_equal(buffer_text(&text), "b");
    assert_ok(read_string("\"\"", &text));
    assert_string_equal(buffer_text(&text), "");
    assert_int_equal(text.used, 0);
    buffer_release(&text);
}

TEST_MAIN(test_escapes_mean_what_they_should, test_every_code_point_makes_the_round_trip,
          test_writing_escapes_only_what_must_be, test_writing_stops_at_the_limit,
          test_the_limit_of_a_string_is_exact, test_a_key_has_a_limit_too,
          test_a_string_replaces_what_was_there)
