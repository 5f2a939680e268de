// SPDX-License-Identifier: Apache-2.0
/* Scripts and other languages rely on the numbers: this table only ever grows. */
#include "tests/test.h"

struct pin {
    enum ulp_status status;
    int number;
    const char *name;
};

static const struct pin pins[] = {
    {ULP_OK, 0, "ULP_OK"},
    {ULP_E_INTERNAL, 1, "ULP_E_INTERNAL"},
    {ULP_E_USAGE, 2, "ULP_E_USAGE"},
    {ULP_E_NOMEM, 10, "ULP_E_NOMEM"},
    {ULP_E_LIMIT, 11, "ULP_E_LIMIT"},
    {ULP_E_CANCELLED, 12, "ULP_E_CANCELLED"},
    {ULP_E_UNSUPPORTED, 13, "ULP_E_UNSUPPORTED"},
    {ULP_E_NOT_FOUND, 20, "ULP_E_NOT_FOUND"},
    {ULP_E_EXISTS, 21, "ULP_E_EXISTS"},
    {ULP_E_PERMISSION, 22, "ULP_E_PERMISSION"},
    {ULP_E_NO_SPACE, 23, "ULP_E_NO_SPACE"},
    {ULP_E_IO, 24, "ULP_E_IO"},
    {ULP_E_FILE_KIND, 25, "ULP_E_FILE_KIND"},
    {ULP_E_FILE_CHANGED, 26, "ULP_E_FILE_CHANGED"},
    {ULP_E_TRUNCATED, 30, "ULP_E_TRUNCATED"},
    {ULP_E_TRAILING, 31, "ULP_E_TRAILING"},
    {ULP_E_HEADER, 32, "ULP_E_HEADER"},
    {ULP_E_JSON, 33, "ULP_E_JSON"},
    {ULP_E_UTF8, 34, "ULP_E_UTF8"},
    {ULP_E_SCHEMA, 35, "ULP_E_SCHEMA"},
    {ULP_E_DUPLICATE, 36, "ULP_E_DUPLICATE"},
    {ULP_E_OVERLAP, 37, "ULP_E_OVERLAP"},
    {ULP_E_HOLE, 38, "ULP_E_HOLE"},
    {ULP_E_SIZE, 39, "ULP_E_SIZE"},
    {ULP_E_NAME, 40, "ULP_E_NAME"},
    {ULP_E_SHARDS, 41, "ULP_E_SHARDS"},
    {ULP_E_NO_MODEL, 42, "ULP_E_NO_MODEL"},
    {ULP_E_CODE, 50, "ULP_E_CODE"},
    {ULP_E_NOT_A_PATCH, 51, "ULP_E_NOT_A_PATCH"},
    {ULP_E_VERSION, 52, "ULP_E_VERSION"},
    {ULP_E_CHECKSUM, 53, "ULP_E_CHECKSUM"},
    {ULP_E_TABLE, 54, "ULP_E_TABLE"},
    {ULP_E_LAYOUT, 55, "ULP_E_LAYOUT"},
    {ULP_E_WRONG_BASE, 56, "ULP_E_WRONG_BASE"},
    {ULP_E_WRONG_RESULT, 57, "ULP_E_WRONG_RESULT"},
    {ULP_E_NEEDS_HISTORY, 58, "ULP_E_NEEDS_HISTORY"},
    {ULP_E_REGIONS, 59, "ULP_E_REGIONS"},
    {ULP_E_INTERRUPTED, 60, "ULP_E_INTERRUPTED"},
    {ULP_E_BUSY, 61, "ULP_E_BUSY"},
    {ULP_E_JOURNAL, 62, "ULP_E_JOURNAL"},
    {ULP_E_NO_RUN, 70, "ULP_E_NO_RUN"},
    {ULP_E_RECORD, 71, "ULP_E_RECORD"},
    {ULP_E_CHAIN, 72, "ULP_E_CHAIN"},
    {ULP_E_FENCED, 73, "ULP_E_FENCED"},
    {ULP_E_ROLLBACK, 74, "ULP_E_ROLLBACK"},
    {ULP_E_UNREACHABLE, 75, "ULP_E_UNREACHABLE"},
    {ULP_E_PART, 76, "ULP_E_PART"},
    {ULP_E_FORK, 77, "ULP_E_FORK"},
    {ULP_E_OTHER_RUN, 78, "ULP_E_OTHER_RUN"},
    {ULP_E_JUMP, 79, "ULP_E_JUMP"},
    {ULP_E_FROZEN, 80, "ULP_E_FROZEN"},
    {ULP_E_UNSIGNED, 81, "ULP_E_UNSIGNED"},
    {ULP_E_SIGNATURE, 82, "ULP_E_SIGNATURE"},
    {ULP_E_PART_MISSING, 83, "ULP_E_PART_MISSING"},
    {ULP_E_KEY, 84, "ULP_E_KEY"},
    {ULP_E_DEVICE, 90, "ULP_E_DEVICE"},
    {ULP_E_POISONED, 91, "ULP_E_POISONED"},
};

#define PINS (sizeof pins / sizeof pins[0])

static const char unknown_name[] = "ULP_E_UNKNOWN";

static void test_numbers_and_names_are_pinned(void **state) {
    (void)state;
    for (size_t i = 0; i < PINS; i++) {
        assert_int_equal(pins[i].status, pins[i].number);
        assert_string_equal(ulp_status_name(pins[i].status), pins[i].name);
    }
}

/* A code added to the header without a line in the table above is found here. */
static void test_every_code_with_a_name_is_in_the_table(void **state) {
    size_t named = 0;

    (void)state;
    for (int number = 0; number < 1000; number++)
        named += strcmp(ulp_status_name((enum ulp_status)number), unknown_name) != 0;
    assert_int_equal(named, PINS);
}

static void test_names_and_advice_are_unique(void **state) {
    (void)state;
    for (size_t i = 0; i < PINS; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(ulp_status_name(pins[i].status),
                                    ulp_status_name(pins[j].status));
            assert_string_not_equal(ulp_status_advice(pins[i].status),
                                    ulp_status_advice(pins[j].status));
        }
    }
}

static void test_advice_is_one_short_sentence(void **state) {
    (void)state;
    for (size_t i = 0; i < PINS; i++) {
        const char *advice = ulp_status_advice(pins[i].status);
        size_t length = strlen(advice);

        assert_in_range(length, 8, 100);
        assert_in_range(advice[0], 'A', 'Z');
        assert_int_equal(advice[length - 1], '.');
        assert_null(strchr(advice, '\n'));
    }
}

/* Shells use 126 and up for commands that could not run and for signals. */
static void test_codes_fit_exit_codes(void **state) {
    (void)state;
    for (size_t i = 0; i < PINS; i++)
        assert_in_range(pins[i].status, 0, 125);
}

static void test_unknown_codes_have_a_name_and_advice(void **state) {
    static const int numbers[] = {3, 9, 14, 29, 43, 125, 126, 255, 100000, -1};

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        enum ulp_status status = (enum ulp_status)numbers[i];

        assert_string_equal(ulp_status_name(status), unknown_name);
        assert_string_equal(ulp_status_advice(status),
                            "A status code of another version of ulpsync.");
    }
}

TEST_MAIN(test_numbers_and_names_are_pinned, test_every_code_with_a_name_is_in_the_table,
          test_names_and_advice_are_unique, test_advice_is_one_short_sentence,
          test_codes_fit_exit_codes, test_unknown_codes_have_a_name_and_advice)
