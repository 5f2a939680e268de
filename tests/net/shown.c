// SPDX-License-Identifier: Apache-2.0
/* What messages show of addresses and of what servers say. */
#include "net/http.h"
#include "tests/test.h"

static void assert_url(const char *url, const char *expected) {
    assert_string_equal(http_show_url(url).text, expected);
}

static void test_addresses(void **state) {
    (void)state;
    assert_url("https://host/path/key", "'https://host/path/key'");
    assert_url("https://host/path?X-Amz-Signature=abc", "'https://host/path?...'");
    assert_url("https://host?a", "'https://host?...'");
    assert_url("https://host/#fragment", "'https://host/?...'");
    assert_url("https://user:password@host/a@b", "'https://host/a@b'");
    assert_url("https://a@b@host/", "'https://host/'");
    assert_url("user:password@host", "'host'");
    assert_url("", "''");
    assert_url("http://h/\n", "'http://h/\\x0a'");
}

static const char *const secrets[] = {"tokentokentoken", NULL, "KEYKEYKEYKEY", ""};

static void assert_text(const char *text, const char *expected) {
    assert_string_equal(http_show_text(text, strlen(text), secrets, 4).text, expected);
}

static void test_secrets_are_struck_out(void **state) {
    char text[3000];

    (void)state;
    assert_text("nothing to hide", "'nothing to hide'");
    assert_text("a tokentokentoken b KEYKEYKEYKEY", "'a [secret] b [secret]'");
    assert_text("tokentokentokentokentokentoken", "'[secret][secret]'");
    assert_text("cut tokentokentok", "'cut [secret]'"); /* the end of what was read */
    assert_text("chance tok", "'chance tok'");
    assert_text("tokentokentokex", "'tokentokentokex'");
    for (size_t before = 0; before < 1000; before++) { /* wherever it is cut */
        struct http_shown shown;

        memset(text, 'x', before);
        snprintf(text + before, sizeof text - before, "tokentokentoken and more of it, and more");
        shown = http_show_text(text, strlen(text), secrets, 4);
        assert_null(strstr(shown.text, "tokent"));
    }
}

TEST_MAIN(test_addresses, test_secrets_are_struck_out)
