// SPDX-License-Identifier: Apache-2.0
/* What the JSON reader accepts, what it hands out, and how deep it goes. */
#include "tests/test.h"

#include "base/json.h"
#include "base/limits.h"

/* Reads one value and the end, from a block without a byte behind it. */
static enum ulp_status skip_all(const char *text, size_t bytes) {
    char *block = malloc(bytes ? bytes : 1);
    struct json json;
    enum ulp_status status;

    assert_non_null(block);
    memcpy(block, text, bytes);
    json_init(&json, block, bytes, "a test");
    status = json_skip(&json);
    if (!status)
        assert_int_equal(json.depth, 0);
    if (!status)
        status = json_end(&json);
    if (!status)
        assert_int_equal(json.at, bytes);
    free(block);
    return status;
}

static const char *const accepted[] = {
    "0",
    "-0",
    "7",
    "-12",
    "1.5",
    "-0.25",
    "0e0",
    "1e5",
    "1E+5",
    "12.50e-07",
    "99999999999999999999999999999999",
    "true",
    "false",
    "null",
    "\"\"",
    "\"text\"",
    "\"\x7f\"",
    "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\uDE00\"",
    "{}",
    "[]",
    " \t\r\n{ \t\r\n} \t\r\n",
    "[ ]",
    "{\"\":0}",
    "[0,1,2]",
    " [ 0 , 1 ] ",
    "[[],{},[[]],{\"a\":{}}]",
    "{\"a\":1,\"b\":[true,false,null],\"c\":{\"d\":\"e\"},\"a\":2}",
    "{ \"a\" : 1 , \"b\" : [ ] }",
    "[\"}\",\"]\",\"{[\\\"\"]",
};

static void test_valid_texts_are_accepted(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        enum ulp_status status = skip_all(accepted[i], strlen(accepted[i]));

        if (status)
            fail_msg("%s: %s", accepted[i], ulp_last_error());
    }
}

/* A cut inside a multi-byte character or between two halves of a pair is an UTF-8 fault. */
static void test_a_text_cut_anywhere_is_refused(void **state) {
    static const char text[] =
        "{\"a\": [1, -2.5e+3, true, false, null, {}, []],\"\xc3\xa4\": \"\xf0\x9f\x98\x80\\n\\\"\","
        " \"b\": {\"\\ud83d\\ude00\": \"\\u00e4\", \"c\" : [[ ]] } }";
    size_t cut_json = 0, cut_utf8 = 0;

    (void)state;
    assert_ok(skip_all(text, strlen(text)));
    for (size_t bytes = 0; bytes < strlen(text); bytes++) {
        enum ulp_status status = skip_all(text, bytes);

        if (status != ULP_E_JSON && status != ULP_E_UTF8)
            fail_msg("%zu bytes: %s", bytes, ulp_status_name(status));
        cut_json += status == ULP_E_JSON;
        cut_utf8 += status == ULP_E_UTF8;
    }
    assert_int_equal(cut_utf8, 1 + 3 + 2);
    assert_int_equal(cut_json + cut_utf8, strlen(text));
}

/* One byte of a valid text changed: never a crash, and never a read outside. */
static void test_any_byte_may_be_wrong(void **state) {
    static const char text[] =
        "{\"a\":[1,-2.5e3,true,null],\"\xc3\xa4\":\"\\u00e4\\ud83d\\ude00\"}";
    char broken[sizeof text];
    size_t refused = 0;

    (void)state;
    for (size_t place = 0; place < sizeof text - 1; place++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(broken, text, sizeof text);
            broken[place] = (char)byte;
            refused += skip_all(broken, sizeof text - 1) != ULP_OK;
        }
    }
    assert_true(refused > 5000);
}

/* `depth` containers in each other, alternating when `mixed`. */
static size_t nest(char *out, unsigned depth, int mixed) {
    size_t at = 0;

    for (unsigned i = 0; i < depth; i++)
        at += (size_t)sprintf(out + at, "%s", mixed && i % 2 ? "{\"k\":" : "[");
    if (mixed && depth && (depth - 1) % 2)
        at += (size_t)sprintf(out + at, "0");
    for (unsigned i = depth; i-- > 0;)
        out[at++] = mixed && i % 2 ? '}' : ']';
    return at;
}

static void test_the_depth_limit_is_exact(void **state) {
    char text[8192];

    (void)state;
    assert_int_equal(LIMIT_JSON_DEPTH, 16);
    for (int mixed = 0; mixed < 2; mixed++) {
        for (unsigned depth = 1; depth <= LIMIT_JSON_DEPTH; depth++)
            assert_ok(skip_all(text, nest(text, depth, mixed)));
        for (unsigned depth = LIMIT_JSON_DEPTH + 1; depth < 200; depth++)
            assert_fails(skip_all(text, nest(text, depth, mixed)), ULP_E_LIMIT,
                         "'a test': at byte ");
    }
    assert_fails(skip_all(text, nest(text, 17, 0)), ULP_E_LIMIT,
                 "at byte 17 of the JSON text: nested too deeply");
    memset(text, '[', sizeof text);
    assert_fails(skip_all(text, sizeof text), ULP_E_LIMIT, "nested too deeply");
}

/* Containers side by side do not add up. */
static void test_depth_counts_open_containers_only(void **state) {
    char text[4096] = "[";

    (void)state;
    for (int i = 0; i < 500; i++)
        strcat(text, "[{}],");
    strcat(text, "0]");
    assert_ok(skip_all(text, strlen(text)));
}

struct found {
    uint64_t sum;
    unsigned members, elements;
    char last_key[16];
};

static enum ulp_status read_array(struct json *json, struct found *found) {
    bool more = false;
    enum ulp_status status = json_array_begin(json);

    while (!status && !(status = json_element(json, &more)) && more) {
        uint64_t value = 0;

        status = json_u64(json, &value);
        found->sum += value;
        found->elements++;
    }
    return status;
}

/* {"name": [numbers], ...} with everything under "skip" passed over. */
static enum ulp_status read_lists(struct json *json, struct found *found) {
    struct buffer key = BUFFER(15);
    bool more = false;
    enum ulp_status status = json_object_begin(json);

    while (!status && !(status = json_member(json, &key, &more)) && more) {
        found->members++;
        snprintf(found->last_key, sizeof found->last_key, "%s", buffer_text(&key));
        if (!strcmp(found->last_key, "skip"))
            status = json_skip(json);
        else
            status = read_array(json, found);
    }
    if (!status)
        status = json_end(json);
    buffer_release(&key);
    return status;
}

static void test_a_document_is_read_piece_by_piece(void **state) {
    static const char text[] = " { \"a\" : [1, 2,3 ] , \"skip\": {\"x\":[[],{\"y\":[\"]}\"]}],"
                               "\"a\":-1.5e3}, \"skip\":[], \"\":[], \"z\\u00e4\":[40]} ";
    struct found found = {0};
    struct json json;

    (void)state;
    json_init(&json, text, strlen(text), "a test");
    assert_ok(read_lists(&json, &found));
    assert_int_equal(found.sum, 46);
    assert_int_equal(found.members, 5);
    assert_int_equal(found.elements, 4);
    assert_string_equal(found.last_key, "z\xc3\xa4");
    assert_int_equal(json.depth, 0);
}

static void test_the_pulled_document_cut_anywhere_is_refused(void **state) {
    static const char text[] = "{\"a\":[1,23],\"skip\":[{}],\"b\":[]}";

    (void)state;
    for (size_t bytes = 0; bytes < strlen(text); bytes++) {
        struct found found = {0};
        struct json json;
        enum ulp_status status;

        json_init(&json, text, bytes, "a test");
        status = read_lists(&json, &found);
        if (status != ULP_E_JSON &&
            status != ULP_E_SCHEMA) /* SCHEMA: no number where one must be */
            fail_msg("%zu bytes: %s", bytes, ulp_status_name(status));
    }
}

static void test_failed_allocations_leak_nothing(void **state) {
    static const char text[] = "{\"a\":[{\"b\":\"c\"},\"d\"]}";
    uint64_t fail_at = 0, asked;

    (void)state;
    do {
        enum ulp_status status;

        failing_allocator_start(fail_at, 1);
        status = skip_all(text, strlen(text));
        asked = failing_allocator_stop();
        assert_int_equal(status, fail_at < asked ? ULP_E_NOMEM : ULP_OK);
    } while (fail_at++ < asked);
}

TEST_MAIN(test_valid_texts_are_accepted, test_a_text_cut_anywhere_is_refused,
          test_any_byte_may_be_wrong, test_the_depth_limit_is_exact,
          test_depth_counts_open_containers_only, test_a_document_is_read_piece_by_piece,
          test_the_pulled_document_cut_anywhere_is_refused, test_failed_allocations_leak_nothing)
