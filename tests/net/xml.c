// SPDX-License-Identifier: Apache-2.0
/* The reader of XML: what S3 sends, and what is refused. */
#include "net/xml.h"

#include "base/limits.h"
#include "tests/test.h"

struct heard {
    char text[4096];
    size_t stop_after;
};

static enum ulp_status hear(void *user, const char *path, const char *text) {
    struct heard *heard = user;
    size_t used = strlen(heard->text);

    snprintf(heard->text + used, sizeof heard->text - used, "%s=%s;", path, text);
    return heard->stop_after && !--heard->stop_after ? ulp_fail(ULP_E_CANCELLED, "enough") : ULP_OK;
}

static void assert_reads(const char *xml, const char *expected) {
    struct heard heard = {0};

    assert_ok(xml_read("it", xml, strlen(xml), hear, &heard));
    assert_string_equal(heard.text, expected);
}

static void test_what_is_read(void **state) {
    (void)state;
    assert_reads("<a/>", "a=;");
    assert_reads("<a></a>", "a=;");
    assert_reads("<?xml version=\"1.0\" encoding='UTF-8'?>\n<a >x</a >\n", "a=x;");
    assert_reads("\xef\xbb\xbf<a>x</a>", "a=x;");
    assert_reads("<a xmlns=\"u:v\" b = 'c>d'><b/> <b>1</b>\n</a>", "a/b=;a/b=1;a=;");
    assert_reads("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#xe9;&#x20ac;&#x1F600;</a>",
                 "a=<>&\"'AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80;");
    assert_reads("<Error><Code>SlowDown</Code><Message>Please, \xc3\xa9</Message></Error>",
                 "Error/Code=SlowDown;Error/Message=Please, \xc3\xa9;Error=;");
    assert_reads("<a>]]&gt;</a>", "a=]]>;");
}

static void test_what_is_refused(void **state) {
    static const char *const bad[] = {"",
                                      " ",
                                      "x",
                                      "<",
                                      "<a",
                                      "<a>",
                                      "<a></b>",
                                      "</a>",
                                      "<a><b></a></b>",
                                      "<a/><b/>",
                                      "<a/>x",
                                      "x<a/>",
                                      "<a>&",
                                      "<a>&x;</a>",
                                      "<a>&lt</a>",
                                      "<a>&#;</a>",
                                      "<a>&#x;</a>",
                                      "<a>&#0;</a>",
                                      "<a>&#xd800;</a>",
                                      "<a>&#x110000;</a>",
                                      "<a>&#99999999999;</a>",
                                      "<a>&#1;</a>",
                                      "<a>\xff</a>",
                                      "<a>\xc3</a>",
                                      "<a>\x01</a>",
                                      "<a b></a>",
                                      "<a b=c></a>",
                                      "<a b='c></a>",
                                      "<a b='<'></a>",
                                      "<a 'b'></a>",
                                      "<!DOCTYPE a><a/>",
                                      "<a><!-- x --></a>",
                                      "<a><![CDATA[x]]></a>",
                                      "<a><?b?></a>",
                                      "<?xml",
                                      "<?xml?",
                                      "<a>x<b/></a>",
                                      "<a><b/>x</a>",
                                      "<a /",
                                      "< a/>",
                                      "<a/ >",
                                      "<a></a",
                                      "<a></a >b",
                                      "&amp;",
                                      "<a><b/></a></a>"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct heard heard = {0};
        enum ulp_status status = xml_read("it", bad[i], strlen(bad[i]), hear, &heard);

        if (status != ULP_E_IO || !strstr(ulp_last_error(), "it is not the XML"))
            fail_msg("%s: %s %s", bad[i], ulp_status_name(status), ulp_last_error());
    }
}

static void assert_depth(unsigned depth, enum ulp_status expected) {
    struct heard heard = {0};
    char text[1000] = "";

    for (unsigned i = 0; i < depth; i++)
        strcat(text, "<a>");
    for (unsigned i = 0; i < depth; i++)
        strcat(text, "</a>");
    assert_int_equal(xml_read("it", text, strlen(text), hear, &heard), expected);
}

static void test_depth_and_length(void **state) {
    struct heard heard = {0};
    char *large = malloc(LIMIT_XML_BYTES + 1);
    char name[300];

    (void)state;
    assert_depth(LIMIT_XML_DEPTH - 1, ULP_OK);
    assert_depth(LIMIT_XML_DEPTH, ULP_E_IO);
    assert_depth(60, ULP_E_IO);
    memset(large, ' ', LIMIT_XML_BYTES + 1);
    memcpy(large, "<a/>", 4);
    assert_ok(xml_read("it", large, LIMIT_XML_BYTES, hear, &heard));
    assert_fails(xml_read("it", large, LIMIT_XML_BYTES + 1, hear, &heard), ULP_E_IO, "too long");
    free(large);
    snprintf(name, sizeof name, "<%0200d/>", 7);
    name[1] = 'a';
    assert_fails(xml_read("it", name, strlen(name), hear, &heard), ULP_E_IO, "no name");
}

/* Every beginning of a document, and every change of one byte of it, ends in some way. */
static void test_damage(void **state) {
    static const char good[] =
        "<?xml version=\"1.0\"?><L xmlns='x'><C><K>a%20&amp;&#x41;</K><S>1</S></C><C/></L>";
    char text[sizeof good];
    struct heard heard;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof good; i++) {
        heard = (struct heard){0};
        assert_int_equal(xml_read("it", good, i, hear, &heard), ULP_E_IO);
        for (unsigned byte = 0; byte < 256; byte++) {
            memcpy(text, good, sizeof good);
            text[i] = (char)byte;
            heard = (struct heard){0};
            xml_read("it", text, sizeof good - 1, hear, &heard);
        }
    }
}

static void test_listener_stops(void **state) {
    struct heard heard = {.stop_after = 2};

    (void)state;
    assert_fails(xml_read("it", "<a><b/><c/><d/></a>", 19, hear, &heard), ULP_E_CANCELLED,
                 "enough");
    assert_string_equal(heard.text, "a/b=;a/c=;");
}

TEST_MAIN(test_what_is_read, test_what_is_refused, test_depth_and_length, test_damage,
          test_listener_stops)
