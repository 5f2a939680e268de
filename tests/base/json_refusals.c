// SPDX-License-Identifier: Apache-2.0
/* What the JSON reader refuses: each with its status, its place and its reason. */
#include "tests/test.h"

#include "base/json.h"

struct refusal {
    const char *text;
    size_t bytes;
    enum ulp_status status;
    size_t place;
    const char *reason;
};

#define REFUSE(text, status, place, reason)                                                        \
    { text, sizeof text - 1, status, place, reason }

#define NO_VALUE "expected a value"
#define NO_COMMA "expected ',' or a closing bracket"
#define NO_KEY "expected a name in double quotes"
#define NO_COLON "expected ':' behind a name"
#define FOLLOWS "something follows the end of the JSON value"
#define ZERO "a number with a leading zero"
#define POINT "a number needs digits behind its point"
#define EXPONENT "a number needs digits in its exponent"
#define OPEN_STRING "the text ends inside a string"
#define CONTROL "a control character inside a string"
#define ESCAPE "expected one of \"\\/bfnrtu behind a backslash"
#define HEX "expected four hexadecimal digits behind \\u"
#define LOW "a low surrogate without its high half"
#define HIGH "a high surrogate without its low half"
#define NUL "a NUL character inside text"
#define NOT_UTF8 "the byte 0x" /* and which one */

static const struct refusal structure[] = {
    REFUSE("", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("   ", ULP_E_JSON, 3, NO_VALUE),
    REFUSE("\0", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("\xef\xbb\xbf{}", ULP_E_JSON, 0, NO_VALUE), /* a byte order mark */
    REFUSE("\f1", ULP_E_JSON, 0, NO_VALUE),            /* only four kinds of white space */
    REFUSE("\v1", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("\xc2\xa0"
           "1",
           ULP_E_JSON, 0, NO_VALUE),
    REFUSE("]", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("}", ULP_E_JSON, 0, NO_VALUE),
    REFUSE(",", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("[", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("[1", ULP_E_JSON, 2, NO_COMMA),
    REFUSE("[1,", ULP_E_JSON, 3, NO_VALUE),
    REFUSE("[1,]", ULP_E_JSON, 3, NO_VALUE),
    REFUSE("[,1]", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("[1,,2]", ULP_E_JSON, 3, NO_VALUE),
    REFUSE("[1 2]", ULP_E_JSON, 3, NO_COMMA),
    REFUSE("[1;2]", ULP_E_JSON, 2, NO_COMMA),
    REFUSE("[1}", ULP_E_JSON, 2, NO_COMMA),
    REFUSE("[}", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("[\"a\":1]", ULP_E_JSON, 4, NO_COMMA),
    REFUSE("{", ULP_E_JSON, 1, NO_KEY),
    REFUSE("{]", ULP_E_JSON, 1, NO_KEY),
    REFUSE("{,}", ULP_E_JSON, 1, NO_KEY),
    REFUSE("{a:1}", ULP_E_JSON, 1, NO_KEY),
    REFUSE("{'a':1}", ULP_E_JSON, 1, NO_KEY),
    REFUSE("{1:1}", ULP_E_JSON, 1, NO_KEY),
    REFUSE("{null:1}", ULP_E_JSON, 1, NO_KEY),
    REFUSE("{\"a\"}", ULP_E_JSON, 4, NO_COLON),
    REFUSE("{\"a\" 1}", ULP_E_JSON, 5, NO_COLON),
    REFUSE("{\"a\",1}", ULP_E_JSON, 4, NO_COLON),
    REFUSE("{\"a\"=1}", ULP_E_JSON, 4, NO_COLON),
    REFUSE("{\"a\":}", ULP_E_JSON, 5, NO_VALUE),
    REFUSE("{\"a\"::1}", ULP_E_JSON, 5, NO_VALUE),
    REFUSE("{\"a\":1", ULP_E_JSON, 6, NO_COMMA),
    REFUSE("{\"a\":1,}", ULP_E_JSON, 7, NO_KEY),
    REFUSE("{\"a\":1 \"b\":2}", ULP_E_JSON, 7, NO_COMMA),
    REFUSE("{\"a\":1]", ULP_E_JSON, 6, NO_COMMA),
    REFUSE("{} {}", ULP_E_JSON, 3, FOLLOWS),
    REFUSE("[]]", ULP_E_JSON, 2, FOLLOWS),
    REFUSE("1,", ULP_E_JSON, 1, FOLLOWS),
    REFUSE("{}\0", ULP_E_JSON, 2, FOLLOWS),
    REFUSE("1 // one", ULP_E_JSON, 2, FOLLOWS),
    REFUSE("/**/1", ULP_E_JSON, 0, NO_VALUE),
};

static const struct refusal scalars[] = {
    REFUSE("tru", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("True", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("truex", ULP_E_JSON, 4, FOLLOWS),
    REFUSE("[nullx]", ULP_E_JSON, 5, NO_COMMA),
    REFUSE("nul", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("fals", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("NaN", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("Infinity", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("-Infinity", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("undefined", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("-", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("--1", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("- 1", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("+1", ULP_E_JSON, 0, NO_VALUE),
    REFUSE(".5", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("-.5", ULP_E_JSON, 1, NO_VALUE),
    REFUSE("01", ULP_E_JSON, 1, ZERO),
    REFUSE("-01", ULP_E_JSON, 2, ZERO),
    REFUSE("00", ULP_E_JSON, 1, ZERO),
    REFUSE("[0,007]", ULP_E_JSON, 4, ZERO),
    REFUSE("1.", ULP_E_JSON, 2, POINT),
    REFUSE("[1.]", ULP_E_JSON, 3, POINT),
    REFUSE("1.e5", ULP_E_JSON, 2, POINT),
    REFUSE("1.-5", ULP_E_JSON, 2, POINT),
    REFUSE("1e", ULP_E_JSON, 2, EXPONENT),
    REFUSE("1E+", ULP_E_JSON, 3, EXPONENT),
    REFUSE("1e-x", ULP_E_JSON, 3, EXPONENT),
    REFUSE("1e+-5", ULP_E_JSON, 3, EXPONENT),
    REFUSE("1.5.5", ULP_E_JSON, 3, FOLLOWS),
    REFUSE("1e5.5", ULP_E_JSON, 3, FOLLOWS),
    REFUSE("0x10", ULP_E_JSON, 1, FOLLOWS),
    REFUSE("1_000", ULP_E_JSON, 1, FOLLOWS),
    REFUSE("1 000", ULP_E_JSON, 2, FOLLOWS),
};

static const struct refusal strings[] = {
    REFUSE("\"", ULP_E_JSON, 1, OPEN_STRING),
    REFUSE("\"abc", ULP_E_JSON, 4, OPEN_STRING),
    REFUSE("\"abc\\\"", ULP_E_JSON, 6, OPEN_STRING),
    REFUSE("'a'", ULP_E_JSON, 0, NO_VALUE),
    REFUSE("\"a\nb\"", ULP_E_JSON, 2, CONTROL),
    REFUSE("\"a\tb\"", ULP_E_JSON, 2, CONTROL),
    REFUSE("\"\x1f\"", ULP_E_JSON, 1, CONTROL),
    REFUSE("\"a\0b\"", ULP_E_JSON, 2, CONTROL),
    REFUSE("\"\\", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\x41\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\a\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\'\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\0\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\N\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\U0041\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\\0\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\\n\"", ULP_E_JSON, 2, ESCAPE),
    REFUSE("\"\\u\"", ULP_E_JSON, 3, HEX),
    REFUSE("\"\\u004\"", ULP_E_JSON, 6, HEX),
    REFUSE("\"\\u00g0\"", ULP_E_JSON, 5, HEX),
    REFUSE("\"\\u 041\"", ULP_E_JSON, 3, HEX),
    REFUSE("\"\\u+041\"", ULP_E_JSON, 3, HEX),
    REFUSE("\"\\u{41}\"", ULP_E_JSON, 3, HEX),
    REFUSE("\"\\u00", ULP_E_JSON, 5, HEX),
    REFUSE("\"\\ud83d\\u\"", ULP_E_JSON, 9, HEX),
    REFUSE("\"\\u0000\"", ULP_E_UTF8, 7, NUL),
    REFUSE("\"\\udc00\"", ULP_E_UTF8, 7, LOW),
    REFUSE("\"\\uDFFF\\ud83d\"", ULP_E_UTF8, 7, LOW),
    REFUSE("\"\\ud800\"", ULP_E_UTF8, 7, HIGH),
    REFUSE("\"\\udbffx\"", ULP_E_UTF8, 7, HIGH),
    REFUSE("\"\\ud83d\\n\"", ULP_E_UTF8, 7, HIGH),
    REFUSE("\"\\ud83d\\u0041\"", ULP_E_UTF8, 13, HIGH),
    REFUSE("\"\\ud83d\\ud83d\"", ULP_E_UTF8, 13, HIGH),
    REFUSE("\"\\ud83d\\ue000\"", ULP_E_UTF8, 13, HIGH),
    REFUSE("\"\\ud83d", ULP_E_UTF8, 7, HIGH),
    REFUSE("\"\\ud83d\\", ULP_E_UTF8, 7, HIGH),
    REFUSE("\"\x80\"", ULP_E_UTF8, 1, NOT_UTF8),
    REFUSE("\"a\xff\"", ULP_E_UTF8, 2, NOT_UTF8),
    REFUSE("\"\xc3\"", ULP_E_UTF8, 1, NOT_UTF8),
    REFUSE("\"\xe2\x82\"", ULP_E_UTF8, 1, NOT_UTF8),
    REFUSE("\"\xc0\xaf\"", ULP_E_UTF8, 1, NOT_UTF8),
    REFUSE("\"\xed\xa0\x80\"", ULP_E_UTF8, 1, NOT_UTF8),
    REFUSE("\"\xf4\x90\x80\x80\"", ULP_E_UTF8, 1, NOT_UTF8),
    REFUSE("\"\xf0\x9f\x98", ULP_E_UTF8, 1, NOT_UTF8),
    REFUSE("{\"a\xff\":1}", ULP_E_UTF8, 3, NOT_UTF8),
};

/* From a block without a byte behind it. */
static enum ulp_status skip_all(const struct refusal *refusal) {
    char *block = malloc(refusal->bytes ? refusal->bytes : 1);
    struct json json;
    enum ulp_status status;

    assert_non_null(block);
    memcpy(block, refusal->text, refusal->bytes);
    json_init(&json, block, refusal->bytes, "a test");
    status = json_skip(&json);
    if (!status)
        status = json_end(&json);
    free(block);
    return status;
}

static void check(const struct refusal *refusals, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct refusal *refusal = &refusals[i];
        enum ulp_status status = skip_all(refusal);
        char expected[200];

        snprintf(expected, sizeof expected, "'a test': at byte %zu of the JSON text: %s",
                 refusal->place, refusal->reason);
        if (status != refusal->status || strncmp(ulp_last_error(), expected, strlen(expected)) != 0)
            fail_msg("%s\n  got %s: %s\n  expected %s: %s", refusal->text, ulp_status_name(status),
                     ulp_last_error(), ulp_status_name(refusal->status), expected);
    }
}

static void test_broken_structure_is_refused(void **state) {
    (void)state;
    check(structure, sizeof structure / sizeof structure[0]);
}

static void test_broken_numbers_and_words_are_refused(void **state) {
    (void)state;
    check(scalars, sizeof scalars / sizeof scalars[0]);
}

static void test_broken_strings_are_refused(void **state) {
    (void)state;
    check(strings, sizeof strings / sizeof strings[0]);
}

static void test_every_control_character_is_refused_raw(void **state) {
    (void)state;
    for (char byte = 0; byte < 0x20; byte++) {
        const char text[] = {'"', byte, '"'};
        const struct refusal refusal = {text, sizeof text, ULP_E_JSON, 1, CONTROL};

        check(&refusal, 1);
    }
}

TEST_MAIN(test_broken_structure_is_refused, test_broken_numbers_and_words_are_refused,
          test_broken_strings_are_refused, test_every_control_character_is_refused_raw)
