// SPDX-License-Identifier: Apache-2.0
/* Signatures: AWS's published examples, those of the test suite and those in S3's manual. */
#include "net/sigv4.h"

#include "hash/hmac.h"
#include "net/encode.h"
#include "net/timestamp.h"
#include "tests/test.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct example {
    const char *name, *method, *path, *query;
    struct http_header headers[6];
    const char *body, *payload_hash; /* the hash, if given, stands for the body */
    const char *signed_headers, *signature;
};

/* 30 August 2015, 12:36:00, the moment of the test suite; 24 May 2013, that of the manual. */
#define SUITE_TIME 1440938160u
#define MANUAL_TIME 1369353600u

static char suite_id[] = "AKIDEXAMPLE", suite_secret[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
static char manual_id[] = "AKIAIOSFODNN7EXAMPLE",
            manual_secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

#define HOST                                                                                       \
    { "Host", "example.amazonaws.com" }
#define DATE                                                                                       \
    { "X-Amz-Date", "20150830T123600Z" }
#define TOKEN                                                                                       \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP"  \
    "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7" \
    "WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm"  \
    "8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

static const struct example suite[] = {
    {"get-vanilla",
     "GET",
     "/",
     "",
     {HOST, DATE},
     "",
     NULL,
     "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-query-order-key",
     "GET",
     "/",
     "Param1=value1&Param2=value2",
     {HOST, DATE},
     "",
     NULL,
     "host;x-amz-date",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-unreserved",
     "GET",
     "/",
     "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz="
     "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
     {HOST, DATE},
     "",
     NULL,
     "host;x-amz-date",
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-utf8",
     "GET",
     "/%E1%88%B4",
     "",
     {HOST, DATE},
     "",
     NULL,
     "host;x-amz-date",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-header-value-trim",
     "GET",
     "/",
     "",
     {HOST, {"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}, DATE},
     "",
     NULL,
     "host;my-header1;my-header2;x-amz-date",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"post-vanilla",
     "POST",
     "/",
     "",
     {HOST, DATE},
     "",
     NULL,
     "host;x-amz-date",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-header-key-sort",
     "POST",
     "/",
     "",
     {{"My-Header1", "value1"}, DATE, HOST},
     "",
     NULL,
     "host;my-header1;x-amz-date",
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-header-value-case",
     "POST",
     "/",
     "",
     {HOST, {"My-Header1", "VALUE1"}, DATE},
     "",
     NULL,
     "host;my-header1;x-amz-date",
     "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {"post-sts-header-before",
     "POST",
     "/",
     "",
     {HOST, DATE, {"X-Amz-Security-Token", TOKEN}},
     "",
     NULL,
     "host;x-amz-date;x-amz-security-token",
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     "",
     {{"Content-Type", "application/x-www-form-urlencoded"}, HOST, DATE},
     "Param1=value1",
     NULL,
     "content-type;host;x-amz-date",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
};

#define BUCKET                                                                                     \
    { "Host", "examplebucket.s3.amazonaws.com" }
#define MANUAL_DATE                                                                                \
    { "x-amz-date", "20130524T000000Z" }
#define NO_CONTENT                                                                                 \
    { "x-amz-content-sha256", EMPTY }

static const struct example manual[] = {
    {"GET object",
     "GET",
     "/test.txt",
     "",
     {BUCKET, {"Range", "bytes=0-9"}, NO_CONTENT, MANUAL_DATE},
     NULL,
     EMPTY,
     "host;range;x-amz-content-sha256;x-amz-date",
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"PUT object",
     "PUT",
     "/test%24file.text",
     "",
     {BUCKET,
      {"Date", "Fri, 24 May 2013 00:00:00 GMT"},
      MANUAL_DATE,
      {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
      {"x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"}},
     "Welcome to Amazon S3.",
     NULL,
     "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"GET lifecycle",
     "GET",
     "/",
     "lifecycle=",
     {BUCKET, NO_CONTENT, MANUAL_DATE},
     NULL,
     EMPTY,
     "host;x-amz-content-sha256;x-amz-date",
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"list",
     "GET",
     "/",
     "max-keys=2&prefix=J",
     {BUCKET, NO_CONTENT, MANUAL_DATE},
     NULL,
     EMPTY,
     "host;x-amz-content-sha256;x-amz-date",
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static void check(const struct example *e, const struct credentials *credentials, uint64_t time,
                  const char *service) {
    struct buffer found = BUFFER(10000);
    char hash[SHA256_HEX_BYTES] = "", expected[1000], day[TIMESTAMP_BYTES];
    uint8_t digest[SHA256_BYTES];
    struct sigv4 request = {.method = e->method,
                            .path = e->path,
                            .query = e->query,
                            .headers = e->headers,
                            .payload_hash = e->payload_hash ? e->payload_hash : hash,
                            .time_s = time,
                            .region = "us-east-1",
                            .service = service,
                            .credentials = credentials};

    if (e->body) {
        assert_ok(sha256_of(e->body, strlen(e->body), digest));
        sha256_hex(digest, hash);
    }
    while (request.header_count < 6 && e->headers[request.header_count].name)
        request.header_count++;
    timestamp_write(time, day);
    snprintf(expected, sizeof expected,
             "AWS4-HMAC-SHA256 Credential=%s/%.8s/us-east-1/%s/aws4_request, SignedHeaders=%s, "
             "Signature=%s",
             credentials->key_id, day, service, e->signed_headers, e->signature);
    assert_ok(sigv4_sign(&request, &found));
    if (strcmp(buffer_text(&found), expected) != 0)
        fail_msg("%s:\n%s\nexpected\n%s", e->name, buffer_text(&found), expected);
    buffer_release(&found);
}

static void test_published_suite(void **state) {
    const struct credentials credentials = {suite_id, suite_secret, NULL, 0};

    (void)state;
    for (size_t i = 0; i < sizeof suite / sizeof suite[0]; i++)
        check(&suite[i], &credentials, SUITE_TIME, "service");
}

static void test_published_manual(void **state) {
    const struct credentials credentials = {manual_id, manual_secret, NULL, 0};

    (void)state;
    for (size_t i = 0; i < sizeof manual / sizeof manual[0]; i++)
        check(&manual[i], &credentials, MANUAL_TIME, "s3");
}

static void test_canonical_text(void **state) {
    const struct example *e = &suite[4];
    const struct sigv4 request = {.method = "GET",
                                  .path = "/",
                                  .query = "",
                                  .headers = e->headers,
                                  .header_count = 4,
                                  .payload_hash = EMPTY};
    struct buffer found = BUFFER(10000);

    (void)state;
    assert_ok(sigv4_canonical(&request, &found));
    assert_string_equal(buffer_text(&found),
                        "GET\n/\n\nhost:example.amazonaws.com\nmy-header1:value1\n"
                        "my-header2:\"a b c\"\nx-amz-date:20150830T123600Z\n\n"
                        "host;my-header1;my-header2;x-amz-date\n" EMPTY);
    buffer_release(&found);
}

/* Names of which one is the beginning of another: libcurl's own signer sorts these wrongly. */
static void test_order_of_headers(void **state) {
    const struct http_header headers[] = {{"x-amz-ab", "2"}, {"X-Amz-A", "1"}, {"x-amz-a-b", "3"}};
    const struct sigv4 request = {.method = "GET",
                                  .path = "/",
                                  .query = "",
                                  .headers = headers,
                                  .header_count = 3,
                                  .payload_hash = EMPTY};
    struct buffer found = BUFFER(10000);

    (void)state;
    assert_ok(sigv4_canonical(&request, &found));
    assert_non_null(strstr(buffer_text(&found), "\nx-amz-a;x-amz-a-b;x-amz-ab\n"));
    buffer_release(&found);
}

static void assert_encodes(const char *text, const char *query, const char *path) {
    struct buffer found = BUFFER(10000);
    size_t length = 0;

    assert_ok(encode_percent(&found, text, KEEP_SLASHES));
    assert_string_equal(buffer_text(&found), path);
    buffer_clear(&found);
    assert_ok(encode_percent(&found, text, ENCODE_SLASHES));
    assert_string_equal(buffer_text(&found), query);
    assert_true(decode_percent((char *)found.data, found.used, &length));
    assert_int_equal(length, strlen(text));
    assert_memory_equal(found.data, text, length);
    buffer_release(&found);
}

static void test_percent(void **state) {
    static const char *const bad[] = {"%", "%4", "%zz", "a%00b", "%4g", "x%"};
    struct query_pair pairs[] = {{"uploads", ""}, {"prefix", "a/b c+d"}, {"list-type", "2"}};
    struct buffer found = BUFFER(1000);

    (void)state;
    assert_encodes("aZ09-._~", "aZ09-._~", "aZ09-._~");
    assert_encodes("a/b c", "a%2Fb%20c", "a/b%20c");
    assert_encodes("\xe1\x88\xb4*:+=&?", "%E1%88%B4%2A%3A%2B%3D%26%3F",
                   "%E1%88%B4%2A%3A%2B%3D%26%3F");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[8];
        size_t length = 77;

        snprintf(text, sizeof text, "%s", bad[i]);
        assert_false(decode_percent(text, strlen(text), &length));
        assert_int_equal(length, 77);
    }
    assert_ok(encode_query(&found, pairs, 3));
    assert_string_equal(buffer_text(&found), "list-type=2&prefix=a%2Fb%20c%2Bd&uploads=");
    buffer_release(&found);
}

static void assert_time(uint64_t seconds, const char *expected, const char *http, const char *iso) {
    char text[TIMESTAMP_BYTES];
    uint64_t found = 0;

    timestamp_write(seconds, text);
    assert_string_equal(text, expected);
    assert_true(timestamp_read_http(http, &found));
    assert_int_equal(found, seconds);
    assert_true(timestamp_read_iso(iso, &found));
    assert_int_equal(found, seconds);
}

static void test_moments(void **state) {
    static const char *const bad[] = {"",
                                      "Sun, 31 Feb 2026 00:00:00 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 CET",
                                      "Sun, 06 ovD 1994 08:49:37 GMT",
                                      "Sunday, 06-Nov-94 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 24:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 GMT "};
    uint64_t found = 77;

    (void)state;
    assert_time(0, "19700101T000000Z", "Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00Z");
    assert_time(784111777, "19941106T084937Z", "Sun, 06 Nov 1994 08:49:37 GMT",
                "1994-11-06T08:49:37.123Z");
    assert_time(951782400, "20000229T000000Z", "Tue, 29 Feb 2000 00:00:00 GMT",
                "2000-02-29T00:00:00+00:00");
    assert_time(4107542399, "21000228T235959Z", "Sun, 28 Feb 2100 23:59:59 GMT",
                "2100-02-28T23:59:59Z");
    assert_time(4107542400, "21000301T000000Z", "Mon, 01 Mar 2100 00:00:00 GMT",
                "2100-03-01T00:00:00Z");
    assert_time(253402300799, "99991231T235959Z", "Fri, 31 Dec 9999 23:59:59 GMT",
                "9999-12-31T23:59:59Z");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(timestamp_read_http(bad[i], &found));
    assert_false(timestamp_read_iso("2026-02-30T00:00:00Z", &found));
    assert_false(timestamp_read_iso("2026-02-03T04:05:06", &found));
    assert_false(timestamp_read_iso("2026-02-03T04:05:06+01:00", &found));
    assert_int_equal(found, 77);
}

static void test_hmac(void **state) {
    /* RFC 4231, cases 2 and 6: a short key, and one that is longer than a block */
    uint8_t code[SHA256_BYTES], key[131];
    char hex[SHA256_HEX_BYTES];

    (void)state;
    assert_ok(hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, code));
    sha256_hex(code, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    assert_ok(hmac_sha256(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First",
                          54, code));
    sha256_hex(code, hex);
    assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void test_failing_allocations(void **state) {
    const struct credentials credentials = {suite_id, suite_secret, NULL, 0};
    const struct sigv4 request = {.method = "GET",
                                  .path = "/",
                                  .query = "",
                                  .headers = suite[0].headers,
                                  .header_count = 2,
                                  .payload_hash = EMPTY,
                                  .region = "r",
                                  .service = "s",
                                  .credentials = &credentials};
    enum ulp_status status = ULP_E_NOMEM;
    uint64_t at;

    (void)state;
    for (at = 0; status && at < 1000; at++) {
        struct buffer found = BUFFER(10000);

        failing_allocator_start(at, 0);
        status = sigv4_sign(&request, &found);
        buffer_release(&found);
        failing_allocator_stop();
    }
    assert_in_range(at, 4, 999);
}

TEST_MAIN(test_published_suite, test_published_manual, test_canonical_text, test_order_of_headers,
          test_percent, test_moments, test_hmac, test_failing_allocations)
