// SPDX-License-Identifier: Apache-2.0
/* Whole numbers up to 2^64 - 1, and a clear word on everything else that stands in their place. */
#include "tests/test.h"

#include "base/json.h"

static enum ulp_status read_number(const char *text, uint64_t *ret_value) {
    size_t bytes = strlen(text);
    char *block = malloc(bytes ? bytes : 1);
    struct json json;
    enum ulp_status status;

    assert_non_null(block);
    memcpy(block, text, bytes);
    json_init(&json, block, bytes, "a test");
    status = json_u64(&json, ret_value);
    if (!status)
        status = json_end(&json);
    free(block);
    return status;
}

static const struct {
    const char *text;
    uint64_t value;
} good[] = {
    {"0", 0},
    {"1", 1},
    {" \t\r\n10 ", 10},
    {"4294967296", UINT64_C(4294967296)},
    {"9223372036854775808", UINT64_C(9223372036854775808)},
    {"18446744073709551609", UINT64_MAX - 6},
    {"18446744073709551610", UINT64_MAX - 5},
    {"18446744073709551615", UINT64_MAX},
};

static void test_whole_numbers_are_exact(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t value = 77;

        assert_ok(read_number(good[i].text, &value));
        assert_int_equal(value, good[i].value);
    }
}

#define WHOLE "expected a whole number, zero or more"
#define POINT "expected a whole number without point or exponent"

static const struct {
    const char *text;
    enum ulp_status status;
    const char *message;
} bad[] = {
    {"18446744073709551616", ULP_E_LIMIT, "a number above 2^64 - 1"},
    {"18446744073709551620", ULP_E_LIMIT, "a number above 2^64 - 1"},
    {"28446744073709551615", ULP_E_LIMIT, "a number above 2^64 - 1"},
    {"99999999999999999999", ULP_E_LIMIT, "a number above 2^64 - 1"},
    {"184467440737095516150", ULP_E_LIMIT, "a number above 2^64 - 1"},
    {"100000000000000000000000000000000", ULP_E_LIMIT, "a number above 2^64 - 1"},
    {"-1", ULP_E_SCHEMA, "at byte 0 of the JSON text: " WHOLE},
    {"-0", ULP_E_SCHEMA, WHOLE},
    {"1.0", ULP_E_SCHEMA, "at byte 1 of the JSON text: " POINT},
    {"0.5", ULP_E_SCHEMA, POINT},
    {"1e3", ULP_E_SCHEMA, POINT},
    {"1E3", ULP_E_SCHEMA, POINT},
    {"0e0", ULP_E_SCHEMA, POINT},
    {"+1", ULP_E_JSON, WHOLE},
    {"", ULP_E_JSON, "at byte 0 of the JSON text: " WHOLE},
    {"  ", ULP_E_JSON, "at byte 2 of the JSON text: " WHOLE},
    {"\"1\"", ULP_E_SCHEMA, WHOLE},
    {"true", ULP_E_SCHEMA, WHOLE},
    {"null", ULP_E_SCHEMA, WHOLE},
    {"[1]", ULP_E_SCHEMA, WHOLE},
    {"{}", ULP_E_SCHEMA, WHOLE},
    {"NaN", ULP_E_JSON, WHOLE},
    {"01", ULP_E_JSON, "at byte 0 of the JSON text: a number with a leading zero"},
    {"00", ULP_E_JSON, "a number with a leading zero"},
    {"1x", ULP_E_JSON, "at byte 1 of the JSON text: something follows"},
    {"1 2", ULP_E_JSON, "at byte 2 of the JSON text: something follows"},
    {"0x1", ULP_E_JSON, "at byte 1 of the JSON text: something follows"},
};

static void test_other_numbers_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t value = 77;
        enum ulp_status status = read_number(bad[i].text, &value);

        if (status != bad[i].status || !strstr(ulp_last_error(), bad[i].message))
            fail_msg("%s: got %s: %s", bad[i].text, ulp_status_name(status), ulp_last_error());
        if (status != ULP_E_JSON)
            assert_int_equal(value, 77); /* outputs only on success */
    }
}

static void test_random_numbers_come_back(void **state) {
    (void)state;
    test_random_seed(3);
    for (int round = 0; round < 10000; round++) {
        uint64_t number = test_random() >> (test_random() % 64), value = 0;
        char text[32];

        snprintf(text, sizeof text, "%llu", (unsigned long long)number);
        assert_ok(read_number(text, &value));
        assert_int_equal(value, number);
    }
}

/* What each reading call says when something else stands there. */
static void test_the_wrong_kind_is_named(void **state) {
    struct buffer text = BUFFER(10);
    struct json json;

    (void)state;
    json_init(&json, " [1]", 4, "file\n");
    assert_fails(json_object_begin(&json), ULP_E_SCHEMA,
                 "'file\\x0a': at byte 1 of the JSON text: expected an object, found an array");
    assert_fails(json_string(&json, &text), ULP_E_SCHEMA,
                 "at byte 1 of the JSON text: expected a string, found an array");
    json_init(&json, " {}", 3, "file");
    assert_fails(json_array_begin(&json), ULP_E_SCHEMA,
                 "at byte 1 of the JSON text: expected an array, found an object");
    assert_fails(json_fail(&json, ULP_E_HOLE, "own words"), ULP_E_HOLE,
                 "'file': at byte 1 of the JSON text: own words");
    buffer_release(&text);
}

TEST_MAIN(test_whole_numbers_are_exact, test_other_numbers_are_refused,
          test_random_numbers_come_back, test_the_wrong_kind_is_named)
