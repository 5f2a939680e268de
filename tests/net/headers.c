// SPDX-License-Identifier: Apache-2.0
/* The head of an answer: what is taken from it, and what is too odd to be trusted. */
#include "net/http.h"
#include "tests/test.h"

static struct http_response take(const char *text) {
    struct http_response response = {0};

    while (*text) {
        size_t length = strcspn(text, "\n");

        length += text[length] == '\n';
        http_take_header(&response, text, length);
        text += length;
    }
    return response;
}

static void test_all_of_them(void **state) {
    struct http_response r = take("HTTP/1.1 206 Partial Content\r\n"
                                  "content-LENGTH: 10\r\n"
                                  "Content-Range:\tbytes 5-14/20 \r\n"
                                  "ETag: \"abc\"\r\n"
                                  "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                  "Retry-After: 7\r\n"
                                  "x-amz-bucket-region: eu-west-1\r\n"
                                  "Content-Encoding: identity\r\n\r\n");

    (void)state;
    assert_int_equal(r.code, 206);
    assert_true(r.has_length && r.length == 10);
    assert_true(r.range.given && r.range.all_known && !r.range.none);
    assert_true(r.range.first == 5 && r.range.last == 14 && r.range.total == 20);
    assert_string_equal(r.etag, "\"abc\"");
    assert_string_equal(r.region, "eu-west-1");
    assert_int_equal(r.date_s, 784111777);
    assert_int_equal(r.retry_after_s, 7);
    assert_false(r.encoded || r.odd || r.lost);
}

static void test_an_answer_before_the_answer(void **state) {
    struct http_response r =
        take("HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\nETag: x\r\n\r\nHTTP/2 200\r\n\r\n");

    (void)state;
    assert_int_equal(r.code, 200);
    assert_false(r.has_length || *r.etag);
}

static void test_ranges(void **state) {
    static const char *const bad[] = {"bytes",
                                      "bytes 1-2",
                                      "bytes 2-1/5",
                                      "bytes 0-5/5",
                                      "bits 0-1/5",
                                      "bytes -1/5",
                                      "bytes 0-/5",
                                      "bytes 0-1/",
                                      "bytes 0-1/x",
                                      "bytes 0-1/5x",
                                      "bytes 0-99999999999999999999/*",
                                      "bytes */",
                                      "bytes 0-1/18446744073709551616"};
    struct http_response r = take("Content-Range: bytes */1234\r\n");

    (void)state;
    assert_true(r.range.none && r.range.all_known && r.range.total == 1234);
    r = take("Content-Range: bytes 0-0/*\r\n");
    assert_true(r.range.given && !r.range.all_known && !r.odd);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char line[100];

        snprintf(line, sizeof line, "Content-Range: %s\r\n", bad[i]);
        r = take(line);
        if (!r.odd || r.range.given)
            fail_msg("%s was taken", bad[i]);
    }
}

static void test_odd_ones(void **state) {
    char line[2000] = "ETag: ";

    (void)state;
    assert_true(take("Content-Length: 1\r\nContent-Length: 2\r\n").odd);
    assert_false(take("Content-Length: 1\r\nContent-Length: 1\r\n").odd);
    assert_true(take("Content-Length: -1\r\n").odd);
    assert_true(take("Content-Length: 1, 1\r\n").odd);
    assert_true(take("Content-Length: 99999999999999999999\r\n").odd);
    assert_true(take("Content-Range: bytes 0-1/2\r\nContent-Range: bytes 0-1/2\r\n").odd);
    assert_true(take("Content-Encoding: gzip\r\n").encoded);
    assert_true(take("Content-Encoding: br, identity\r\n").encoded);
    assert_false(take("Content-Encoding: aws-chunked\r\n").encoded);
    assert_int_equal(take("Date: yesterday\r\n").date_s, 0);
    assert_int_equal(take("HTTP/1.1 99\r\n").code, 0);
    assert_int_equal(take("HTTP/1.1\r\n").code, 0);
    take("no colon\r\n");
    take(":\r\n");
    memset(line + 6, 'x', 1000);
    assert_true(take(line).odd);
}

static void test_addresses(void **state) {
    static const char *const bad[] = {"",
                                      "ftp://a/b",
                                      "http://",
                                      "http:///a",
                                      "//a",
                                      "http://a b/",
                                      "http://u@a/",
                                      "https://u:p@a/",
                                      "http://a/\n",
                                      "http://\xc3\xa9/",
                                      "HTTP://a/"};

    (void)state;
    assert_ok(http_url_check("http://a"));
    assert_ok(http_url_check("https://a.b:1234/c/d@e"));
    assert_ok(http_url_check("http://[::1]:80/"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(http_url_check(bad[i]), ULP_E_USAGE, "");
}

TEST_MAIN(test_all_of_them, test_an_answer_before_the_answer, test_ranges, test_odd_ones,
          test_addresses)
